"""Planning a box: which axes make the runs and the lines, where the grid cuts them, and pitches."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod
from typing import NamedTuple

from arraybridge.kernels.cuda.box import SHARED
from arraybridge.kernels.cuda.indices import outer
from arraybridge.kernels.cuda.record import MOST, THREADS, Axis, Plan, division

__all__ = ["plan_box", "short"]

_SECTOR = 32  # bytes that memory moves at least
_VECTOR = 16
_BUDGET_MOST = 17408  # bytes of the source in a box: about 4 vectors a thread
_MOST_ITEMS = 2**14  # items of a run, for `short`
_LARGEST = 32768  # bytes of a box in the destination, where the source repeats itself
_RUN = 64  # bytes of a run on both sides from which on it is copied as one, without a box
_LONG = 512  # bytes of a run, or of a line, that is long enough
_NEAR = 32  # bytes: an axis whose step leaves no sector of the source out lies in the window
#: What an H100 does while it moves 512 bytes at 3 TB/s: passes of the load-store units, and
#: instructions of a thread for 16 bytes that it can issue in practice.
_WAVES, _INSTRUCTIONS = 79, 190
_FAR = 2**31 - 2**17  # bytes from which on distances within a box are 64-bit


class _Box(NamedTuple):
    """A box before its pitches are known. Axes are numbers."""

    cost: float
    run: int  # how many axes make a run
    places: list[int]
    lines: list[int]  # axes of the run
    cut_a: int
    cut_b: int


class _Row(NamedTuple):
    """How a block's threads are laid over its places: rows of `lanes` of them, each at its own."""

    cost: float  # cycles of a multiprocessor for a warp's share, if no reads collide
    reads: int
    lanes: int
    chunk: int  # items of the run that make a place, where there are no others
    alignment: int  # bytes: where lane 0 of a run begins


def short(divisor: int, most: int) -> tuple[int, int]:
    """Return ``(m, s)`` such that ``n // divisor == n * m >> s`` for 0 <= n <= most < 2**15.

    ``n * m`` stays below 2**32.
    """
    divisor = min(divisor, most + 1)
    shift = (most * divisor).bit_length()
    return (1 << shift) // divisor + 1, shift


def plan_box(axes: Sequence[Axis], item: int, dst: int, src: int) -> Plan | None:
    """Return the launch that copies a nest box by box; None where that does not pay.

    Parameters
    ----------
    axes : sequence of Axis
        Innermost first, in the order of the destination's strides; ``axes[0].dst == item``.
    item : int
        Bytes of an item: 1, 2, 4, 8 or 16. It divides the addresses and all strides.
    dst, src : int
        The addresses of the first items, modulo 16.
    """
    if any(axis.extent > MOST for axis in axes):
        return None
    near = _window(axes, item)
    best: _Box | None = None
    length = item
    for count in range(1, min(3, len(axes)) + 1):
        if axes[count - 1].dst != length:
            break
        for inside in range(1, len(near) + 1):
            box = _cut(axes, item, count, near[:inside])
            if box and (best is None or box.cost < best.cost):
                best = box
        length *= axes[count - 1].extent
        if length >= _LONG:
            break
    if best is None or best.cost > _otherwise(axes, item, dst, src):
        return None
    return _laid_out(axes, item, dst, src, best)


def _window(axes: Sequence[Axis], item: int) -> list[int]:
    """Return the axes over which the source is dense, or nearly: those that a line may span."""
    near, reach = [], item
    for k in sorted(range(len(axes)), key=lambda k: abs(axes[k].src)):
        stride = abs(axes[k].src)
        if stride > max(_NEAR, 4 * item) if reach == item else stride > reach + _NEAR:
            break
        near.append(k)
        reach += stride * (axes[k].extent - 1)
        if reach > _LONG:
            break
    return near


