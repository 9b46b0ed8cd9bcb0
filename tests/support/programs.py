"""The programs of tests/integration/programs.md, on one library, in one process; prints JSON.

    python -m tests.support.programs {numpy,torch,jax} [CLIENT] [--native]

The page is the table: its calls are read from there. The JSON says for each program, or those of
one client, what is wrong; ``""`` if it gives what the client gives on plain NumPy. ``--native``
runs on the library's own arrays instead of Arrays, for comparison.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.metadata
import json
import re
import sys
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from .processes import ROOT

PAGE = (ROOT / "tests" / "integration" / "programs.md").read_text()
LIBRARIES = ("numpy", "torch", "jax")
CAUSES = dict(re.findall(r"^(\d+)\. (.*)$", PAGE, re.MULTILINE))


class Program(NamedTuple):
    """A call over the public names of a client's module, the arrays of `data`, ``xp``, ``numpy``.

    ``fails`` has the causes by the libraries on which it fails.
    """

    module: str
    call: str
    fails: dict[str, str]

    @property
    def client(self) -> str:
        return self.module.partition(".")[0]


def programs() -> list[Program]:
    """Every row of the page's tables."""
    found = []
    for section in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]:
        module = section.partition("\n")[0]
        for call, *cells in re.findall(r"^\| `(.*)` \| (.*) \| (.*) \| (.*) \|$", section, re.M):
            told = zip(LIBRARIES, cells, strict=True)
            fails = {library: re.findall(r"\[no: (\d+)\]", cell) for library, cell in told}
            found.append(Program(module, call, {k: CAUSES[v[0]] for k, v in fails.items() if v}))
    return found


def data() -> dict[str, np.ndarray]:
    """The arguments of the programs, as new NumPy arrays."""
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(2, 24))
    unit = rng.uniform(0.1, 0.9, size=24)
    X = rng.normal(size=(12, 4))
    return {
        "x": x,
        "y": y,
        "gaps": np.where(np.arange(24) % 7 == 2, np.nan, x),
        "unit": unit,
        "positive": rng.uniform(0.5, 3, size=24),
        "z": rng.normal(size=9) + 1j * rng.normal(size=9),
        "X": X,
        "XP": np.exp(X),
        "square": np.asarray([[1.0, 2.0], [3.0, 4.0]]),
        "target": rng.normal(size=12),
        "scores": unit[:12].copy(),
        "labels": np.asarray([0, 1, 2] * 4),
        "predicted": np.asarray([0, 1, 1, 0, 2, 2, 1, 1, 2, 0, 0, 2]),
        "binary": np.asarray([0, 1] * 6),
        "flat": np.asarray([3, 7, 41, 12]),
        "b": np.asarray([0.2, 0.3, 0.1]),
        "a": np.asarray([1.0, -0.4, 0.1]),
        "sos": np.asarray([[0.2, 0.3, 0.1, 1, -0.4, 0.1], [0.1, 0.2, 0.3, 1, 0.2, 0.05]]),
    }


def compile_quickly() -> str:
    """Return the XLA_FLAGS with which JAX compiles quickly rather than well.

    jaxlib 0.10's older emitters take half the time; an unknown flag ends the process.
    """
    flags = ["--xla_backend_optimization_level=0", "--xla_llvm_disable_expensive_passes=true"]
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        if importlib.metadata.version("jaxlib").startswith("0.10."):
            flags.append("--xla_cpu_use_fusion_emitters=false")
    return " ".join(flags)


# What each process needs: SciPy's switch before it is imported; a JAX that computes in float64 and
# compiles quickly; no threads for arrays of a few elements.
ENVIRONMENT = {
    "SCIPY_ARRAY_API": "1",
    "OMP_NUM_THREADS": "1",
    "JAX_ENABLE_X64": "1",
    "XLA_FLAGS": compile_quickly(),
}


