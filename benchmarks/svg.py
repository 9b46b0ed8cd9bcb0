"""Charts in plain SVG, readable on light and dark pages."""

from __future__ import annotations

from html import escape
from math import log10
from pathlib import Path

#: Drawn on their own background, as a page's theme need not be the system's.
STYLE = """\
text { font: 11px sans-serif; fill: #24292f } .title { font-size: 14px; font-weight: bold } .small { font-size: 9px }
.page { fill: #ffffff } .grid { stroke: #d8dee4 } .axis { stroke: #57606a; stroke-width: 1.5 } .link { stroke: #afb8c1; stroke-width: 2 }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .page { fill: #0d1117 } .grid { stroke: #30363d }
.axis { stroke: #9198a1 } .link { stroke: #484f58 } }"""


class Scale:
    """Values to pixels, linear or logarithmic; what lies outside is drawn at the end."""

    def __init__(
        self, low: float, high: float, start: float, end: float, log: bool = False
    ) -> None:
        self.low, self.high, self.start, self.end, self.log = low, high, start, end, log

    def __call__(self, value: float) -> float:
        value = min(max(value, self.low), self.high)
        if self.log:
            share = log10(value / self.low) / log10(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)


class Picture:
    def __init__(self, width: int, height: int, title: str) -> None:
        self.lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
            f"<title>{escape(title)}</title><style>{STYLE}</style>",
            f'<rect class="page" width="{width}" height="{height}"/>',
        ]
        self.text(12, 22, title, kind="title")

    def text(
        self, x: float, y: float, words: str, *, anchor: str = "start", kind: str = ""
    ) -> None:
        kind = f' class="{kind}"' if kind else ""
        self.lines.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{kind}>{escape(words)}</text>'
        )

    def line(self, x: float, y: float, x2: float, y2: float, kind: str) -> None:
        self.lines.append(
            f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'
        )

    def bar(self, x: float, y: float, width: float, height: float, colour: str) -> None:
        self.lines.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}"/>'
        )

    def dot(self, x: float, y: float, colour: str, radius: float = 4) -> None:
        self.lines.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{colour}"/>')

    def curve(self, points: list[tuple[float, float]], colour: str) -> None:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.lines.append(
            f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
        )
        for x, y in points:
            self.dot(x, y, colour, 3)

    def legend(self, x: float, y: float, entries: dict[str, str], step: float = 110) -> None:
        for at, (name, colour) in enumerate(entries.items()):
            self.bar(x + at * step, y - 9, 10, 10, colour)
            self.text(x + at * step + 15, y, name)

    def save(self, path: Path) -> None:
        path.write_text("\n".join([*self.lines, "</svg>"]) + "\n")
