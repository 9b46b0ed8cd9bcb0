"""Check that a kernel can run a plan.

A kernel with constants compiled in assumes that no block is too small for its vectors, that a run
in the scratch buffer is one run of the destination, and that it fits there.
"""

from __future__ import annotations

from arraybridge.kernels.cpu.plan_types import MOST_OUTER, SCRATCH, Plan


def check(made: Plan) -> str:
    """Describe why a kernel cannot run a plan; empty if it can."""
    key, rows, cols, planes, leaves = made.kernel, made.rows, made.cols, made.planes, made.leaves
    if len(made.outer) > MOST_OUTER:
        return f"{len(made.outer)} outer loops are more than {MOST_OUTER}"
    for axis, least in ((rows, key.least_rows), (cols, key.least_cols), (planes, 1)):
        if min(axis.extent, axis.chunk) < least:
            return f"{axis} has less than {least} steps"
    if any(axis.extent < 1 for axis in (leaves, *made.outer)):
        return "a loop has no steps"
    # Steps that are compiled in: of the rows in the source, of the columns on both sides, the item.
    width, pixel = key.width, key.width * key.parts
    known = {
        "runs": (None, 1, 1, 1),
        "items": (None, None, None, width or made.item),
        "tile": (width, width, None, width),
        "split": (width, width, pixel, width),
        "merge": (None, pixel, width, pixel),
        "reverse": (None, width, -width, width),
        "fill": (None, width, 0, width),
    }[key.kind]
    found = (rows.src if rows.extent > 1 else None, cols.dst, cols.src, made.item)
    for wanted, step in zip(known, found, strict=True):
        if None not in (wanted, step) and wanted != step:
            return f"a step is {step}, not {wanted}"
    if rows.extent != {"split": key.rows, "merge": 1}.get(key.kind, rows.extent):
        return f"{rows} are not the rows of {key}"
    if not made.staged:
        return ""
    # Blocks are written from the scratch buffer in whole lines.
    run = cols.extent * made.item
    if cols.dst != made.item:
        return f"{cols} have gaps"
    for axis in (leaves, planes, *([rows] if made.joined else [])):
        if axis.extent > 1 and axis.dst != run:
            return f"{axis} do not continue a run of {run} bytes"
        run *= axis.extent
    pieces = cols.extent >= cols.chunk + key.least_cols
    if pieces and (leaves.extent > 1 or planes.chunk > 1 or made.joined):
        return f"{cols} come in pieces, and more than one at a time"
    if made.joined and planes.extent > 1:
        return f"{rows} do not continue {leaves} and {cols}"
    return f"a block takes {made.scratch} bytes of {SCRATCH}" if made.scratch > SCRATCH else ""
