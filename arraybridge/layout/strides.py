"""Strides of one layout: dense ones, units, contiguity; see ``arraybridge.layout``."""

from __future__ import annotations

from functools import lru_cache

from .extent import may_overlap_itself

_MAX_STRIDE = 2**63 - 1  # what a DLTensor holds

#: The names that `classify` gives, with their meaning, in the order in which they are tried.
LAYOUTS: dict[str, str] = {
    "c": "dense, last axis fastest (also: one element, none)",
    "fortran": "dense, first axis fastest",
    "permuted": "dense, axes in another order",
    "broadcast": "an axis of several elements has stride 0: the elements share memory",
    "negative": "an axis runs backwards",
    "overlapping": "positive strides, but elements share memory, or that cannot be ruled out",
    "strided": "positive strides with gaps: a slice, a step, a pitch",
}


@lru_cache(1024)
def c_strides(shape: tuple[int, ...], itemsize: int = 1) -> tuple[int, ...]:
    """Strides of the dense C-ordered layout (last axis fastest).

    Parameters
    ----------
    shape : tuple of int
        Extents. An extent of 0 counts as 1, as in PyTorch (NumPy sets all strides to 0 then).
    itemsize : int
        Bytes an item for strides in bytes, 1 for strides in elements.

    Returns
    -------
    tuple of int
        In the unit of `itemsize`.

    Examples
    --------
    >>> from arraybridge import dlpack
    >>> dlpack.c_strides((2, 3, 4)), dlpack.c_strides((2, 3, 4), 8)
    ((12, 4, 1), (96, 32, 8))
    """
    strides = []
    step = itemsize
    for extent in reversed(shape):
        strides.append(step)
        step *= int(extent) or 1  # cached: NumPy's integers must not come back to others
    strides.reverse()
    return tuple(strides)


def f_strides(shape: tuple[int, ...], itemsize: int = 1) -> tuple[int, ...]:
    """Strides of the dense Fortran-ordered layout (first axis fastest); see `c_strides`."""
    return c_strides(shape[::-1], itemsize)[::-1]


