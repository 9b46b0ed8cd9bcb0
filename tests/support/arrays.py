"""NumPy arrays in every layout and dtype that a conversion meets, by name; and their memory."""

from __future__ import annotations

import gc

import numpy as np

NUMBERS = tuple(
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 "
    "complex128".split()
)


def layouts(dtype: object = "float32") -> dict[str, np.ndarray]:
    """One writable array of 4 x 6 elements (or a part of it) for each layout."""
    base = np.arange(24).astype(dtype).reshape(4, 6)
    skewed = np.zeros(base.nbytes + 64, np.uint8)[3 : 3 + base.nbytes].view(base.dtype)
    skewed[:] = base.ravel()
    return {
        "contiguous": base,
        "fortran": np.asfortranarray(base),
        "permuted": np.arange(24).astype(dtype).reshape(2, 3, 4).transpose(1, 0, 2),
        "stepped": base[::2, ::3],
        "inner slice": base[1:3, 2:5],
        "offset": base.ravel()[5:],
        "negative": base[::-1, ::-2],
        "broadcast": np.lib.stride_tricks.as_strided(base, (3, 6), (0, base.itemsize)),
        "zero-size": base[:0],
        "unit axes": base[:, None, 2:3],
        "0-d": base[1, 2, ...],
        "unaligned": skewed.reshape(4, 6),
        "4-d": base.reshape(1, 2, 2, 6),
        "8-d": base.reshape(1, 1, 2, 1, 2, 3, 2, 1),
    }


def same(left: np.ndarray, right: np.ndarray) -> bool:
    """Whether shape, dtype and every bit of the elements are the same."""
    return (
        left.shape == right.shape
        and left.dtype == right.dtype
        and np.ascontiguousarray(left).tobytes() == np.ascontiguousarray(right).tobytes()
    )


def littered(nbytes: int) -> None:
    """Write over memory of that size that was just given back."""
    gc.collect()
    for _ in range(8):
        np.full(max(nbytes, 1), 0xA5, np.uint8)
