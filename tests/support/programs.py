"""The programs of tests/integration/programs.md, on one library, in one process; prints JSON.

    python -m tests.support.programs {numpy,torch,jax} [CLIENT]

The JSON says for each program, or those of one client, what is wrong; ``""`` if it gives what the
client gives on plain NumPy.
"""

from __future__ import annotations

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


class Program(NamedTuple):
    """A call over the public names of a client, the arrays of `data`, ``xp`` and ``numpy``."""

    module: str
    call: str
    fails: set[str]  # the libraries on which it does

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
            fails = {library for library, cell in told if "[no: " in cell}
            found.append(Program(module, call, fails))
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


def check(expected: Any, got: Any, kind: type) -> None:
    """Hold a result against the client's on plain NumPy; its arrays must be of ``kind``."""
    wanted, given = dict(leaves(expected)), dict(leaves(got))
    assert wanted.keys() == given.keys(), given.keys()
    for path, one in wanted.items():
        other = given[path]
        if isinstance(one, np.ndarray | np.generic):
            assert type(other) is kind, (path, type(other))
            other = np.asarray(other)
            assert (other.dtype, other.shape) == (one.dtype, one.shape), path
        if np.asarray(one).dtype.kind in "fc":
            near = float(np.finfo(np.asarray(one).dtype).eps) ** 0.5
            np.testing.assert_allclose(other, one, rtol=near, atol=near, err_msg=path)
        else:
            assert np.array_equal(other, one), path


def verdict(program: Program, xp: Any) -> str:
    """What is wrong with a program on the arrays of ``xp``; empty if nothing is."""
    from array_api_compat import numpy as plain

    client = importlib.import_module(program.module)
    names = {name: getattr(client, name) for name in dir(client) if not name.startswith("_")}
    packages = {program.client, "numpy", "scipy"}
    names |= {name: importlib.import_module(name) for name in packages}

    def run(xp: Any) -> Any:
        arrays = {name: xp.asarray(x) for name, x in data().items()}
        return eval(program.call, {**names, **arrays, "xp": xp, "numpy": np})

    expected = run(plain)
    try:
        check(expected, run(xp), type(xp.asarray(1.0)))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def main(library: str, client: str = "") -> None:
    """Run the programs that are asked for."""
    warnings.simplefilter("ignore")  # the clients'
    if library == "torch":
        import torch

        torch.set_default_dtype(torch.float64)
    import sklearn

    sklearn.set_config(array_api_dispatch=True)
    xp = importlib.import_module(f"arraybridge.xp.{library}")
    report = {
        f"{program.module}.{program.call}": verdict(program, xp)
        for program in programs()
        if client in ("", program.client)
    }
    sys.stdout.write(json.dumps(report))


if __name__ == "__main__":
    main(*sys.argv[1:])
