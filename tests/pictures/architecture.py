"""The layers of the package, drawn from [tool.importlinter] and from what the sources import.

An arrow is an import. Of the arrows only those are drawn that do not follow from others: where a
imports b and b imports c, the arrow from a to c is left out.
"""

from __future__ import annotations

from collections import defaultdict

from benchmarks.svg import WIDTH, Picture
from tests.unit.test_layers import LAYERS, PUBLIC, SOURCES, first_level, imported

HIGH, GAP, TOP = 34, 22, 64
#: What each part is for, in the order of the picture's colors.
PARTS = {
    "what is called": (
        "#2f81c7",
        "cli auditing creation adapting copies namespaces pickling sharding explaining exchange "
        "signatures",
    ),
    "libraries": ("#e3a008", "libraries"),
    "Array and its functions": ("#9a6fc4", "xp array"),
    "plans and protocols": ("#3a9a4b", "protocols dispatch"),
    "memory": ("#8a8f98", ""),
}


def modules() -> dict[str, int]:
    """Part of the package -> its modules."""
    counts: dict[str, int] = defaultdict(int)
    for name in SOURCES:
        counts[first_level(name)] += 1
    return {name: count for name, count in counts.items() if name not in PUBLIC}


def imports() -> dict[str, set[str]]:
    """Part of the package -> the parts that it imports."""
    found: dict[str, set[str]] = defaultdict(set)
    for name, path in SOURCES.items():
        source = first_level(name)
        if source in PUBLIC:
            continue
        is_package = path.name == "__init__.py"
        for target in imported(path.read_text(), name, is_package=is_package):
            part = first_level(target)
            if part not in PUBLIC and part != source:
                found[source].add(part)
    return found


def reduced(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """The arrows that do not follow from others."""
    reach: dict[str, set[str]] = {}

    def below(part: str) -> set[str]:
        if part not in reach:
            reach[part] = set()
            reach[part] = set().union(*({to} | below(to) for to in graph.get(part, ())))
        return reach[part]

    return {
        part: {to for to in targets if not any(to in below(other) for other in targets - {to})}
        for part, targets in graph.items()
    }


def color(part: str) -> str:
    return next(shade for shade, parts in PARTS.values() if part in parts.split() or not parts)


def drawn() -> str:
    rows = [[name.strip() for name in layer.split("|")] for layer in LAYERS]
    graph, counts = imports(), modules()
    rows = [[part for part in row if part in counts] for row in rows]
    arrows = reduced(graph)
    high = TOP + len(rows) * (HIGH + GAP) + 34
    title = f"The {len(counts)} parts of arraybridge, {sum(counts.values())} modules"
    layers = "; ".join(", ".join(row) for row in rows)
    told = f"{title}. From the top: {layers}. Imports point down only."
    picture = Picture(WIDTH, high, title, told)
    picture.legend(12, 42, {name: shade for name, (shade, _) in list(PARTS.items())[:3]}, 142)
    picture.legend(12, 58, {name: shade for name, (shade, _) in list(PARTS.items())[3:]}, 142)
    places: dict[str, tuple[float, float, float]] = {}
    for at, row in enumerate(rows):
        y = TOP + 10 + at * (HIGH + GAP)
        width = min((WIDTH - 24 - 8 * (len(row) - 1)) / len(row), 150)
        left = (WIDTH - len(row) * width - 8 * (len(row) - 1)) / 2
        for place, part in enumerate(row):
            places[part] = left + place * (width + 8), y, width
    arrived: dict[str, int] = defaultdict(int)
    incoming = {part: sum(part in targets for targets in arrows.values()) for part in places}
    for part in places:  # from the top, so that the last arrow at a box comes from nearest
        x, y, width = places[part]
        targets = sorted(arrows.get(part, ()), key=lambda to: places[to])
        for at, to in enumerate(targets, 1):
            to_x, to_y, to_width = places[to]
            arrived[to] += 1
            begin = x + width * at / (len(targets) + 1), y + HIGH
            end = to_x + to_width * arrived[to] / (incoming[to] + 1), to_y
            picture.arrow([begin, end])
    for part, (x, y, width) in places.items():
        picture.box(x, y, width, HIGH, fill=color(part))
        picture.text(
            x + width / 2,
            y + 15,
            part,
            anchor="middle",
            kind="bold" if len(part) < 11 else "bold small",
        )
        count = counts[part]
        said = f"{count} modules" if count > 1 else "1 module"
        picture.text(x + width / 2, y + 28, said, anchor="middle", kind="small faint")
    said = "An arrow is an import. Those that follow from others are left out."
    picture.text(12, high - 14, said, kind="faint")
    return picture.svg
