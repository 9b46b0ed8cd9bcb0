"""The charts of the matrix: the libraries' own functions beside arraybridge, and latency."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from benchmarks.svg import Picture

from .data import Run, live
from .report import OUTCOMES, micro, ours, theirs

#: What is drawn of `OUTCOMES`: the words, and the color, which is readable on light and dark.
SHOWN = {
    "right": ("right", "#2f81c7"),
    "error": ("needless error", "#8a8f98"),
    "wrong": ("wrong or unsafe", "#e3a008"),
    "crash": ("crash", "#d9534f"),
}
#: Least microseconds -> the shade of a cell; white text is readable on all of them.
SHADES = {0: "#1a7f5a", 1: "#2a7a8c", 3: "#2f6cb0", 10: "#5a55b0", 30: "#86409a", 100: "#a0305f"}


def draw(run: Run, folder: Path) -> None:
    """Write both."""
    own_functions(run).save(folder / "own_functions.svg")
    latency(run).save(folder / "latency_by_pair.svg")


def own_functions(run: Run) -> Picture:
    """A bar of shares for each target's own function, and one for arraybridge to all targets."""
    left, width, step, top = 118, 480, 21, 78
    cells = live(run.cells)
    rows = [("arraybridge, to all", [ours(cell) for cell in cells])]
    for target in run.libraries:
        own = [theirs(cell) for cell in cells if cell.target == target and cell.native]
        if own:
            rows.append((target, own))
    bottom = top + step * len(rows) + 10
    picture = Picture(width, bottom + 58, "To each library: arraybridge, and its own function")
    at = 12.0
    for outcome in OUTCOMES:
        words, color = SHOWN[outcome]
        picture.legend(at, 46, {words: color})
        at += 44 + 6.2 * len(words)
    across = width - left - 62
    for tick in (0, 25, 50, 75, 100):
        x = left + across * tick / 100
        picture.line(x, top - 8, x, bottom, "grid")
        picture.text(x, bottom + 15, f"{tick} %", anchor="middle")
    for place, (name, outcomes) in enumerate(rows):
        y = top + step * place + (10 if place else 0)
        count, x = Counter(outcomes), float(left)
        picture.text(left - 8, y + 11, name, anchor="end")
        for outcome in OUTCOMES:
            long = across * count[outcome] / len(outcomes)
            if long:
                picture.bar(x, y, long, 14, SHOWN[outcome][1])
                x += long
        # Rounded down: 100 % is all of them.
        share = 1000 * count["right"] // len(outcomes) / 10
        picture.text(width - 54, y + 11, f"{share:g} %")
    picture.text(12, bottom + 34, f"Of {len(cells):,} cells: arrays that the source can hold.")
    picture.text(
        12, bottom + 50, "An error is right if no conversion is, or only one to another device."
    )
    return picture


def latency(run: Run) -> Picture:
    """One cell per pair: microseconds of `convert`, below it those of the target's own function."""
    names, wide, high, left, top = run.libraries, 44, 34, 104, 132
    width = max(left + wide * len(names) + 36, 680)
    picture = Picture(
        width, top + high * len(names) + 16, "Microseconds per conversion, an array of 24 elements"
    )
    picture.text(12, 42, "above: arraybridge; below: the target's own function, if it is right")
    lows = [*SHADES]
    for at, low in enumerate(lows):
        last = at + 1 == len(lows)
        words = f"{low} or more" if last else f"below {lows[at + 1]}"
        picture.legend(left + 96 * at, 62, {words: SHADES[low]})
    picture.lines.append("<style>.on { fill: #ffffff } .bold { font-weight: bold }</style>")
    picture.text(12, top - 10, "from \\ to")
    for column, name in enumerate(names):
        x, y = left + wide * column + wide / 2, top - 8
        turned = f'transform="rotate(-40 {x:.1f} {y})"'
        picture.lines.append(f'<text x="{x:.1f}" y="{y}" {turned}>{name}</text>')
    timed = {(cell.source, cell.target): cell for cell in run.cells if cell.ns}
    for row, source in enumerate(names):
        y = top + high * row
        picture.text(left - 8, y + high / 2 + 4, source, anchor="end")
        for column, target in enumerate(names):
            cell, x = timed.get((source, target)), left + wide * column
            if cell is None:
                continue
            low = max(low for low in SHADES if cell.ns >= low * 1000)
            picture.bar(x + 1, y + 1, wide - 2, high - 2, SHADES[low])
            middle = x + wide / 2
            picture.text(middle, y + 15, micro(cell.ns), anchor="middle", kind="on bold")
            picture.text(middle, y + 27, micro(cell.native_ns), anchor="middle", kind="on")
    return picture
