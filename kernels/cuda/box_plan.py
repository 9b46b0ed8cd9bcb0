"""Planning a box: the threads of its runs, its lines in shared memory, and its launch."""

from collections.abc import Sequence
from math import gcd, prod
from typing import NamedTuple

from arraybridge.kernels.cuda import box_kernel as at
from arraybridge.kernels.cuda.box_kernel import SHARED_BYTES
from arraybridge.kernels.cuda.box_tiling import Box, cheapest, otherwise
from arraybridge.kernels.cuda.indices import outer
from arraybridge.kernels.cuda.plan_types import MAX_PIECES, THREADS, Axis, Plan, division

_SECTOR = 32
_VECTOR = 16


def short(divisor: int, most: int) -> tuple[int, int]:
    """Return ``(m, s)`` such that ``n // divisor == n * m >> s`` for 0 <= n <= most < 46000.

    ``n * m`` stays below 2**32.
    """
    divisor = min(divisor, most + 1)
    shift = (most * divisor).bit_length()
    return (1 << shift) // divisor + 1, shift


def plan_box(axes: Sequence[Axis], item: int, dst: int, src: int) -> Plan | None:
    """Return the launch that copies a nest box by box; None if that does not pay.

    The axes are innermost first, in the order of the destination's strides; ``axes[0].dst ==
    item``. An item has 1, 2, 4, 8 or 16 bytes, which divide the addresses and all strides; `dst`
    and `src` are the addresses of the first items, modulo 16.
    """
    if any(axis.extent > MAX_PIECES for axis in axes):
        return None
    best = cheapest(axes, item)
    if best is None or best.cost > otherwise(axes, item, dst, src):
        return None
    return _laid_out(axes, item, dst, src, best)


