"""Your own array class, as a source and a target of conversions.

    python examples/your_own_library.py

Needs torch.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import torch

import arraybridge as ab

GRID: Any = "grid"  # a name that type checkers do not know


class Grid:
    """An array class of a small library: C doubles and a shape."""

    def __init__(self, values: Any, shape: tuple[int, ...]) -> None:
        self.values, self.shape = values, shape

    def __repr__(self) -> str:
        return f"Grid of {self.shape}, {list(self.values)}"


class Grids(ab.Library):
    """Describe grids to arraybridge."""

    name = GRID
    accepts = ab.Accepts(
        library="grid", tested="1.0", dtypes=frozenset({"float64"}), strides="c", ndim=(2, 2)
    )

    def owns(self, array_type: type) -> bool:
        return issubclass(array_type, Grid)

    def export(self, x: Grid, stream: Any = None) -> ab.dlpack.ManagedTensor:
        """Describe the memory of a grid, and keep it alive."""
        return ab.dlpack.ManagedTensor.adopt(
            ctypes.addressof(x.values), x.shape, ab.DataType.named("float64"), owner=x.values
        )

    def describe(self, x: Grid) -> ab.TensorInfo:
        return ab.TensorInfo.of_tensor(self.export(x), self.name)

    def wrap(self, tensor: ab.dlpack.ManagedTensor) -> Grid:
        """Make a grid on memory that fits ``accepts``."""
        values: Any = (ctypes.c_double * tensor.size).from_address(tensor.pointer)
        values.owner = tensor.owner  # the memory stays as long as the grid
        return Grid(values, tensor.shape)


def main() -> None:
    """Register it, and convert both ways."""
    ab.register_library(Grids())
    grid = Grid((ctypes.c_double * 6)(*range(6)), (2, 3))
    tensor = ab.convert(grid, "torch")
    tensor[0, 0] = 100
    print("a tensor wrote to", grid)

    for name, x in {
        "float64": torch.ones(2, 3, dtype=torch.float64),
        "its transpose": torch.ones(2, 3, dtype=torch.float64).T,
        "float32": torch.ones(2, 3),
        "a vector": np.ones(3),
    }.items():
        print(f"{name + ':':14} {ab.explain(x, GRID)}")
    print(ab.convert(torch.arange(4.0).reshape(2, 2), GRID, dtype="float64"))

    total = ab.adapt("grid", result="function")(lambda x: sum(x.values))
    print("a function of grids, called with a tensor:", total(torch.eye(3, dtype=torch.float64)))
    double = ab.adapt("numpy")(lambda x: x * 2)
    print("a function of NumPy, called with a grid:  ", double(grid))


if __name__ == "__main__":
    main()
