# pyright: basic, reportMissingImports=false
# mypy: warn-unused-ignores
"""What type checkers refuse: no name of a library or order (a ValueError), no kind of route."""

from __future__ import annotations

import numpy as np

import arraybridge as ab


def refused(x: np.ndarray, array: ab.Array) -> None:
    ab.convert(x, "pytorch")  # type: ignore[call-overload]
    ab.explain(x, "pytorch")  # type: ignore[arg-type]
    ab.asarray([1, 2], like="pytorch")  # type: ignore[arg-type]
    array.to("pytorch")  # type: ignore[call-overload]
    ab.convert(x, "np")  # type: ignore[call-overload]
    ab.convert(x, "numpy", casting="safely")  # type: ignore[call-overload]
    ab.explain(x, "numpy", casting="safely")  # type: ignore[arg-type]
    ab.asarray([1, 2], like="numpy", casting="safely")  # type: ignore[call-overload]
    ab.convert(x, "numpy", order="NHWC")  # type: ignore[call-overload]
    ab.convert(x, "torch", order="NHWC")  # type: ignore[call-overload]
    ab.explain(x, "torch", order="c")  # type: ignore[arg-type]
    ab.convert(x, "numpy", copy="no")  # type: ignore[call-overload]
    array.to("numpy", copy="no")  # type: ignore[call-overload]
    ab.convert(x, 5)  # type: ignore[call-overload]
    assert ab.explain(x, "torch").kind != "kernel"  # type: ignore[comparison-overlap]
