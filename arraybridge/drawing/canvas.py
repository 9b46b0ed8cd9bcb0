"""SVG that follows the page around it: drawn in the color of the text, without styles or ids.

A style or an id of an SVG within a page would apply to the whole page. As a separate file a picture
has a background, and colors for light and dark.
"""

from __future__ import annotations

import re
from html import escape
from textwrap import wrap

WIDTH = 400  # CSS pixels, which fit a phone without scaling
MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace"
SANS = "system-ui, -apple-system, Segoe UI, Roboto, sans-serif"
#: The width of a character of `MONO` relative to the font size.
LETTER = 0.61
#: Colors that are readable on white and on black.
BLUE, GREEN, RED = "#2f81c7", "#3a9a4b", "#d9534f"
_FILE = (
    "svg{color:#24292f}.page{fill:#ffffff}"
    "@media (prefers-color-scheme:dark){svg{color:#e6edf3}.page{fill:#14181e}}"
)
_UNFIT = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def clean(words: object, most: int = 400) -> str:
    """Escape a text for HTML and XML, cut to `most` characters."""
    text = _UNFIT.sub("\ufffd", str(words))
    return escape(text if len(text) <= most else text[: most - 1] + "…")


def lines_of(words: str, most: int, columns: int = 58) -> list[str]:
    """Break a text into at most `most` lines."""
    lines = wrap(words[: most * columns + columns], columns) or [""]
    return lines if len(lines) <= most else [*lines[: most - 1], lines[most - 1] + " …"]


class Canvas:
    """A picture drawn from the top down; ``y`` is where drawing continues."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.y = 0.0

    def text(
        self,
        x: float,
        y: float,
        words: object,
        *,
        size: float = 12,
        mono: bool = False,
        bold: bool = False,
        anchor: str = "start",
        color: str = "currentColor",
        faint: bool = False,
    ) -> None:
        """Write a line of text with its baseline at ``y``."""
        self.parts.append(
            f'<text x="{x:g}" y="{y:g}" font-family="{MONO if mono else SANS}" font-size="{size:g}"'
            + (' font-weight="600"' if bold else "")
            + (f' text-anchor="{anchor}"' if anchor != "start" else "")
            + f' fill="{color}"'
            + (' fill-opacity=".72"' if faint else "")
            + f">{clean(words)}</text>"
        )

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        *,
        fill: str = "none",
        opacity: float = 1,
        dashed: bool = False,
        radius: float = 0,
        stroke: float = 0.55,
        named: str = "",
    ) -> None:
        """Draw a box; `named` is its tooltip."""
        shape = (
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" fill="{fill}"'
            + (f' fill-opacity="{opacity:g}"' if fill != "none" else "")
            + f' stroke="currentColor" stroke-opacity="{stroke:g}"'
            + (' stroke-dasharray="3 3"' if dashed else "")
            + (f' rx="{radius:g}"' if radius else "")
        )
        self.parts.append(
            f"{shape}><title>{clean(named)}</title></rect>" if named else shape + "/>"
        )

    def hatch(self, x: float, y: float, width: float, height: float) -> None:
        """Hatch a box."""
        strokes, step, at = [], 6.0, 6.0
        while at < width + height:
            x1, y1 = (at, 0.0) if at <= width else (width, at - width)
            x2, y2 = (0.0, at) if at <= height else (at - height, height)
            strokes.append(f"M{x + x1:g} {y + y1:g}L{x + x2:g} {y + y2:g}")
            at += step
        self.parts.append(
            f'<path d="{"".join(strokes)}" stroke="currentColor" stroke-opacity=".3" fill="none"/>'
        )

    def line(
        self, points: list[tuple[float, float]], color: str = "currentColor", dashed: bool = False
    ) -> None:
        """Draw a line through points."""
        path = "L".join(f"{x:g} {y:g}" for x, y in points)
        self.parts.append(
            f'<path d="M{path}" fill="none" stroke="{color}" stroke-width="1.5"'
            + (' stroke-dasharray="4 3"' if dashed else "")
            + "/>"
        )

    def head(self, x: float, y: float, way: str, color: str = "currentColor") -> None:
        """Draw the head of an arrow that points ``left``, ``right``, ``up`` or ``down``."""
        dx, dy = {"left": (-6, 0), "right": (6, 0), "up": (0, -6), "down": (0, 6)}[way]
        # The base is as wide as the head is long.
        ax, ay, bx, by = x - dx - dy / 2, y - dy - dx / 2, x - dx + dy / 2, y - dy + dx / 2
        self.parts.append(f'<path d="M{x:g} {y:g}L{ax:g} {ay:g}L{bx:g} {by:g}Z" fill="{color}"/>')

    def svg(self, description: str, *, page: bool = False, title: str = "") -> str:
        """Return the SVG, to embed in HTML or, with `page`, as a separate file.

        The description is for screen readers, the title a line above the picture.
        """
        above = 34 if title else 12 if page else 0
        beside = 10 if page else 0
        width, height = WIDTH + 2 * beside, self.y + above + (12 if page else 0)
        words = clean(description, 900)
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
            f'width="{width:g}" height="{height:g}" role="img" aria-label="{words}"'
        )
        if not page:
            return (
                f'{head} style="max-width:100%;height:auto;display:block">'
                + "".join(self.parts)
                + "</svg>"
            )
        made = [
            f"{head}>",
            f"<title>{words}</title><style>{_FILE}</style>",
            f'<rect class="page" width="{width:g}" height="{height:g}" rx="6"/>',
        ]
        if title:
            made.append(
                f'<text x="{beside}" y="22" font-family="{SANS}" font-size="14" font-weight="600" '
                f'fill="currentColor">{clean(title)}</text>'
            )
        made += [f'<g transform="translate({beside} {above})">', *self.parts, "</g>", "</svg>"]
        return "\n".join(made) + "\n"
