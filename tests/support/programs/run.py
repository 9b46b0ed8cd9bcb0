"""Run the table of programs on one library, in a process of its own; print JSON.

    python -m tests.support.programs.run {numpy,torch,jax} [--without-slow | --only-slow]
        [--client {array_api_compat,array_api_extra,scipy,sklearn}] [--native]

``SCIPY_ARRAY_API`` must be set before SciPy is imported, hence the process. The JSON says for each
program, in the table's order, what is wrong; ``""`` if it runs and gives what the client gives on
plain NumPy. ``--native`` runs on the library's own arrays instead of Arrays, for comparison.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from .record import LIBRARIES, data
from .table import TABLE

# What each process needs: float64 as the default, so that results have NumPy's precision; a JAX
# that compiles quickly rather than well; no threads for arrays of a few elements.
ENVIRONMENT = {
    "SCIPY_ARRAY_API": "1",
    "OMP_NUM_THREADS": "1",
    "JAX_ENABLE_X64": "1",
    "XLA_FLAGS": "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true",
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
    """Run the programs of the table that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("library", choices=LIBRARIES)
    slow = parser.add_mutually_exclusive_group()
    slow.add_argument("--without-slow", dest="slow", action="store_const", const=False)
    slow.add_argument("--only-slow", dest="slow", action="store_const", const=True)
    parser.add_argument("--client", default="")
    parser.add_argument("--native", action="store_true")
    asked = parser.parse_args()
    missing = [name for name, value in ENVIRONMENT.items() if os.environ.get(name) != value]
    if missing:
        parser.error(f"set {', '.join(missing)} as ENVIRONMENT in {__file__} has them")
    warnings.simplefilter("ignore")  # the clients'
    xp, kind = namespace_of(asked.library, asked.native)
    import sklearn

    sklearn.set_config(array_api_dispatch=True)
    report = {}
    for module, programs in TABLE.items():
        if asked.client not in ("", module.partition(".")[0]):
            continue
        names = names_of(module)
        for program in programs:
            if asked.slow in (None, program.slow):
                report[f"{module}.{program.call}"] = verdict(program.call, names, xp, kind)
    sys.stdout.write(json.dumps(report))


if __name__ == "__main__":
    main()
