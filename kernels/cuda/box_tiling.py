"""Which axes of a nest make the runs and the lines of boxes, and where the grid cuts them.

Costs are bytes moved per byte of the result, by loads and stores of sectors: at least 2.
"""

from collections.abc import Sequence
from math import gcd, prod
from typing import NamedTuple

from arraybridge.kernels.cuda.box_kernel import SHARED_BYTES
from arraybridge.kernels.cuda.plan_types import Axis

_SECTOR = 32  # the least bytes of a memory access
_MAX_SOURCE_BYTES = 17408  # bytes of the source in a box: about 4 vectors per thread
_MAX_RUN_ITEMS = 2**14  # items of a run, for `short`
_MAX_BOX_BYTES = 32768  # bytes of a box in the destination, if the source is repeated
_MIN_DIRECT_BYTES = 64  # bytes of a run on both sides from which on no box is needed
_LONG_BYTES = 512  # bytes of a run, or of a line, that is long enough
_NEAR_BYTES = 32  # bytes: axes whose steps skip no sector of the source are in the window
#: What an H100 can do while it moves 512 bytes at 3 TB/s: passes of the load-store units, and
#: instructions per thread for 16 bytes.
_WAVES, _INSTRUCTIONS = 79, 190


class Box(NamedTuple):
    """A box before its pitches are known. Axes are given by number."""

    cost: float
    run: int  # the number of axes that make a run
    places: list[int]
    lines: list[int]  # axes of the run
    cut_a: int
    cut_b: int


def cheapest(axes: Sequence[Axis], item: int) -> Box | None:
    """Return the cheapest of a few boxes; axes innermost first."""
    near = _window(axes, item)
    best: Box | None = None
    length = item
    for count in range(1, min(3, len(axes)) + 1):
        if axes[count - 1].dst != length:
            break
        for inside in range(1, len(near) + 1):
            box = _cut(axes, item, count, near[:inside])
            if box and (best is None or box.cost < best.cost):
                best = box
        length *= axes[count - 1].extent
        if length >= _LONG_BYTES:
            break
    return best


def _window(axes: Sequence[Axis], item: int) -> list[int]:
    """Return the axes over which the source is dense, or nearly, which a line may span."""
    near, reach = [], item
    for k in sorted(range(len(axes)), key=lambda k: abs(axes[k].src)):
        stride = abs(axes[k].src)
        if stride > max(_NEAR_BYTES, 4 * item) if reach == item else stride > reach + _NEAR_BYTES:
            break
        near.append(k)
        reach += stride * (axes[k].extent - 1)
        if reach > _LONG_BYTES:
            break
    return near


