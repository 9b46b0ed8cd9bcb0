"""The bytes that a layout covers, and whether it covers some of them twice."""

from __future__ import annotations

from functools import lru_cache
from math import prod

_TRIES = 10_000  # of `may_overlap_itself`: 30 ms at most


@lru_cache(1024)
def may_overlap_itself(
    shape: tuple[int, ...], strides: tuple[int, ...] | None, itemsize: int = 1
) -> bool:
    """Whether two elements share a byte; True also where that would take too long to find out.

    False is a proof. It is quick where each axis, sorted by stride, steps past everything that the
    ones before it span, as in slices, steps, flips and permutations of dense arrays. Else it is a
    bounded Diophantine problem, NP-hard in the number of axes: elements whose indices differ by
    ``d`` share a byte where ``abs(d . strides) < itemsize``. Every ``d`` is tried that the axes
    with smaller strides could still bring there, and after `_TRIES` of them the answer is True.

    Parameters
    ----------
    shape, strides, itemsize
        As for `is_c_contiguous`; strides of any sign.
    """
    if strides is None or 0 in shape:
        return False
    axes = [
        (abs(stride), extent - 1)
        for extent, stride in zip(shape, strides, strict=True)
        if extent != 1
    ]
    axes.sort()
    nested = True
    reaches = [itemsize - 1]  # how far the axes with smaller strides go, an item included
    for stride, most in axes:
        nested = nested and stride > reaches[-1]
        reaches.append(reaches[-1] + stride * most)
    return not nested and _overlap_found(axes, reaches)


def _overlap_found(axes: list[tuple[int, int]], reaches: list[int]) -> bool:
    """Whether two elements share a byte, for ``(stride, extent - 1)`` sorted by stride."""
    if axes[0][0] == 0:
        return True
    tries = _TRIES
    # (axes left, how far apart the elements are, whether an index differs); of a difference and its
    # negative one is enough.
    pending = [(len(axes), 0, False)]
    while pending:
        left, apart, differ = pending.pop()
        if left == 0:
            if differ:
                return True
            continue
        stride, most = axes[left - 1]
        reach = reaches[left - 1]
        low = max(-((reach + apart) // stride), -most if differ else 0)
        high = min((reach - apart) // stride, most)
        tries -= max(high - low, 0) + 1
        if tries < 0:
            return True
        for by in range(low, high + 1):
            pending.append((left - 1, apart + stride * by, differ or by != 0))  # noqa: PERF401
    return False


def span(shape: tuple[int, ...], strides: tuple[int, ...] | None, itemsize: int) -> tuple[int, int]:
    """Bytes that the elements cover, relative to the pointer to the element with all indices 0.

    Parameters
    ----------
    shape : tuple of int
        Extents.
    strides : tuple of int or None
        In **bytes** (or in elements with ``itemsize=1``); None is C order.
    itemsize : int
        Bytes an item.

    Returns
    -------
    low, high : int
        The touched bytes lie in ``[low, high)``: `low` is 0 or negative. ``(0, 0)`` where there is
        no element.
    """
    if 0 in shape:
        return 0, 0
    if strides is None:
        return 0, prod(shape) * itemsize
    low, high = 0, itemsize
    for extent, stride in zip(shape, strides, strict=True):
        if stride < 0:
            low += (extent - 1) * stride
        else:
            high += (extent - 1) * stride
    return low, high
