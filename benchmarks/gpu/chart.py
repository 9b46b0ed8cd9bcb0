"""The chart: each layout's share of a device-to-device copy, by contender."""

from __future__ import annotations

from html import escape
from pathlib import Path

from .goals import Row

COLORS = {"arraybridge": "#1b6ca8", "torch": "#d9534f", "cupy": "#3a9a4b", "jax": "#7b5ea7"}
NAMES = {"arraybridge": "arraybridge", "torch": "PyTorch", "cupy": "CuPy", "jax": "JAX"}
MOST = 1.3
LABEL = "share of a device-to-device copy of as many bytes"


def draw(rows: list[Row], title: str, path: Path) -> None:
    """Write it as SVG."""
    left, width, high, bar, top = 190, 560, 38, 8, 50
    bottom = top + high * len(rows)
    scale = width / MOST

    def text(x: float, y: float, words: str, anchor: str = "start", size: int = 11) -> str:
        return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}">{escape(words)}</text>'

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 20} {bottom + 60}" '
        'font-family="sans-serif">',
        f'<rect width="100%" height="100%" fill="white"/>{text(left, 22, title, size=14)}',
    ]
    for place, row in enumerate(rows):
        y = top + place * high
        lines.append(text(left - 8, y + high / 2, row.name, "end"))
        for at, (who, color) in enumerate(COLORS.items()):
            share = row.share(who)
            if share is not None:
                long = min(share, MOST) * scale
                lines.append(
                    f'<rect x="{left}" y="{y + at * bar}" width="{long:.1f}" height="{bar}" fill="{color}"/>'
                )
    for tick in range(0, 13, 2):
        x = left + tick / 10 * scale
        lines.append(text(x, bottom + 16, f"{tick / 10:.1f}", "middle"))
    one = left + scale
    lines.append(
        f'<line x1="{one:.1f}" y1="{top - 6}" x2="{one:.1f}" y2="{bottom}" stroke="black"/>'
    )
    lines.append(text(left, bottom + 34, LABEL))
    for at, (who, color) in enumerate(COLORS.items()):
        x = left + at * 120
        lines.append(f'<rect x="{x}" y="{bottom + 44}" width="10" height="10" fill="{color}"/>')
        lines.append(text(x + 15, bottom + 53, NAMES[who]))
    path.write_text("\n".join([*lines, "</svg>"]) + "\n")
