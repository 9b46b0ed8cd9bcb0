"""Cut a plan into parts for threads, and check that the kernel can run each part.

A kernel with constants compiled in assumes that no block is too small for its vectors, that a run
in the scratch buffer is one run of the destination, and that it fits there. `slices`, which makes
every record, checks all of that.
"""

from __future__ import annotations

from array import array
from typing import Any

from arraybridge.kernels.cpu.plan_types import LINE, SCRATCH, Axis, Plan


def slices(whole: Plan, dst: int, src: int, count: int = 1) -> list[array[int]]:
    """Cut a copy into at most `count` independent parts; return their records, of one length.

    No two write to the same byte. A kernel counts in its record, so only one call at a time may use
    it; every call restores it. RuntimeError if the kernel cannot run a part, a bug of the plan.
    """
    dst, src = dst + whole.dst_offset, src + whole.src_offset
    records = []
    for part, to, source in _cut(whole, count):
        wrong = check(part)
        if wrong:
            raise RuntimeError(
                f"the plan of this copy does not fit its kernel: {wrong}. Please report it, "
                f"with {whole!r}"
            )
        records.append(part.record(dst + to, src + source))
    return records


def _cut(whole: Plan, count: int) -> list[tuple[Plan, int, int]]:
    """Cut a plan into `count` parts or fewer, with their offsets in destination and source."""
    loops: list[tuple[str | int, Axis]] = [
        *enumerate(whole.outer), ("rows", whole.rows), ("planes", whole.planes),
        ("cols", whole.cols),
    ]  # fmt: skip
    loops = [loop for loop in loops if loop[1].extent >= 2 * loop[1].grain]
    if count <= 1 or not loops:
        return [(whole, 0, 0)]
    # Along the loop with the largest step in the destination, so that each part is one piece of it,
    # unless the loop is so short that the parts would be unequal.
    fit = [loop for loop in loops if loop[1].extent >= 8 * count * loop[1].grain]
    if fit:
        place, axis = max(fit, key=lambda loop: abs(loop[1].dst))
    else:
        place, axis = max(loops, key=lambda loop: loop[1].extent // loop[1].grain)
    grains = axis.extent // axis.grain
    pieces = min(count, grains)
    parts = []
    start = 0
    for piece in range(1, pieces + 1):
        stop = grains * piece // pieces * axis.grain if piece < pieces else axis.extent
        cut = axis._replace(extent=stop - start, chunk=min(axis.chunk, stop - start))
        if isinstance(place, int):
            part = whole._replace(outer=(*whole.outer[:place], cut, *whole.outer[place + 1 :]))
        else:
            named: dict[str, Any] = {place: cut}
            part = whole._replace(**named)
        # If that loop is too short for all parts, each is cut along another one.
        for smaller, to, source in _cut(part, count // pieces):
            parts.append((smaller, start * axis.dst + to, start * axis.src + source))
        start = stop
    return parts


def check(part: Plan) -> str:
    """Describe why a kernel cannot run a plan; empty if it can."""
    key, rows, cols = part.kernel, part.rows, part.cols
    planes, leaves = part.planes, part.leaves
    for axis, least in ((rows, key.least_rows), (cols, key.least_cols), (planes, 1)):
        if min(axis.extent, axis.chunk) < least:
            return f"{axis} has less than {least} steps"
    if any(axis.extent < 1 for axis in (leaves, *part.outer)):
        return "a loop has no steps"
    # Steps that are compiled in: of the rows in the source, of the columns on both sides, the item.
    width, pixel = key.width, key.width * key.parts
    known = {
        "runs": (None, 1, 1, 1),
        "items": (None, None, None, width or part.item),
        "tile": (width, width, None, width),
        "split": (width, width, pixel, width),
        "merge": (None, pixel, width, pixel),
        "reverse": (None, width, -width, width),
        "fill": (None, width, 0, width),
    }[key.kind]
    found = (rows.src if rows.extent > 1 else None, cols.dst, cols.src, part.item)
    for wanted, step in zip(known, found, strict=True):
        if wanted is not None and step is not None and wanted != step:
            return f"a step is {step}, not {wanted}"
    if (key.kind == "split" and rows.extent != key.rows) or (
        key.kind == "merge" and rows.extent != 1
    ):
        return f"{rows} are not the rows of {key}"
    return _check_staged(part) if part.staged else ""


def _check_staged(part: Plan) -> str:
    """Describe why a plan cannot write its blocks from the scratch buffer in whole lines."""
    rows, planes, leaves, cols = part.rows, part.planes, part.leaves, part.cols
    one_row = cols.extent * part.item
    one_plane = leaves.extent * one_row
    if cols.dst != part.item:
        return f"{cols} have gaps"
    if leaves.extent > 1 and leaves.dst != one_row:
        return f"{leaves} do not continue {cols}"
    if planes.extent > 1 and planes.dst != one_plane:
        return f"{planes} do not continue {leaves} and {cols}"
    pieces = cols.extent >= cols.chunk + part.kernel.least_cols
    stretch = min(cols.chunk, cols.extent) * part.item
    if pieces and (leaves.extent > 1 or planes.chunk > 1 or part.joined):
        return f"{cols} come in pieces, and more than one at a time"
    if not pieces:
        stretch = min(planes.chunk, planes.extent) * one_plane
        pieces = planes.chunk < planes.extent
    if part.joined:
        if planes.extent > 1 or (rows.extent > 1 and rows.dst != one_plane):
            return f"{rows} do not continue {leaves} and {cols}"
        pieces = rows.extent >= rows.chunk + part.kernel.least_rows
        stretch = rows.chunk * one_plane
    if pieces and stretch < LINE:
        return f"the first {stretch} bytes of a run are less than a line"
    if part.scratch > SCRATCH:
        return f"a block takes {part.scratch} bytes of {SCRATCH}"
    return ""
