"""Which kernel copies a nest on a CUDA device, and its launch: pure arithmetic without a device."""

from collections.abc import Iterator
from functools import lru_cache
from math import gcd, prod

from arraybridge.kernels.cuda.box_plan import plan_box
from arraybridge.kernels.cuda.indices import even, outer
from arraybridge.kernels.cuda.plan_types import MAX_PIECES, THREADS, Axis, Plan, division
from arraybridge.kernels.cuda.rows import PIECES
from arraybridge.kernels.cuda.shift import PIECES as SHIFTED
from arraybridge.kernels.cuda.tile import PLAIN, TILE, TILE_BYTES
from arraybridge.layout import Canonical

#: Bytes from which on an item is a row.
MIN_ROW_BYTES = 64

#: Bytes up to which items are copied one by one: tiling would save less than a launch costs.
MAX_UNTILED_BYTES = 32768

#: Pieces from which on a thread has `PIECES` of them: two blocks per multiprocessor, of 128.
_MIN_UNROLLED_PIECES = 2 * 128 * PIECES * THREADS

#: Tiles may be this many times as large as what they transpose.
_MAX_TILE_WASTE = 2

_VECTOR = 16


@lru_cache(1024)
def plan(form: Canonical, dst: int, src: int) -> tuple[Plan, ...]:
    """Return the launches that copy a nest, in any order; none if there is nothing to copy.

    Pass the addresses `dst` and `src` of the first items modulo 16, so that the cache works for
    all. There is one launch, unless the nest has more than about ``MAX_PIECES`` bytes.
    """
    if 0 in form.shape:
        return ()
    axes = [Axis(*a) for a in zip(form.shape, form.dst_strides, form.src_strides, strict=True)]
    axes.reverse()
    # Many elements with one destination: the last one stays, as in a loop over them.
    repeated = sum((axis.extent - 1) * axis.src for axis in axes if axis.dst == 0)
    axes = [axis for axis in axes if axis.dst]
    made = []
    for part, to, at in _parts(axes, form.itemsize, 0, repeated):
        one = _one(part, form.itemsize, (dst + to) % _VECTOR, (src + at) % _VECTOR)
        made.append(one._replace(dst_offset=one.dst_offset + to, src_offset=one.src_offset + at))
    return tuple(made)


def _parts(
    axes: list[Axis], item: int, dst_offset: int, src_offset: int
) -> Iterator[tuple[list[Axis], int, int]]:
    """Yield a nest and its offsets, halved along the outermost axis while it is too large."""
    if not axes or item * prod([axis.extent for axis in axes]) <= MAX_PIECES:
        yield axes, dst_offset, src_offset
        return
    *inner, (extent, dst, src) = axes
    half = extent // 2
    if half > 128:
        half -= half % 128
    for first, count in ((0, half), (half, extent - half)):
        part = [*inner, Axis(count, dst, src)] if count > 1 else inner
        yield from _parts(part, item, dst_offset + first * dst, src_offset + first * src)


