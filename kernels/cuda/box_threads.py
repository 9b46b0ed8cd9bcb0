"""How the threads of a block are assigned to the runs of a box, and lines to shared memory."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod
from typing import NamedTuple

from arraybridge.kernels.cuda.box_kernel import SHARED_BYTES
from arraybridge.kernels.cuda.box_tiling import Box
from arraybridge.kernels.cuda.plan_types import THREADS, Axis

_SECTOR = 32
_VECTOR = 16


class Row(NamedTuple):
    """How the threads of a block are assigned to its places: one row of `lanes` threads each."""

    cost: float  # cycles of a multiprocessor for a warp's share, without bank conflicts
    reads: int
    lanes: int
    chunk: int  # items of the run that make a place, if there are no other places
    alignment: int  # bytes, of the address of lane 0


def rows(axes: Sequence[Axis], item: int, box: Box, extent: list[int], dst: int) -> list[Row]:
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


def pitches(
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