@lru_cache(1024)
def in_bytes(strides: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Strides in elements as strides in bytes."""
    return tuple(stride * itemsize for stride in strides)


@lru_cache(1024)
def in_elements(
    shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int
) -> tuple[tuple[int, ...], bool]:
    """Strides in bytes as strides in elements, and whether those are whole numbers.

    Returns
    -------
    steps : tuple of int
        Rounded down where they are not whole. Those that reach no element, and are negative or not
        whole, are as in a dense array.
    whole : bool
        Whether every stride that reaches an element is a multiple of `itemsize`.
    """
    steps = list(c_strides(shape))
    whole, empty = True, 0 in shape
    if empty and any(stride < 0 or stride % itemsize for stride in strides):
        return tuple(steps), True
    for axis, (extent, stride) in enumerate(zip(shape, strides, strict=True)):
        if extent != 1 and not empty:
            whole = whole and stride % itemsize == 0
        elif stride < 0 or stride % itemsize:
            continue
        steps[axis] = stride // itemsize
    return tuple(steps), whole


@lru_cache(1024)
def is_c_contiguous(
    shape: tuple[int, ...], strides: tuple[int, ...] | None, itemsize: int = 1
) -> bool:
    """Whether the elements are one dense block with the last axis fastest.

    Parameters
    ----------
    shape : tuple of int
        Extents.
    strides : tuple of int or None
        In bytes with `itemsize` in bytes, in elements with ``itemsize=1``; None is C order.
    itemsize : int
        The unit of `strides`.

    Returns
    -------
    bool
        What ``numpy.ndarray.flags.c_contiguous`` says of the same layout.
    """
    if strides is None or 0 in shape:
        return True
    dense = c_strides(shape, itemsize)
    return strides == dense or all(
        extent == 1 or stride == step
        for extent, stride, step in zip(shape, strides, dense, strict=True)
    )


def is_f_contiguous(
    shape: tuple[int, ...], strides: tuple[int, ...] | None, itemsize: int = 1
) -> bool:
    """Whether the elements are one dense block with the first axis fastest.

    Parameters
    ----------
    shape, strides, itemsize
        As for `is_c_contiguous`.
    """
    if strides is None:
        strides = c_strides(shape, itemsize)
    return is_c_contiguous(shape[::-1], strides[::-1], itemsize)


def is_compact(shape: tuple[int, ...], strides: tuple[int, ...] | None, itemsize: int = 1) -> bool:
    """Whether the elements are one dense block with the axes in any order, none backwards.

    This is what JAX takes through DLPack (jax-ml/jax#17784: it derives a minor-to-major permutation
    and refuses pitches, zeros and negatives).

    Parameters
    ----------
    shape, strides, itemsize
        As for `is_c_contiguous`.
    """
    if strides is None or 0 in shape:
        return True
    step = itemsize
    axes = [(stride, extent) for extent, stride in zip(shape, strides, strict=True) if extent != 1]
    axes.sort()
    for stride, extent in axes:
        if stride != step:
            return False
        step *= extent
    return True


def is_non_negative(shape: tuple[int, ...], strides: tuple[int, ...] | None) -> bool:
    """Whether no axis runs backwards.

    Axes of extent 0 or 1 are not looked at. A consumer that does look (``torch.from_dlpack`` aborts
    on any negative stride) is safe when it is handed `relaxed` strides.
    """
    if strides is None or 0 in shape:
        return True
    return all(stride >= 0 for extent, stride in zip(shape, strides, strict=True) if extent != 1)


def is_broadcast(shape: tuple[int, ...], strides: tuple[int, ...] | None) -> bool:
    """Whether an axis of two or more elements has stride 0: its elements are one cell."""
    if strides is None or 0 in shape:
        return False
    return any(stride == 0 for extent, stride in zip(shape, strides, strict=True) if extent != 1)


@lru_cache(1024)
def relaxed(
    shape: tuple[int, ...], strides: tuple[int, ...] | None, itemsize: int = 1
) -> tuple[int, ...]:
    """Set the strides that reach no element to those of a dense array.

    Consumers that compare strides literally refuse, or abort on, zero-size and size-1 axes with
    unusual strides (microsoft/onnxruntime#27450, jax-ml/jax#25066).

    Parameters
    ----------
    shape, strides, itemsize
        As for `is_c_contiguous`.

    Returns
    -------
    tuple of int
        `strides` where the extent is 2 or more. On an axis of extent 1: the step past the axis
        after it. `c_strides` where `strides` is None, or C-contiguous, or there is no element;
        `f_strides` where it is Fortran-contiguous.
    """
    if strides is None or 0 in shape:
        return c_strides(shape, itemsize)
    if 1 not in shape:
        return tuple(strides)
    if is_c_contiguous(shape, strides, itemsize):
        return c_strides(shape, itemsize)
    if is_f_contiguous(shape, strides, itemsize):
        return f_strides(shape, itemsize)
    result = []
    step = itemsize
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent != 1:
            step = stride
        result.append(step)
        step = min(abs(step) * extent, _MAX_STRIDE)
    result.reverse()
    return tuple(result)


def exported(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
    """Return strides as consumers get them: the array's own, but for negative ones of no effect.

    PyTorch's import aborts the process on any negative stride. `relaxed` replaces those that reach
    no element.
    """
    if min(strides, default=0) >= 0:
        return strides
    idle = 0 in shape or any(n == 1 and s < 0 for n, s in zip(shape, strides, strict=True))
    return relaxed(shape, strides) if idle else strides


def classify(shape: tuple[int, ...], strides: tuple[int, ...] | None, itemsize: int = 1) -> str:
    """Name a layout by a word of `LAYOUTS`.

    Parameters
    ----------
    shape, strides, itemsize
        As for `is_c_contiguous`.

    Returns
    -------
    str
        The first word of `LAYOUTS` that holds.
    """
    if is_c_contiguous(shape, strides, itemsize):
        return "c"
    if is_f_contiguous(shape, strides, itemsize):
        return "fortran"
    if is_compact(shape, strides, itemsize):
        return "permuted"
    if is_broadcast(shape, strides):
        return "broadcast"
    if not is_non_negative(shape, strides):
        return "negative"
    return "overlapping" if may_overlap_itself(shape, strides, itemsize) else "strided"