def _cut(axes: Sequence[Axis], item: int, count: int, window: list[int]) -> Box | None:
    """Return the cheapest box with runs of the first `count` axes and lines within `window`."""
    a = count - 1
    places = [k for k in window if k > a][:2]
    if len(places) == 2 and any(axes[k].dst % 4 for k in places) and item < 4:
        places.pop()  # a thread's places have the same address modulo 4: see `_rows`
    lines = [k for k in range(count) if k not in window]
    dense = {*range(count), *places} - {*lines}  # the axes that a line spans
    extent_a, _, stride_a = axes[a]
    inner = prod([axis.extent for axis in axes[:a]])
    if inner > _MAX_RUN_ITEMS:
        return None
    extent_b, b_in_line, above = 1, 0, 1
    if places:
        extent_b, _, stride_b = axes[places[-1]]
        b_in_line = abs(stride_b)
        above = axes[places[0]].extent if len(places) > 1 else 1
    a_in_line = 0 if a in lines else abs(stride_a)
    others = prod([axes[k].extent for k in lines if k != a])
    least = item
    for k in (*range(a), *places[:-1]):
        if k not in lines:
            least += abs(axes[k].src) * (axes[k].extent - 1)
    crooked = gcd(_SECTOR, *[axis.dst for axis in axes[count:]]) < _SECTOR
    beside = [axes[k].src for k in range(len(axes)) if k not in dense and k != a]
    bent = gcd(_SECTOR, *beside) < _SECTOR
    total = extent_a * extent_b
    floor = 0.0 if 0 in lines else _by_banks(axes[0].src, item, above * extent_b)
    best: Box | None = None
    for cut_b in _cuts(extent_b, b_in_line, least):
        line = least + b_in_line * (cut_b - 1)
        most = min(
            extent_a, _MAX_RUN_ITEMS // inner, _MAX_BOX_BYTES // (inner * above * cut_b * item)
        )
        if a in lines:
            most = min(
                most, SHARED_BYTES // (others * (line + 31)), _MAX_SOURCE_BYTES // (others * line)
            )
        else:
            room = min(SHARED_BYTES // others - 31, _MAX_SOURCE_BYTES // others) - line
            if room < 0:
                continue
            if a_in_line:
                most = min(most, room // a_in_line + 1)
        if most < 1:
            continue
        cut_a = _even(extent_a, most, _SECTOR // gcd(_SECTOR, inner * item))
        run = inner * cut_a * item
        line += a_in_line * (cut_a - 1)
        nbytes = run * cut_b * above
        read = others * (cut_a if a in lines else 1)
        cost = 1.0
        if crooked or (cut_a < extent_a and run % _SECTOR):
            cost += 40 / run
        span, number = line, read
        if a in lines and abs(stride_a) <= line:  # adjacent lines: one sector less each
            span, number = line + abs(stride_a) * (cut_a - 1), others
        if (
            bent
            or (number == read and a in lines and stride_a % _SECTOR)
            or (cut_b < extent_b and cut_b * b_in_line % _SECTOR)
            or (cut_a < extent_a and cut_a * a_in_line % _SECTOR)
        ):
            span += 28
        cost += span * number / nbytes
        pieces = -(-extent_a // cut_a) * -(-extent_b // cut_b)
        cost *= 1 + 512 * pieces / (total * inner * above * item)
        if min(line, run) < 128:
            cost *= 1.08
        cost = max(cost, floor)
        if best is None or cost < best.cost:
            best = Box(cost, count, places, lines, cut_a, cut_b)
    return best


def _by_banks(stride: int, item: int, places: int) -> float:
    """Return the cost of reading a run with a stride in shared memory."""
    unit = max(4, item)
    step = abs(stride) * unit // item
    banks = 128 // max(unit, gcd(128, step)) if step else 32
    # A warp writes to one place, or to two or four if there are enough for all rows.
    spread = [(32, 4), *[(lanes, 128 // lanes) for lanes in (16, 8) if lanes * places >= 256]]
    waves = min([16 / item * max(1, lanes / banks) + lines for lanes, lines in spread])
    return 2 * (waves + 8) / _WAVES


def _cuts(extent: int, stride: int, least: int) -> list[int]:
    """Return the steps of the outermost place axis per line, for 64, 128 ... bytes."""
    if extent == 1 or not stride:
        return [extent]
    unit = _SECTOR // gcd(_SECTOR, stride)
    cuts = []
    for line in (64, 128, 256, 512, 1024, 2048):
        cut = max(1, (line - least) // stride + 1)
        if cut > unit // 2:
            cut = max(unit, cut - cut % unit)
        if cut >= extent:
            break
        if cut not in cuts:
            cuts.append(cut)
    return [*cuts, extent]


def _even(extent: int, most: int, unit: int) -> int:
    """Return equal pieces of an extent of at most `most`, if possible multiples of `unit`."""
    pieces = -(-extent // most)
    if pieces == 1:
        return extent
    piece = -(-extent // pieces)
    piece += -piece % unit
    if piece <= most:
        return piece
    return most - most % unit or most


def otherwise(axes: Sequence[Axis], item: int, dst: int, src: int) -> float:
    """Return the cost of copying without a box, in the unit of `Box.cost`."""
    (extent, _, stride), *outside = axes
    length = extent * item
    if stride != item or length < _MIN_DIRECT_BYTES:
        return _by_items(axes, item)
    cost = 2.0
    for start, steps in (
        (dst, [axis.dst for axis in outside]),
        (src, [axis.src for axis in outside]),
    ):
        if gcd(_SECTOR, start, *steps) < _SECTOR:
            cost += (_SECTOR - item) / length
    return cost


def _by_items(axes: Sequence[Axis], item: int) -> float:
    run, dense = item, True
    left, near = 1024, []
    warp, warps = 32, []
    for extent, dst, src in axes:
        dense = dense and dst == run
        if dense:
            run *= extent
        if left > 1:
            near.append((abs(src), min(extent, left)))
            left = -(-left // extent)
        if warp > 1:
            warps.append((abs(src), min(extent, warp)))
            warp = -(-warp // extent)
    sectors = _sectors(near, item, _SECTOR)
    requests = _sectors(warps, item, 128)
    count = prod([extent for _, extent in near])
    cost = 1 + sectors * _SECTOR / (count * item)
    if not dense:
        cost += 28 / run
    waves = (requests / prod([extent for _, extent in warps]) + 1 / 32) * 512 / item
    instructions = 16 / item * (17 + 13 * (len(axes) - 1))
    return max(cost, 2 * waves / _WAVES, 2 * instructions / _INSTRUCTIONS)


def _sectors(steps: list[tuple[int, int]], item: int, sector: int) -> float:
    count, reach = 1, item
    for stride, extent in sorted(steps):
        if stride > reach + sector - item:
            count *= extent
        else:
            reach += stride * (extent - 1)
    return count * (reach + sector - item) / sector