def namespace_of(library: str, native: bool) -> tuple[Any, type]:
    """The namespace of Arrays, or of native arrays, and the type of its arrays."""
    if library == "torch":
        import torch

        torch.set_default_dtype(torch.float64)
    if native:
        name = {"jax": "jax.numpy"}.get(library, f"array_api_compat.{library}")
        xp = importlib.import_module(name)
    else:
        xp = importlib.import_module(f"arraybridge.xp.{library}")
    return xp, type(xp.asarray(1.0))


def names_of(module: str) -> dict[str, Any]:
    """What a call may name: the public names of the client's module, and the packages."""
    client = importlib.import_module(module)
    names = {name: getattr(client, name) for name in dir(client) if not name.startswith("_")}
    packages = {module.partition(".")[0], "numpy", "scipy"}
    return names | {name: importlib.import_module(name) for name in packages}


def call(program: str, names: dict[str, Any], xp: Any) -> Any:
    """The value of a call, with fresh arrays of a namespace for arguments."""
    arrays = {name: xp.asarray(x) for name, x in data().items()}
    return eval(program, {**names, **arrays, "xp": xp, "numpy": np})


def leaves(x: Any, path: str = "result") -> Iterator[tuple[str, Any]]:
    """Every array and scalar in a result, with where it is."""
    if isinstance(x, list | tuple):
        parts = {f"{path}[{i}]": each for i, each in enumerate(x)}
    elif type(x).__module__.partition(".")[0] in ("scipy", "sklearn") and vars(x):
        parts = {f"{path}.{k}": v for k, v in vars(x).items() if not k.startswith("_")}
    else:
        yield path, x
        return
    for where, each in parts.items():
        yield from leaves(each, where)


def difference(expected: Any, got: Any, kind: type) -> str:
    """How a result differs from the client's on plain NumPy, whose arrays must be of ``kind``."""
    wanted, given = dict(leaves(expected)), dict(leaves(got))
    if wanted.keys() != given.keys():
        return f"result: {', '.join(given)} in place of {', '.join(wanted)}"
    found = (_difference(wanted[path], given[path], kind, path) for path in wanted)
    return "; ".join(filter(None, found))


def _difference(expected, got, kind, path):
    if not isinstance(expected, np.ndarray | np.generic):
        if isinstance(expected, float) and isinstance(got, float):
            same = np.isclose(expected, got, rtol=1e-9, equal_nan=True)
        else:
            same = type(expected) is type(got) and expected == got
        return "" if same else f"{path}: {got!r} in place of {expected!r}"
    if type(got) is not kind:
        return f"{path}: a {type(got).__name__} in place of a {kind.__name__}"
    values = np.asarray(got)
    if (values.dtype, values.shape) != (expected.dtype, expected.shape):
        return (
            f"{path}: {values.dtype} {values.shape} in place of {expected.dtype} {expected.shape}"
        )
    if expected.dtype.kind in "fc":
        tolerance = float(np.finfo(expected.dtype).eps) ** 0.5
        same = np.allclose(values, expected, rtol=tolerance, atol=tolerance, equal_nan=True)
    else:
        same = np.array_equal(values, expected)
    return "" if same else f"{path}: other values"


def verdict(program: str, names: dict[str, Any], xp: Any, kind: type) -> str:
    """What is wrong with a program on the arrays of ``xp``; empty if nothing is."""
    from array_api_compat import numpy as plain

    expected = call(program, names, plain)
    try:
        return difference(expected, call(program, names, xp), kind)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def main() -> None:
    """Run the programs that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("library", choices=LIBRARIES)
    parser.add_argument("client", nargs="?", default="")
    parser.add_argument("--native", action="store_true")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")  # the clients'
    xp, kind = namespace_of(asked.library, asked.native)
    import sklearn

    sklearn.set_config(array_api_dispatch=True)
    report = {
        f"{module}.{program}": verdict(program, names_of(module), xp, kind)
        for module, program, _ in (p for p in programs() if asked.client in ("", p.client))
    }
    sys.stdout.write(json.dumps(report))


if __name__ == "__main__":
    main()