def _one(axes: list[Axis], item: int, dst: int, src: int) -> Plan:
    """Plan a nest that fits one launch: axes innermost first, addresses modulo 16."""
    if not axes:
        return Plan("memcpy", (), 1, steps=(item,))
    width = gcd(item, _common(dst, src, *[a.dst for a in axes], *[a.src for a in axes]))
    tiled = item * prod([axis.extent for axis in axes]) > MAX_UNTILED_BYTES
    if item >= MIN_ROW_BYTES:
        return _runs(axes, item, width, dst, src, tiled)
    if item > width:
        axes = [Axis(item // width, width, width), *axes]
    nest = axes, width, dst, src
    made = None
    if axes[0].dst == width:
        made = _stream(*nest) or _split(*nest) or _merge(*nest)
        if made is None and tiled:
            made = _transpose(*nest) or plan_box(*nest)
    return made or _pieces("gather", width, axes)


def _common(*numbers: int) -> int:
    """Return the largest power of two, at most 16, that divides all numbers."""
    return gcd(_VECTOR, *numbers)


def _runs(axes: list[Axis], length: int, width: int, dst: int, src: int, tiled: bool) -> Plan:
    """Plan runs of bytes that are contiguous on both sides."""
    if width < _VECTOR and tiled:
        boxed = plan_box([Axis(length // width, width, width), *axes], width, dst, src)
        if boxed is not None:
            return boxed
    if width >= 8 or length < 2 * MIN_ROW_BYTES or not tiled:
        vectors = length // width
        within = [Axis(vectors, width, width)] if vectors > 1 else []
        return _pieces("rows", width, [*within, *axes])
    return _shifted("copy", width, length, axes, dst)


def _shifted(mode: str, unit: int, length: int, axes: list[Axis], dst: int) -> Plan:
    """Plan `shift` for runs of `length` bytes; `axes` are those outside the runs."""
    aligned = _common(dst, *[axis.dst for axis in axes])
    vectors = -(-(length + (_VECTOR - unit if aligned < _VECTOR else 0)) // _VECTOR)
    total = vectors * prod([axis.extent for axis in axes])
    span = THREADS if total < _MIN_UNROLLED_PIECES else SHIFTED * THREADS
    within = [Axis(vectors, 0, 0)]
    alike = span > THREADS and even(within, SHIFTED) is not None
    extents, divisions, steps = outer(axes)
    return Plan(
        "shift",
        (unit, len(axes), mode, alike),
        -(-total // span),
        (total, span, vectors, length, *extents),
        (*division(vectors), *divisions),
        steps,
    )


def _stream(axes: list[Axis], width: int, dst: int, src: int) -> Plan | None:
    """Plan an item repeated, or items in reverse order, along the destination's run."""
    (extent, _, step), outside = axes[0], axes[1:]
    length = extent * width
    if step not in (0, -width) or length < MIN_ROW_BYTES:
        return None
    if step == 0 and _common(length, dst, *[axis.dst for axis in outside]) == _VECTOR:
        vectors = Axis(length // _VECTOR, _VECTOR, 0)
        return _pieces("rows", _VECTOR, [vectors, *outside], "fill", width)
    if width == _VECTOR:
        return None
    mode = "fill" if step == 0 else "reverse"
    return _shifted(mode, width, length, outside, dst)


def _split(axes: list[Axis], width: int, dst: int, src: int) -> Plan | None:
    """Plan splitting two to four channels of the source, or some of them."""
    (extent, _, step), *rest = axes
    channels, crooked = divmod(step, width)
    length = extent * width
    if crooked or not 2 <= channels <= 4 or length % _VECTOR or length < MIN_ROW_BYTES or width > 8:
        return None
    plane = next((a for a in rest if abs(a.src) == width and a.extent <= channels), None)
    first = src % _VECTOR // width
    count, by, apart = 1, 0, 0
    if plane is not None:
        rest.remove(plane)
        count, apart, by = plane.extent, plane.dst, plane.src // width
    kept = tuple([first + by * i for i in range(count)])
    offset = -first * width
    if not 0 <= min(kept) <= max(kept) < channels or count < min(channels, width):
        return None
    if _common(dst, src + offset, apart, *[a.dst for a in rest], *[a.src for a in rest]) < _VECTOR:
        return None
    nest = [Axis(length // _VECTOR, _VECTOR, channels * _VECTOR), *rest]
    total = prod([axis.extent for axis in nest])
    extents, divisions, steps = outer(nest)
    return Plan(
        "split",
        (width, channels, kept, len(nest)),
        -(-total // THREADS),
        (total, *extents),
        divisions,
        (apart, *steps),
        src_offset=offset,
    )


def _merge(axes: list[Axis], width: int, dst: int, src: int) -> Plan | None:
    if len(axes) < 2 or width > 8:
        return None
    (channels, _, apart), (extent, step, near), *rest = axes
    length = extent * width
    if not 2 <= channels <= 4 or step != channels * width or near != width or length % _VECTOR:
        return None
    strides = [apart, *[axis.dst for axis in rest], *[axis.src for axis in rest]]
    if length < MIN_ROW_BYTES or _common(dst, src, *strides) < _VECTOR:
        return None
    vectors = length // _VECTOR
    nest = [Axis(vectors, channels * _VECTOR, _VECTOR), *rest]
    total = prod([axis.extent for axis in nest])
    row = vectors * channels * _VECTOR  # bytes
    dense = all(axis.dst == row * prod([a.extent for a in rest[:k]]) for k, axis in enumerate(rest))
    extents, divisions, steps = outer(nest)
    return Plan(
        "merge",
        (width, channels, len(nest), dense),
        -(-total // THREADS),
        (total, vectors * channels, *extents),
        (*division(vectors * channels), *divisions),
        (apart, *steps),
    )


def _transpose(axes: list[Axis], width: int, dst: int, src: int) -> Plan | None:
    """Plan tiles of two axes, one dense in the destination, the other in the source."""
    down = axes[0]
    across = next((axis for axis in axes[1:] if abs(axis.src) == width), None)
    if across is None:
        return None
    rest = [axis for axis in axes[1:] if axis is not across]
    dst_offset = src_offset = 0
    if across.src < 0:  # walked from its end, so that the source is read forwards
        dst_offset, src_offset = ((across.extent - 1) * step for step in across[1:])
        across = Axis(across.extent, -across.dst, -across.src)
    strides = [across.dst, down.src, *[a.dst for a in rest], *[a.src for a in rest]]
    aligned = _common(dst + dst_offset, src + src_offset, *strides)
    aligned = _common(aligned, down.extent * width, across.extent * width)
    tiled = aligned == _VECTOR
    widths = (TILE if tiled else PLAIN).get(width)
    if widths is None:
        return None
    # The shape that wastes the least of its tiles.
    area = TILE_BYTES // width
    tiles = [(-(-down.extent // (area // n)), -(-across.extent // n), n) for n in widths]
    high, wide, columns = min(tiles, key=lambda tile: tile[0] * tile[1])
    if high * wide * TILE_BYTES > _MAX_TILE_WASTE * down.extent * across.extent * width:
        return None
    extents, divisions, steps = outer(rest)
    return Plan(
        "tile" if tiled else "plain",
        (width, columns, len(rest)),
        high * wide * prod([axis.extent for axis in rest]),
        (down.extent, across.extent, high, wide, *extents),
        (*division(high), *division(wide), *divisions),
        (down.src, across.dst, *steps),
        dst_offset,
        src_offset,
    )


def _pieces(kernel: str, width: int, axes: list[Axis], mode: str = "copy", item: int = 16) -> Plan:
    total = prod([axis.extent for axis in axes])
    span = THREADS if total < _MIN_UNROLLED_PIECES else PIECES * THREADS
    extents, divisions, steps = outer(axes)
    constants: tuple[object, ...] = (width, len(axes))
    if kernel == "rows":
        apart = even(axes, PIECES) if span > THREADS else None
        constants = (*constants, mode, item, apart is not None)
        steps = (*(apart or ()), *steps)
    return Plan(kernel, constants, -(-total // span), (total, span, *extents), divisions, steps)