def _cut(axes: Sequence[Axis], item: int, count: int, window: list[int]) -> _Box | None:
    """Return the cheapest box whose runs are of the first axes and whose lines span others."""
    a = count - 1
    places = [k for k in window if k > a][:2]
    if len(places) == 2 and any(axes[k].dst % 4 for k in places) and item < 4:
        places.pop()  # a thread's places have the same address modulo 4: see `_rows`
    lines = [k for k in range(count) if k not in window]
    dense = {*range(count), *places} - {*lines}  # the axes that a line spans
    extent_a, _, stride_a = axes[a]
    inner = prod([axis.extent for axis in axes[:a]])
    if inner > _MOST_ITEMS:
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
    bent = gcd(_SECTOR, *[axes[k].src for k in range(len(axes)) if k not in dense]) < _SECTOR
    total = extent_a * extent_b
    best: _Box | None = None
    for cut_b in _cuts(extent_b, b_in_line, least):
        line = least + b_in_line * (cut_b - 1)
        most = min(extent_a, _MOST_ITEMS // inner, _LARGEST // (inner * above * cut_b * item))
        if a in lines:
            most = min(most, SHARED // (others * (line + 31)), _BUDGET_MOST // (others * line))
        else:
            room = min(SHARED // others - 31, _BUDGET_MOST // others) - line
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
        if (
            bent
            or (cut_b < extent_b and cut_b * b_in_line % _SECTOR)
            or (cut_a < extent_a and cut_a * a_in_line % _SECTOR)
        ):
            cost += (line + 28) * read / nbytes
        else:
            cost += line * read / nbytes
        pieces = -(-extent_a // cut_a) * -(-extent_b // cut_b)
        cost *= 1 + 512 * pieces / (total * inner * above * item)
        if min(line, run) < 128:
            cost *= 1.08
        if best is None or cost < best.cost:
            best = _Box(cost, count, places, lines, cut_a, cut_b)
    return best


def _cuts(extent: int, stride: int, least: int) -> list[int]:
    """Return how much of the outermost place axis a line may span: up to 64, 128 ... bytes."""
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
    """Return a piece of at most `most` into which an extent goes evenly, in multiples of `unit`."""
    pieces = -(-extent // most)
    if pieces == 1:
        return extent
    piece = -(-extent // pieces)
    piece += -piece % unit
    if piece <= most:
        return piece
    return most - most % unit or most


def _otherwise(axes: Sequence[Axis], item: int, dst: int, src: int) -> float:
    """Return what copying without a box costs, in the unit of `_Box.cost`."""
    (extent, _, stride), *outside = axes
    length = extent * item
    if stride != item or length < _RUN:
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
    """Return what copying item by item costs."""
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
    instructions = 16 / item * (8 + 11 * (len(axes) - 1))
    return max(cost, 2 * waves / _WAVES, 2 * instructions / _INSTRUCTIONS)


def _sectors(steps: list[tuple[int, int]], item: int, sector: int) -> float:
    count, reach = 1, item
    for stride, extent in sorted(steps):
        if stride > reach + sector - item:
            count *= extent
        else:
            reach += stride * (extent - 1)
    return count * (reach + sector - item) / sector


def _laid_out(axes: Sequence[Axis], item: int, dst: int, src: int, box: _Box) -> Plan | None:
    """Return the launch of a box."""
    a = box.run - 1
    places, lines, cut_a, cut_b = box.places, box.lines, box.cut_a, box.cut_b
    b = places[-1] if places else -1
    none = Axis(1, 0, 0)
    axis_a, axis_b = axes[a], axes[b] if places else none
    extent = [axis.extent for axis in axes]
    extent[a] = cut_a
    if places:
        extent[b] = cut_b
    window = [k for k in (*range(box.run), *places) if k not in lines]
    rest = [axes[k] for k in range(box.run, len(axes)) if k not in places]
    fixed = [k for k in window if k not in (a, b)]
    low = sum([min(0, axes[k].src) * (extent[k] - 1) for k in fixed])
    span = item + sum([abs(axes[k].src) * (extent[k] - 1) for k in fixed])
    whole = item + sum([abs(axes[k].src) * (extent[k] - 1) for k in window])
    # Lines that begin at multiples of 16 need no vector more than they are long.
    cut = [extent[k] * axes[k].src for k in window if extent[k] < axes[k].extent]
    starts = [src, *[axes[k].src for k in lines], *[axis.src for axis in rest], *cut]
    straight = gcd(_VECTOR, *starts) == _VECTOR and all(axes[k].src >= 0 for k in window)
    vectors = (whole + (_VECTOR - 1 if straight else 2 * _VECTOR - 2)) // _VECTOR
    run_items = prod(extent[: box.run])
    inner = run_items // cut_a
    cheapest, row, pitch, tried = float("inf"), None, dict[int, int](), set()
    for one in _rows(axes, item, box, extent, dst):
        lanes = min(one.lanes, 128 // max(4, item))  # that share a pass: the rest is alike
        if one.cost >= cheapest:
            break
        if lanes in tried:
            continue
        tried.add(lanes)
        laid = _laid_pitches(axes, item, box, extent, whole, one)
        if laid and one.cost + one.reads * (laid[0] - 1) < cheapest:
            cheapest, row, pitch = one.cost + one.reads * (laid[0] - 1), one, laid[1]
    if row is None:
        return None
    lanes, chunk, alignment = row.lanes, row.chunk, row.alignment

    p = [pitch[k] for k in range(box.run)]
    n = [extent[k] for k in range(box.run)]
    line_n = [extent[k] for k in lines]
    line_p = [pitch[k] for k in lines]
    line_s = [axes[k].src for k in lines]
    count = prod(line_n)
    a_lines = count // cut_a if a in lines else 0
    counted = count - a_lines * (cut_a - 1)
    line_excess = _excess(line_n, line_p)
    source_excess = _excess(line_n, line_s)
    beyond = count + 4 * THREADS // vectors + 1
    reach = beyond * abs(line_s[0]) if lines else 0
    for k, excess in enumerate(source_excess):
        reach += beyond // prod(line_n[: k + 1]) * abs(excess)
    far = int(reach > _FAR)
    run_excess = _excess(n, p)
    side = THREADS // lanes
    if not places:
        unit, step, along = chunk, side * chunk, side * chunk * item
        place_pitch, place_excess = chunk // inner * pitch[a], 0
        place_dst, place_far = 0, 0
    else:
        unit, step, along = 1, side, side * axes[places[0]].dst
        place_pitch, place_dst = pitch[places[0]], axes[places[0]].dst
        place_excess, place_far = 0, 0
        if len(places) == 2:
            unit = extent[places[0]]
            place_excess = pitch[places[1]] - unit * place_pitch
            place_far = axes[places[1]].dst - unit * place_dst
    pieces_a, pieces_b = -(-axis_a.extent // cut_a), -(-axis_b.extent // cut_b)
    outer_extents, outer_divisions, outer_steps = outer(rest)

    def padded(values: list[int], length: int) -> list[int]:
        return values + [0] * (length - len(values))

    extents = (
        axis_a.extent, cut_a, pieces_a,
        axis_b.extent, cut_b, pieces_b,
        low, span, 0 if a in lines else axis_a.src, axis_b.src,
        counted, a_lines, vectors,
        *padded(line_p[:1], 1), *padded(line_excess, 2),
        *(padded([0] if far else line_s[:1], 1)), *padded([] if far else source_excess, 2),
        inner, unit, lanes, alignment - 1,
        p[0], *padded(run_excess, 2),
        place_pitch, place_excess,
        step, side * place_pitch,
        *outer_extents,
    )  # fmt: skip
    most = max(count * vectors, 1) + 4 * THREADS
    divisions = (
        *division(pieces_a), *division(pieces_b),
        *short(vectors, most),
        *short(line_n[0] if lines else 1, most), *short(prod(line_n[:2]), most),
        *short(n[0], run_items), *short(prod(n[:2]), run_items),
        *short(unit if len(places) == 2 else 1, prod([extent[k] for k in places])),
        0, lanes.bit_length() - 1,
        *outer_divisions,
    )  # fmt: skip
    steps = (
        axis_a.dst, axis_a.src, axis_b.dst, axis_b.src,
        place_dst, place_far,
        *padded(line_s[:1], 1), *padded(source_excess, 2),
        along,
        *outer_steps,
    )  # fmt: skip
    constants = (item, box.run, len(places), len(lines), far, len(rest))
    grid = pieces_a * pieces_b * prod([axis.extent for axis in rest])
    return Plan("box", constants, grid, extents, divisions, steps)


def _excess(extents: list[int], steps: list[int]) -> list[int]:
    """Return by how much an axis steps further than those before it, for the second axis on."""
    return [steps[k + 1] - extents[k] * steps[k] for k in range(len(steps) - 1)]


def _rows(axes: Sequence[Axis], item: int, box: _Box, extent: list[int], dst: int) -> list[_Row]:
    """Return the ways to lay a block's threads over the places of a box, the cheapest first."""
    unit = max(4, item)
    each = unit // item
    run = prod(extent[: box.run])
    extent_a = extent[box.run - 1]
    inner = run // extent_a
    count = prod([extent[k] for k in box.places])
    steps = [axes[k].dst for k in box.places]
    strides = [axis.dst for axis in axes[box.run :]]
    if extent_a < axes[box.run - 1].extent:
        strides.append(extent_a * axes[box.run - 1].dst)
    crooked = gcd(_VECTOR, dst, *strides) < _VECTOR
    rows = []
    for bits in range(8, 2, -1):
        lanes = 1 << bits
        side = THREADS // lanes  # rows side by side
        span = unit * lanes
        pieces = min(1, lanes // 32) or 32 // lanes  # runs that a warp writes to
        if steps:
            # All places of a thread have the same address modulo the alignment.
            places = [
                (run, count, gcd(_SECTOR, side * steps[0] if len(steps) == 1 else gcd(*steps)))
            ]
        else:
            places = [(run, 1, _SECTOR)] if bits == 8 else []
            if bits >= 5:
                sector = _SECTOR // gcd(_SECTOR, inner * item)
                for most in (lanes * each // inner, 2 * lanes * each // inner):
                    piece = most - most % sector
                    if 0 < piece < extent_a:
                        chunk = piece * inner
                        places.append((chunk, -(-run // chunk), gcd(_SECTOR, chunk * item)))
        for chunk, number, common in places:
            if common % unit and unit < _SECTOR and item < unit:
                continue
            alignment = max(min(common, span), min(unit, _SECTOR))
            units = -(-chunk // each)
            skew = (alignment // unit - 1) // 2 if crooked else 0
            along = -(-(units + skew) // lanes)
            if along > -(-units // lanes) and along < 4:
                alignment, along = min(unit, _SECTOR), -(-units // lanes)
            times = along * -(-number // side)
            lines = max(pieces, unit // 4)
            beside = pieces * (1 - alignment / _SECTOR) if crooked else 0.0
            cost = 8.0 * along + times * (3.2 + 2.6 * each + lines + 1.35 * beside)
            rows.append(_Row(cost, times * each, lanes, chunk, alignment))
    rows.sort()
    return rows


def _laid_pitches(
    axes: Sequence[Axis], item: int, box: _Box, extent: list[int], whole: int, row: _Row
) -> tuple[int, dict[int, int]] | None:
    """Return the passes of a read of shared memory, and the steps of all axes in it.

    The step of an axis that a line spans is the source's. Of the eight pitches of lines that keep
    an address modulo 16, modulo 128, it is the one with the fewest passes.
    """
    pitch = {k: axes[k].src for k in (*range(box.run), *box.places)}

    def laid(extra: dict[int, int]) -> int:
        size = whole + _VECTOR - 1
        for k in box.lines:
            pitch[k] = size + (axes[k].src - size) % _VECTOR + extra[k]
            size += pitch[k] * (extent[k] - 1)
        return size + _VECTOR - 1

    extra = dict.fromkeys(box.lines, 0)
    if laid(extra) > SHARED:
        return None
    # The indices of a warp's lanes: along the run, and at the places of other rows.
    unit = max(4, item)
    each, count, a = unit // item, 128 // unit, box.run - 1
    lanes = min(row.lanes, count)
    digits: dict[int, list[int]] = {}
    along = [i * each for i in range(lanes)]
    for k in range(a):
        n = extent[k]
        digits[k] = [i % n for i in along]
        along = [i // n for i in along]
    digits[a] = along
    if lanes < count:
        up = list(range(count // lanes))
        digits = {k: n * len(up) for k, n in digits.items()}
        for k in box.places[:-1]:
            n = extent[k]
            digits[k] = [i % n for i in up for _ in range(lanes)]
            up = [i // n for i in up]
        for k in box.places[-1:]:
            digits[k] = [i for i in up for _ in range(lanes)]
    fixed = [0] * count
    for k, along in digits.items():
        if k not in box.lines:
            stride = axes[k].src
            fixed = [x + i * stride for x, i in zip(fixed, along, strict=True)]
    for k in box.lines:
        others = fixed
        for j in box.lines:
            if j != k:
                step = pitch[j]
                others = [x + i * step for x, i in zip(others, digits[j], strict=True)]
        base, indices, most, found = pitch[k], digits[k], 0, 0
        for more in range(0, 128, _VECTOR):
            step = base + more
            banks = len(
                {(x + i * step) // unit % count for x, i in zip(others, indices, strict=True)}
            )
            if banks > most:
                extra[k] = more
                if laid(extra) > SHARED:
                    break
                most, found = banks, more
                if most == count:
                    break
        extra[k] = found
        laid(extra)
    for k in box.lines:
        step = pitch[k]
        fixed = [x + i * step for x, i in zip(fixed, digits[k], strict=True)]
    banks_of = [word % count for word in {x // unit for x in fixed}]
    return max([banks_of.count(bank) for bank in set(banks_of)]), pitch
