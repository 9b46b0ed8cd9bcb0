"""Charts in plain SVG, readable on light and dark pages."""

from __future__ import annotations

from html import escape
from math import log10
from pathlib import Path

#: The width that a phone shows without shrinking the letters.
WIDTH = 480
#: On their own background, because the theme of the page can differ from the system's.
STYLE = """\
text { font: 11.5px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; fill: #24292f } .title { font-size: 14px; font-weight: 600 }
.small { font-size: 10px }
.page { fill: #ffffff } .grid { stroke: #d8dee4 } .axis { stroke: #57606a; stroke-width: 1.5 } .link { stroke: #afb8c1; stroke-width: 2 }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .page { fill: #14181e } .grid { stroke: #30363d }
.axis { stroke: #9198a1 } .link { stroke: #484f58 } }"""


class Scale:
    """Values to pixels, linear or logarithmic; values outside are drawn at the end."""

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
    """A drawing."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">',
            f"<title>{escape(title)}</title><style>{STYLE}</style>",
            f'<rect class="page" width="{width}" height="{height}" rx="6"/>',
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

    def bar(self, x: float, y: float, width: float, height: float, color: str) -> None:
        self.lines.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{color}"/>'
        )

    def dot(self, x: float, y: float, color: str, radius: float = 4) -> None:
        self.lines.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{color}"/>')

    def legend(self, x: float, y: float, entries: dict[str, str], step: float = 110) -> None:
        for at, (name, color) in enumerate(entries.items()):
            self.bar(x + at * step, y - 9, 10, 10, color)
            self.text(x + at * step + 15, y, name)

    @property
    def svg(self) -> str:
        return "\n".join([*self.lines, "</svg>"]) + "\n"

    def save(self, path: Path) -> None:
        path.write_text(self.svg)
