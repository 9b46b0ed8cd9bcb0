"""Arithmetic on shapes and strides: contiguity, spans, canonical forms.

Nothing here depends on an array, a library or an address: shapes and strides are plain tuples of
``int``. Functions with an ``itemsize`` take strides in **bytes** with the item size in bytes, or
strides in **elements** with ``itemsize=1``. Three rules hold throughout, which are NumPy's "relaxed
strides":

* the stride of an axis with extent 0 or 1 is never used to reach an element, so it is ignored;
* a shape with an extent of 0 has no elements, so it is contiguous in every order;
* ``strides=None`` (if allowed) is C order, as in DLPack and the buffer protocol.

Results are cached, since layouts repeat: 0.1 µs instead of 0.4 to 7.
"""

from functools import lru_cache
from math import prod
from typing import NamedTuple, TypeAlias

Ints: TypeAlias = tuple[int, ...]  # a shape, or strides

MAX_NDIM = 64  # NumPy's limit, the largest of any library
#: The most items that a library casts without a kernel, and that PyTorch copies.
SMALL = 32 * 1024
_MAX_STRIDE = 2**63 - 1  # the largest in a DLTensor

#: The names that `classify` returns and their meanings, in the order in which they are tried.
LAYOUTS: dict[str, str] = {
    "c": "dense, last axis fastest (also one element or none)",
    "fortran": "dense, first axis fastest",
    "permuted": "dense, axes in another order",
    "broadcast": "an axis of several elements has stride 0: the elements share memory",
    "negative": "an axis runs backwards",
    "overlapping": "positive strides, but elements share memory, or that cannot be ruled out",
    "strided": "positive strides with gaps: a slice, a step, a pitch",
}


@lru_cache(1024)
def c_strides(shape: Ints, itemsize: int = 1) -> Ints:
    """Return the strides of the C-contiguous layout, in which the last axis varies fastest.

    They are in bytes with ``itemsize`` in bytes, in elements with 1. An extent of 0 counts as 1, as
    in PyTorch; NumPy would set all strides to 0.

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
        step *= int(extent) or 1  # results are cached: no NumPy integers
    strides.reverse()
    return tuple(strides)


@lru_cache(1024)
def dense_strides(shape: Ints, axes: Ints) -> Ints:
    """Return the strides, in elements, of a dense array; `axes`: in memory, outermost first."""
    dense = c_strides(tuple(shape[axis] for axis in axes))
    steps = dict(zip(axes, dense, strict=True))
    return tuple(steps[axis] for axis in range(len(shape)))


def f_strides(shape: Ints, itemsize: int = 1) -> Ints:
    """Return the strides of the dense Fortran-ordered layout (first axis fastest)."""
    return c_strides(shape[::-1], itemsize)[::-1]


@lru_cache(1024)
def in_bytes(strides: Ints, itemsize: int) -> Ints:
    """Convert strides in elements to strides in bytes."""
    return tuple(stride * itemsize for stride in strides)


@lru_cache(1024)
def in_elements(shape: Ints, strides: Ints, itemsize: int) -> tuple[Ints, bool]:
    """Convert strides in bytes to strides in elements; return whether those are whole numbers too.

    Strides that are not multiples of `itemsize` are rounded down. Those that reach no element, and
    are negative or not whole, are replaced by a dense array's, and count as whole.
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
def is_c_contiguous(shape: Ints, strides: Ints | None, itemsize: int = 1) -> bool:
    """Whether the elements are one dense block with the last axis fastest, as NumPy's flag.

    `strides` are in bytes with `itemsize` in bytes, in elements with 1; None is C order.
    """
    if strides is None or 0 in shape:
        return True
    dense = c_strides(shape, itemsize)
    return strides == dense or all(
        extent == 1 or stride == step
        for extent, stride, step in zip(shape, strides, dense, strict=True)
    )


def is_f_contiguous(shape: Ints, strides: Ints | None, itemsize: int = 1) -> bool:
    """Whether the elements are one dense block with the first axis fastest."""
    if strides is None:
        strides = c_strides(shape, itemsize)
    return is_c_contiguous(shape[::-1], strides[::-1], itemsize)


