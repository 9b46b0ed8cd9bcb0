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
    if best is None or best.cost > _by_items(axes, item):
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
        places.pop()  # a thread's places have the same address modulo 4: see `_lanes`
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
    """Return how much of the outermost place axis a line may span: up to 128, 256 ... bytes."""
    if extent == 1 or not stride:
        return [extent]
    unit = _SECTOR // gcd(_SECTOR, stride)
    cuts = []
    for line in (64, 128, 256, 512, 1024):
        cut = max(1, (line - least) // stride + 1)
        if cut > unit:
            cut -= cut % unit
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


def _by_items(axes: Sequence[Axis], item: int) -> float:
    """Return what copying item by item costs, in the unit of `_Box.cost`."""
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
    lanes, chunk = _lanes(axes, item, box, extent, run_items)
    pitch = _pitches(axes, item, box, extent, whole, lanes, chunk // inner if chunk else 1)
    if pitch is None:
        return None
    units = max(4, item)
    rows = THREADS // lanes
    if places:
        alignment = gcd(_SECTOR, *[(rows if len(places) == 1 else 1) * axes[k].dst for k in places])
        several = run_items * item > lanes * units
    else:
        alignment = gcd(_SECTOR, chunk * item) if chunk < run_items else _SECTOR
        several = chunk * item > lanes * units
    if not several:
        alignment = units
    alignment = max(min(alignment, units * lanes), min(units, _SECTOR))

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
    q = [pitch[k] for k in places]
    if not places:
        place_pitch, place_excess, unit = chunk // inner * pitch[a], 0, chunk
        place_dst, place_far = 0, 0
    else:
        place_pitch, place_dst = q[0], axes[places[0]].dst
        place_excess, place_far, unit = 0, 0, 1
        if len(places) == 2:
            unit = extent[places[0]]
            place_excess = q[1] - unit * q[0]
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
        place_pitch, place_excess, rows,
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
        *outer_steps,
    )  # fmt: skip
    constants = (item, box.run, len(places), len(lines), far, len(rest))
    grid = pieces_a * pieces_b * prod([axis.extent for axis in rest])
    return Plan("box", constants, grid, extents, divisions, steps)


def _excess(extents: list[int], steps: list[int]) -> list[int]:
    """Return by how much an axis steps further than those before it, for the second axis on."""
    return [steps[k + 1] - extents[k] * steps[k] for k in range(len(steps) - 1)]


def _lanes(
    axes: Sequence[Axis], item: int, box: _Box, extent: list[int], run: int
) -> tuple[int, int]:
    """Return how many lanes write side by side in one run, and the items of a chunk of a run.

    They are those with which a thread has least to do.
    """
    unit = max(4, item)
    each = unit // item
    best, found = float("inf"), (THREADS, run)
    count = prod([extent[k] for k in box.places])
    inner = run // extent[box.run - 1]
    steps = [axes[k].dst for k in box.places]
    for bits in range(8, 2, -1):
        lanes = 1 << bits
        rows = THREADS // lanes
        lines = max(unit // 4, 1) if lanes >= 32 else 32 // lanes * -(-lanes * unit // 128)
        if steps:
            # A thread's places have the same address modulo a word.
            step = rows * steps[0] if len(steps) == 1 else gcd(*steps)
            if step * len(steps) % unit:
                continue
            chunks = [(run, count)]
        elif bits == 8:
            chunks = [(run, 1)]
        else:
            chunks = []
        if not steps and bits >= 5:
            sector = _SECTOR // gcd(_SECTOR, inner * item)
            for times in (1, 2):
                piece = lanes * each * times // inner
                piece -= piece % sector
                if 0 < piece < extent[box.run - 1]:
                    chunks.append((piece * inner, -(-extent[box.run - 1] // piece)))
        for chunk, places in chunks:
            along = -(-chunk // (each * lanes))
            cost = along * (20 + -(-places // rows) * (8 + 4 * each + 4 * lines))
            if cost < best:
                best, found = cost, (lanes, chunk)
    return found


def _pitches(
    axes: Sequence[Axis],
    item: int,
    box: _Box,
    extent: list[int],
    whole: int,
    lanes: int,
    piece: int,
) -> dict[int, int] | None:
    """Return the steps in shared memory: the source's within a line, and pitches of lines.

    Of the eight pitches that keep a line's address modulo 16, modulo 128, the one with which the
    lanes of a warp meet fewest others in a bank.
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
    if not box.lines:
        return pitch
    # The indices of a warp's lanes: along the run, and at the places of other rows.
    unit = max(4, item)
    digits = []
    for lane in range(128 // unit):
        i, row = lane % lanes * (unit // item), lane // lanes
        at = {}
        for k in range(box.run):
            i, at[k] = divmod(i, extent[k]) if k < box.run - 1 else (0, i)
        if not box.places:
            at[box.run - 1] += row * piece
        for k in box.places:
            row, at[k] = divmod(row, extent[k]) if k != box.places[-1] else (0, row)
        digits.append(at)
    inside = [sum([n * axes[k].src for k, n in at.items() if k not in box.lines]) for at in digits]
    for k in box.lines:
        best, found = 99, 0
        for more in range(0, 128, _VECTOR):
            extra[k] = more
            if laid(extra) > SHARED:
                break
            words = {
                (x + sum([at[j] * pitch[j] for j in box.lines])) // unit
                for x, at in zip(inside, digits, strict=True)
            }
            banks = [0] * 32
            for word in words:
                banks[word * unit // 4 % 32] += 1
            if max(banks) < best:
                best, found = max(banks), more
                if best == 1:
                    break
        extra[k] = found
    laid(extra)
    return pitch
