"""The strided copies of nvmath-python 1.0 (``nvmath.internal.ndbuffer``), which are not public.

Its kernels are compiled by NVRTC for the number of axes and the size of items: one item a thread, or tiles in shared
memory where the fast axes of both sides differ.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from nvmath.internal.ndbuffer import NDBuffer, StridedLayout
from nvmath.internal.utils import get_or_create_stream


def buffer(
    memory: object, pointer: int, like: np.ndarray, device: int | str, in_order: bool = False
) -> NDBuffer:
    """The array at an address, with the shape and data type of another, and its strides or C order.

    ``memory`` is kept alive; ``device`` is a number, or "cpu".
    """
    steps = None if in_order else tuple(stride // like.itemsize for stride in like.strides)
    layout = StridedLayout(like.shape, steps, like.itemsize)
    return NDBuffer.from_data(layout, memory, pointer, like.dtype.name, device)


@cache
def legacy_stream() -> Any:
    """The legacy default stream, as nvmath's functions take it."""
    return get_or_create_stream(0, 1, "cuda")
