"""Which kernel copies a nest on a CUDA device, and its launch: pure arithmetic, no device."""

from __future__ import annotations

from functools import lru_cache
from math import gcd, prod

from arraybridge.kernels.cuda.indices import outer
from arraybridge.kernels.cuda.record import MOST, THREADS, Axis, Plan
from arraybridge.kernels.cuda.rows import PIECES
from arraybridge.layout import Canonical

__all__ = ["ROW", "SMALL", "name", "plan"]

#: Bytes from which on an item is a row.
ROW = 64

#: Bytes up to which items go one by one: a launch costs more than what tiling them would save.
SMALL = 32768

#: Pieces from which on a thread has `PIECES` of them: two blocks for each of 128 multiprocessors.
_MANY = 2 * 128 * PIECES * THREADS

_VECTOR = 16


@lru_cache(1024)
def plan(form: Canonical, dst: int, src: int, small: int = SMALL) -> tuple[Plan, ...]:
    """Return the launches that copy a nest, in any order; none where there is nothing to copy.

    Parameters
    ----------
    form : Canonical
        The nest; see ``arraybridge.layout.canonical``.
    dst, src : int
        The addresses of its first items, of which only the remainders modulo 16 matter: pass
        those, so that the cache serves all.
    small : int
        Bytes up to which a copy is not worth tiling.

    Returns
    -------
    tuple of Plan
        One, save where the nest has more than ``MOST`` bytes or so.
    """
    if 0 in form.shape:
        return ()
    axes = [Axis(*a) for a in zip(form.shape, form.dst_strides, form.src_strides, strict=True)]
    axes.reverse()
    made: list[Plan] = []
    # Many elements into one cell: the last one stays, as in a loop over them.
    repeated = sum((axis.extent - 1) * axis.src for axis in axes if axis.dst == 0)
    axes = [axis for axis in axes if axis.dst]
    _parts(axes, form.itemsize, dst, src, 0, repeated, small, made)
    return tuple(made)


def _parts(
    axes: list[Axis],
    item: int,
    dst: int,
    src: int,
    dst_offset: int,
    src_offset: int,
    small: int,
    made: list[Plan],
) -> None:
    """Append the plans of a nest, halved along its outermost axis while it is too large."""
    size = item * prod([axis.extent for axis in axes])
    if axes and size > MOST:
        extent, dst_stride, src_stride = axes[-1]
        half = extent // 2
        if half > 128:
            half -= half % 128
        for first, count in ((0, half), (half, extent - half)):
            part = [*axes[:-1], Axis(count, dst_stride, src_stride)] if count > 1 else axes[:-1]
            offsets = dst_offset + first * dst_stride, src_offset + first * src_stride
            _parts(part, item, dst, src, *offsets, small, made)
        return
    one = _one(axes, item, (dst + dst_offset) % _VECTOR, (src + src_offset) % _VECTOR, size, small)
    made.append(
        one._replace(dst_offset=one.dst_offset + dst_offset, src_offset=one.src_offset + src_offset)
    )


def _one(axes: list[Axis], item: int, dst: int, src: int, size: int, small: int) -> Plan:
    if not axes:
        return Plan("memcpy", (), 1, steps=(item,))
    unit = gcd(_VECTOR, dst, src, *[a.dst for a in axes], *[a.src for a in axes])
    width = gcd(unit, item)
    if item > width:
        axes = [Axis(item // width, width, width), *axes]
    return _pieces("rows" if item >= ROW else "gather", width, axes)


def _pieces(kernel: str, width: int, axes: list[Axis], mode: str = "copy", item: int = 16) -> Plan:
    """`rows` or `gather`."""
    total = prod([axis.extent for axis in axes])
    span = THREADS if total < _MANY else PIECES * THREADS
    extents, divisions, steps = outer(axes)
    constants = (width, len(axes), mode, item) if kernel == "rows" else (width, len(axes))
    return Plan(kernel, constants, -(-total // span), (total, span, *extents), divisions, steps)


def name(plan: Plan) -> str:
    """What a plan is called where it is explained, as ``"cuda rows 16 bytes, reversed"``."""
    if plan.kernel == "memcpy":
        return "cuda memcpy"
    width = plan.constants[0]
    said = f"cuda {plan.kernel} {width} byte{'s' if width != 1 else ''}"
    if plan.kernel == "rows" and plan.constants[2] != "copy":
        said += {"fill": ", repeated", "reverse": ", reversed"}[str(plan.constants[2])]
    return said
