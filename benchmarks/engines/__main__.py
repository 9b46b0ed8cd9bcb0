"""Measure engines that hold arrays: the same work with arraybridge and with the best alternative without it.

python -m benchmarks.engines            prints the tables
python -m benchmarks.engines --write    and keeps them in benchmarks/RESULTS.md
"""

from __future__ import annotations

import importlib

from ..goals import measure, table
from ..results import command, head

INTRODUCTION = "Goal: a ratio, if a table states one. Measured: the same work with arraybridge and with the best alternative without it, in turn; medians, and our fastest round."
#: A module of this folder, with ``cases()`` -> the packages whose versions it is measured with.
MODULES: dict[str, str] = {
    "dask": "dask",
    "audit": "",
    "frames": "pandas polars pyarrow",
    "gradients": "jaxlib",
    "casts": "ml_dtypes",
    "ray": "ray",
    "runtimes": "onnxruntime openvino pillow",
    "xarray": "xarray",
}


def report(*, quick: bool = False) -> str:
    lines = [INTRODUCTION, "", head("numpy torch jax " + " ".join(MODULES.values()))]
    for name in MODULES:
        module = importlib.import_module(f".{name}", __package__)
        found = measure(module.cases(), quick=quick)
        lines += [
            "",
            f"### {module.__doc__.splitlines()[0].rstrip('.')}",
            "",
            *table(found, "what"),
        ]
    return "\n".join(lines)


if __name__ == "__main__":
    command("engines", __doc__, report)