def is_compact(shape: Ints, strides: Ints | None, itemsize: int = 1) -> bool:
    """Whether the elements are one dense block with the axes in any order, none negative.

    JAX takes this, and refuses pitches, zeros and negatives (jax-ml/jax#17784).
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


def is_non_negative(shape: Ints, strides: Ints | None) -> bool:
    """Whether no axis has a negative stride.

    Axes of extent 0 or 1 are ignored. Pass `relaxed` strides to consumers that do not ignore them:
    ``torch.from_dlpack`` aborts on any negative stride.
    """
    if strides is None or 0 in shape:
        return True
    return all(stride >= 0 for extent, stride in zip(shape, strides, strict=True) if extent != 1)


def is_broadcast(shape: Ints, strides: Ints | None) -> bool:
    """Whether an axis of two or more elements has stride 0."""
    if strides is None or 0 in shape:
        return False
    return any(stride == 0 for extent, stride in zip(shape, strides, strict=True) if extent != 1)


@lru_cache(1024)
def relaxed(shape: Ints, strides: Ints | None, itemsize: int = 1) -> Ints:
    """Set the strides that reach no element to those of a dense array.

    Consumers that compare strides literally refuse, or abort on, axes of extent 0 or 1 with unusual
    strides (microsoft/onnxruntime#27450, jax-ml/jax#25066). The stride of an axis of extent 1
    becomes the step past the next axis. The result is `c_strides` if `strides` is None or
    C-contiguous or there is no element, and `f_strides` if it is Fortran-contiguous.
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


@lru_cache(1024)
def classify(shape: Ints, strides: Ints | None, itemsize: int = 1) -> str:
    """Return the first name in `LAYOUTS` that describes a layout."""
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


_TRIES = 10_000  # of `may_overlap_itself`: 30 ms at most


@lru_cache(1024)
def may_overlap_itself(shape: Ints, strides: Ints | None, itemsize: int = 1) -> bool:
    """Whether two elements may share a byte; True if that would take too long to rule out.

    It is quick if each axis, sorted by stride, steps past everything that the axes before it span,
    as in slices, flips and permutations of dense arrays. Otherwise it is a bounded Diophantine
    problem, NP-hard in the number of axes: elements whose indices differ by ``d`` share a byte if
    ``abs(d . strides) < itemsize``. Every ``d`` that the axes with smaller strides can still
    compensate is tried, up to `_TRIES`.
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
    reaches = [itemsize - 1]  # how far the axes with smaller strides reach, including an item
    for stride, most in axes:
        nested = nested and stride > reaches[-1]
        reaches.append(reaches[-1] + stride * most)
    return not nested and _overlap_found(axes, reaches)


def _overlap_found(axes: list[tuple[int, int]], reaches: list[int]) -> bool:
    """Whether two elements share a byte, for ``(stride, extent - 1)`` sorted by stride."""
    if axes[0][0] == 0:
        return True
    tries = _TRIES
    # (axes left, distance between the elements, whether an index differs). Of a difference and its
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


def span(shape: Ints, strides: Ints | None, itemsize: int) -> tuple[int, int]:
    """Return the bytes ``[low, high)`` that elements cover, around that with all indices 0."""
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


class Canonical(NamedTuple):
    """A copy between two layouts, with the fewest axes and the widest items; see `canonical`.

    For every index ``i`` of `shape`, `itemsize` bytes are copied from ``src + src_offset + i .
    src_strides`` to ``dst + dst_offset + i . dst_strides``, all in **bytes**.
    """

    # Extents, all at least 2, outermost first. ``()`` is one run of bytes; ``(0,)`` is no copy.
    shape: Ints
    # Never negative, and descending, except that strides of 0 (several elements share memory) come
    # first.
    dst_strides: Ints
    src_strides: Ints
    # The caller's, or a multiple of it if runs of bytes are contiguous on both sides.
    itemsize: int
    # From the caller's pointers to the first item: not 0 if an axis was flipped.
    dst_offset: int = 0
    src_offset: int = 0


@lru_cache(1024)
def canonical(shape: Ints, dst_strides: Ints, src_strides: Ints, itemsize: int) -> Canonical:
    """Restate a copy from one layout to another with the fewest axes and the widest items.

    As in transposition libraries (HPTT, cuTENSOR, Eigen, CCCL's ``copy``, NVIDIA/cccl#7823), axes
    of extent 1 are dropped; axes with negative destination strides are reversed; axes are sorted by
    destination stride, so that the destination is written forwards; neighboring axes that step as
    one on both sides are fused; and the last axis becomes part of the item if it is contiguous on
    both sides. Only the order of the moves changes, which matters only if the destination overlaps
    itself.

    Strides are in **bytes** and may be negative or zero. A copy between contiguous layouts of the
    same axis order has ``shape == ()``. ValueError if the lengths of the tuples differ.
    """
    if not len(shape) == len(dst_strides) == len(src_strides):
        raise ValueError(
            f"shape has {len(shape)} axes, dst_strides {len(dst_strides)}, "
            f"src_strides {len(src_strides)}: pass one stride per axis"
        )
    axes = []
    dst_offset = src_offset = 0
    for extent, dst, src in zip(shape, dst_strides, src_strides, strict=True):
        if extent == 1:
            continue
        if extent == 0:
            return Canonical((0,), (itemsize,), (itemsize,), itemsize)
        if dst < 0:
            dst_offset += (extent - 1) * dst
            src_offset += (extent - 1) * src
            dst, src = -dst, -src
        axes.append((dst, src, extent))
    if not axes:
        return Canonical((), (), (), itemsize)
    if len(axes) > 1:
        axes = _fused(axes)
    dst, src, extent = axes[-1]
    if dst == itemsize == src:
        itemsize *= extent
        axes.pop()
    to, start, extents = (tuple([axis[k] for axis in axes]) for k in range(3))
    return Canonical(extents, to, start, itemsize, dst_offset, src_offset)


def _fused(axes: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Sort ``(dst stride, src stride, extent)`` by stride, and fuse axes that step as one."""
    axes.sort(key=lambda axis: (axis[0] != 0, -axis[0], -abs(axis[1])))  # outermost first
    fused = [axes[0]]
    for dst, src, extent in axes[1:]:
        outer_dst, outer_src, outer_extent = fused[-1]
        if outer_dst == dst * extent and outer_src == src * extent:
            fused[-1] = (dst, src, outer_extent * extent)
        else:
            fused.append((dst, src, extent))
    return fused


class Memory:
    """Memory for ``numpy.asarray``, which keeps it (array interface 3); strides in bytes."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(
        self,
        address: int,
        shape: Ints,
        strides: Ints | None,
        typestr: str,
        readonly: bool = False,
        owner: object = None,
    ) -> None:
        self.owner = owner
        self.__array_interface__ = {
            "data": (address, readonly),
            "shape": shape,
            "strides": strides,
            "typestr": typestr,
            "version": 3,
        }