def _laid_out(axes: Sequence[Axis], item: int, dst: int, src: int, box: Box) -> Plan | None:
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
    # Lines that begin at multiples of 16 need no extra vector.
    cut = [extent[k] * axes[k].src for k in window if extent[k] < axes[k].extent]
    starts = [src, *[axes[k].src for k in lines], *[axis.src for axis in rest], *cut]
    straight = gcd(_VECTOR, *starts) == _VECTOR and all(axes[k].src >= 0 for k in window)
    vectors = (whole + (_VECTOR - 1 if straight else 2 * _VECTOR - 2)) // _VECTOR
    run_items = prod(extent[: box.run])
    inner = run_items // cut_a
    least, row, pitch, skew, tried = float("inf"), None, dict[int, int](), 0, set()
    for one in _rows(axes, item, box, extent, dst):
        lanes = min(one.lanes, 128 // max(4, item))  # lanes that share a pass
        if one.cost >= least:
            break
        if lanes in tried:
            continue
        tried.add(lanes)
        laid = _pitches(axes, item, box, extent, whole, one)
        if laid is None:
            continue
        cost = one.cost + 1.5 * one.reads * (laid[0] - 1)
        if cost < least:
            least, row, (_, pitch, skew) = cost, one, laid
    if row is None:
        return None
    lanes, chunk, alignment = row.lanes, row.chunk, row.alignment

    n = [extent[k] for k in range(box.run)]
    line_n = [extent[k] for k in lines]
    line_pitch = _excess(line_n, [pitch[k] for k in lines])
    line_stride = _excess(line_n, [axes[k].src for k in lines])
    count = prod(line_n)
    a_lines = count // cut_a if a in lines else 0
    counted = count - a_lines * (cut_a - 1)
    beyond = count + 4 * THREADS // vectors + 1  # lines that a thread may compute
    run_pitch = _excess(n, [pitch[k] for k in range(box.run)])
    if skew:  # as if a run had one axis within a word and another over words
        n = line_n = [4 // item]
        line_pitch, run_pitch = [*line_pitch, skew], [*run_pitch, skew]
    side = THREADS // lanes
    # Runs that neither begin nor end within a word have no edges.
    ends = [axis.dst for axis in axes[box.run :]]
    ends += [inner * item * n for n in (cut_a, axis_a.extent)]
    edges = int(gcd(4, dst, *ends) < 4)
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
    most = _VECTOR * (count * vectors + 4 * THREADS)
    extents = {
        at.ALL_A: axis_a.extent, at.PIECE_A: cut_a, at.PIECES_A: pieces_a,
        at.ALL_B: axis_b.extent, at.PIECE_B: cut_b, at.PIECES_B: pieces_b,
        at.LOW: low, at.SPAN: span,
        at.WINDOW_A: 0 if a in lines else axis_a.src, at.WINDOW_B: axis_b.src,
        at.LINES: counted, at.LINES_OF_A: a_lines, at.LINE: -_VECTOR * vectors,
        at.INNER: inner, at.CHUNK: unit, at.LANES: lanes, at.ALIGNMENT: alignment - 1,
        at.PLACE: place_pitch, at.PLACE_2: place_excess,
        at.STEP: step, at.ASIDE: side * place_pitch, at.EDGES: edges,
        **dict(enumerate(line_pitch, at.PITCH)),
        **dict(enumerate(run_pitch, at.RUN)),
    }  # fmt: skip
    divisions = (
        *division(pieces_a), *division(pieces_b),
        *short(_VECTOR * vectors, most),
        *short(line_n[0] if lines else 1, beyond), *short(prod(line_n[:2]), beyond),
        *short(n[0], run_items), *short(prod(n[:2]), run_items),
        *short(unit if len(places) == 2 else 1, prod([extent[k] for k in places])),
        0, lanes.bit_length() - 1,
    )  # fmt: skip
    steps = {
        at.A_DST: axis_a.dst, at.A_SRC: axis_a.src, at.B_DST: axis_b.dst, at.B_SRC: axis_b.src,
        at.PLACE_DST: place_dst, at.PLACE_2_DST: place_far, at.STEP_DST: along,
        **dict(enumerate(line_stride, at.LINE_SRC)),
    }  # fmt: skip
    outer_extents, outer_divisions, outer_steps = outer(rest)
    axes_of = len(run_pitch), len(places), len(line_pitch)
    constants = (item, *axes_of, len(rest))
    grid = pieces_a * pieces_b * prod([axis.extent for axis in rest])
    return Plan(
        "box",
        constants,
        grid,
        (*[extents.get(k, 0) for k in range(at.EXTENTS)], *outer_extents),
        (*divisions, *outer_divisions),
        (*[steps.get(k, 0) for k in range(at.STEPS)], *outer_steps),
    )


class Row(NamedTuple):
    """How the threads of a block are assigned to its places: one row of `lanes` threads each."""

    cost: float  # cycles of a multiprocessor for a warp's share, without bank conflicts
    reads: int
    lanes: int
    chunk: int  # items of the run that make a place, if there are no other places
    alignment: int  # bytes, of the address of lane 0


def _rows(axes: Sequence[Axis], item: int, box: Box, extent: list[int], dst: int) -> list[Row]:
    """Return the ways to assign the threads of a block to the places, the cheapest first."""
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
        side = THREADS // lanes  # rows at a time
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
            rows.append(Row(cost, times * each, lanes, chunk, alignment))
    rows.sort()
    return rows


def _pitches(
    axes: Sequence[Axis], item: int, box: Box, extent: list[int], whole: int, row: Row
) -> tuple[int, dict[int, int], int] | None:
    """Return the passes of a read of shared memory, the steps of all axes in it, and a skew.

    The step of an axis within a line is the source's. The pitch of lines is the one with the fewest
    passes of the eight, modulo 128, that keep an address modulo 16.

    Lanes that write words of small items read lines several apart, often from only two banks for
    every pitch. So if one axis of lines is the whole run, the lines of each further word are
    shifted by the skew, in bytes.
    """
    pitch = {k: axes[k].src for k in (*range(box.run), *box.places)}
    extra = dict.fromkeys(box.lines, 0)

    def laid() -> int:
        size = whole + _VECTOR - 1
        for k in box.lines:
            pitch[k] = size + (axes[k].src - size) % _VECTOR + extra[k]
            size += pitch[k] * (extent[k] - 1)
        return size + _VECTOR - 1

    if laid() > SHARED_BYTES:
        return None
    # The indices of a warp's lanes: along the run, and at the places of other rows.
    unit = max(4, item)
    each, count, a = unit // item, 128 // unit, box.run - 1
    lanes = min(row.lanes, count)
    digits: dict[int, list[int]] = {}
    along = [lane % lanes * each for lane in range(count)]
    up = [lane // lanes for lane in range(count)]
    for k in range(a):
        along, digits[k] = _divided(along, extent[k])
    digits[a] = along
    for k in box.places[:-1]:
        up, digits[k] = _divided(up, extent[k])
    for k in box.places[-1:]:
        digits[k] = up

    def offsets(steps: dict[int, int]) -> list[int]:
        columns = [[steps[k] * i for i in indices] for k, indices in digits.items()]
        return list(map(sum, zip(*columns, strict=True)))

    for k in box.lines:
        others, most, found = dict(pitch), 0, 0
        for extra[k] in range(0, 128, _VECTOR):
            if laid() > SHARED_BYTES or most == count:
                break
            read = offsets({**others, k: others[k] + extra[k]})
            banks = len({x // unit % count for x in read})
            if banks > most:
                most, found = banks, extra[k]
        extra[k] = found
        laid()
    passes = _passes(offsets(pitch), unit)
    if passes > 1 and item < unit and box.run == 1 and box.lines:
        found, extra[0] = extra[0], 0
        if laid() + _VECTOR * ((extent[0] - 1) // each) <= SHARED_BYTES:
            skew = [i // each * _VECTOR for i in digits[0]]
            skewed = _passes(list(map(int.__add__, offsets(pitch), skew)), unit)
            if skewed < passes:
                return skewed, pitch, _VECTOR
        extra[0] = found
        laid()
    return passes, pitch, 0


def _divided(numbers: list[int], divisor: int) -> tuple[list[int], list[int]]:
    return [n // divisor for n in numbers], [n % divisor for n in numbers]


def _passes(offsets: list[int], unit: int) -> int:
    """Return the number of passes of a read of units at one offset per lane."""
    count = 128 // unit
    banks = [word % count for word in {x // unit for x in offsets}]
    return max([banks.count(bank) for bank in set(banks)])


def _excess(extents: list[int], steps: list[int]) -> list[int]:
    """Return the first axis' step, and the excess of each further one."""
    return [step - extents[k - 1] * steps[k - 1] if k else step for k, step in enumerate(steps)]
