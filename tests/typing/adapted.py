# pyright: reportMissingImports=false, reportMissingModuleSource=false
# pyright: reportUnnecessaryTypeIgnoreComment=true
"""Calls of adapted functions: any array, and for pyright the types of other parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

import arraybridge as ab


class Tensor:
    """An array of some library: what arraybridge.typing asks for."""

    shape = (3,)
    dtype = device = None

    def __getitem__(self, key: object, /) -> Tensor:
        return self


@ab.adapt("numpy")
def smooth(y: np.ndarray[Any, Any], width: int = 3) -> npt.NDArray[np.float64]:
    return y * width


@ab.adapt("numpy", dtype="float32")
def mix(x: npt.NDArray[np.float32], y: npt.NDArray[np.float32] | None, *, name: str = "") -> int:
    return len(name)


@ab.adapt("numpy")
def masked(x: npt.NDArray[np.float64], *, mask: npt.NDArray[np.bool]) -> float:
    return float(x[mask].sum())


@ab.adapt("numpy")
def steps(state: dict[str, npt.NDArray[np.float64]], rate: float) -> float:
    return rate


class Model:
    @ab.adapt("numpy")
    def run(self, x: npt.NDArray[np.float64], n: int) -> int:
        return n

    @staticmethod
    @ab.adapt("numpy")
    def scaled(x: npt.NDArray[np.float64], n: int) -> int:
        return n

    @classmethod
    @ab.adapt("numpy")
    def made(cls, x: npt.NDArray[np.float64], n: int) -> int:
        return n


def accepted(t: Tensor, x: np.ndarray[Any, Any], dots: Callable[..., Any]) -> None:
    for array in (t, x):
        smooth(array)
        smooth(array, 3)
        smooth(array, width=3)
        smooth(y=array, width=3)
        mix(array, array)
        mix(array, array, name="a")
        mix(array, y=array)
        masked(array, mask=array)
        steps({"a": array}, 0.1)
        Model().run(array, 3)
        Model().run(array, n=3)
        Model.scaled(array, n=3)
        Model.made(array, n=3)
        ab.adapt("numpy")(np.sum)(array, axis=1)
        ab.adapt("numpy")(np.sin)(array)
        ab.adapt("numpy")(np.convolve)(array, array, "valid")
        ab.adapt("numpy")(np.convolve)(array, array, mode="valid")
        ab.adapt(np)(lambda x, k: x)(array, k=3)
        ab.adapt("torch", differentiable=True)(dots)(array, 1, k=2)
        ab.adapt("tensorflow")(dots)(array, 1, k=2)
    assert smooth.__name__ == smooth.__wrapped__.__name__


def refused(t: Tensor) -> None:
    smooth(t, "wide")  # pyright: ignore[reportCallIssue, reportArgumentType]
    smooth(t, width="wide")  # pyright: ignore[reportCallIssue, reportArgumentType]
    smooth(t, widht=3)  # pyright: ignore[reportArgumentType]
    ab.adapt("numpy", casting="safely")  # type: ignore[arg-type]
