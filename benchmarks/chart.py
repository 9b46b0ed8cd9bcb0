"""The charts in docs/pictures/, drawn from the tables of RESULTS.md.

python -m benchmarks.chart
"""

from __future__ import annotations

from pathlib import Path

from .results import RESULTS, heading, sections, tables
from .svg import WIDTH, Picture, Scale

PICTURES = Path(__file__).resolve().parents[1] / "docs" / "pictures"
COLORS = {"ours": "#2f81c7", "TensorFlow": "#e3a008", "PyTorch": "#d9534f", "NumPy": "#8a8f98"}
Table = list[dict[str, str]]


def value(cell: str) -> float:
    return float(cell.strip("*").split("*")[0].split(" ")[0].replace(",", ""))


def latency(groups: dict[str, Table], path: Path) -> None:
    """Ours and the peer, one line per call, on a logarithmic axis of nanoseconds."""
    left, step, top = 256, 17, 78
    count = sum(map(len, groups.values()))
    bottom = top + step * (count + 1.4 * len(groups))
    picture = Picture(WIDTH, int(bottom + 42), "Nanoseconds per call, arrays of 24 elements")
    names = {"arraybridge": COLORS["ours"], "the library's own, or by hand": COLORS["NumPy"]}
    picture.legend(12, 44, names, 100)
    scale = Scale(100, 100_000, left, WIDTH - 34, log=True)
    for tick in (100, 1_000, 10_000, 100_000):
        picture.line(scale(tick), top - 6, scale(tick), bottom, "grid")
        picture.text(scale(tick), bottom + 16, f"{tick:,}", anchor="middle")
    picture.text(left, bottom + 34, "ns, logarithmic")
    y = float(top)
    for title, rows in groups.items():
        y += step * 1.4
        picture.text(12, y - 5, title, kind="title")
        for row in rows:
            ours, peer = (scale(value(row[column])) for column in ("ours, ns", "its ns"))
            middle = y + step / 2
            picture.text(left - 8, middle + 4, row["call"], anchor="end", kind="small")
            picture.line(ours, middle, peer, middle, "link")
            picture.dot(peer, middle, COLORS["NumPy"])
            picture.dot(ours, middle, COLORS["ours"])
            y += step
    picture.save(path)


def shares(rows: Table, title: str, path: Path) -> None:
    """Shares of the limit, one group of bars per layout."""
    left, bar, top, most = 156, 7, 62, 1.6
    who = {"ours": "ours", "TensorFlow": "TensorFlow", "PyTorch": "PyTorch", "NumPy": "NumPy"}
    step = bar * len(who) + 8
    bottom = top + step * len(rows)
    picture = Picture(WIDTH, bottom + 58, title)
    names = {"ours": "arraybridge"}
    picture.legend(12, 44, {names.get(each, each): COLORS[each] for each in who})
    scale = Scale(0, most, left, WIDTH - 40)
    for tick in (0, 0.25, 0.5, 0.75, 1, 1.25, 1.5):
        picture.line(scale(tick), top - 4, scale(tick), bottom, "axis" if tick == 1 else "grid")
        picture.text(scale(tick), bottom + 16, f"{tick:g}", anchor="middle")
    picture.text(
        12, bottom + 36, "1: as fast as a contiguous copy by all cores into a given buffer, 64 MB"
    )
    for place, row in enumerate(rows):
        y = top + place * step
        picture.text(left - 6, y + step / 2, row["layout"], anchor="end", kind="small")
        limit = value(row["limit"])
        for at, column in enumerate(who):
            if not row[column]:
                continue
            share = value(row[column]) / limit
            picture.bar(left, y + at * bar, scale(share) - left, bar - 1, COLORS[column])
            if share > most:
                picture.text(WIDTH - 36, y + at * bar + bar, f"{share:.1f}", kind="small")
    picture.save(path)


def draw_all(folder: Path = PICTURES, results: Path = RESULTS) -> None:
    """Draw each chart whose table the results have."""
    found = {name: tables(text) for name, text in sections(results.read_text()).items()}
    calls = found.get(heading("calls"), {})
    groups = {
        title: [row for row in calls[title] if " to " in row["call"]]
        for title in ("Fast paths", "Planned views", "Small copies")
        if title in calls
    }
    if groups:
        latency(groups, folder / "latency.svg")
    given = found.get(heading("contiguous"), {}).get("")
    if given:
        shares(given, "Strided to contiguous, into a given buffer", folder / "contiguous.svg")


if __name__ == "__main__":
    draw_all()
