"""The bar chart of the strided copies, beside their limit."""

from __future__ import annotations

from pathlib import Path

PATH = Path(__file__).resolve().parents[1] / "docs" / "contiguous.svg"
COLOURS = {"ours": "#1b6ca8", "tensorflow": "#e3a008", "torch": "#d9534f", "numpy": "#8a8f98"}
NAMES = {"ours": "arraybridge", "tensorflow": "TensorFlow", "torch": "PyTorch", "numpy": "NumPy"}


def draw(rows, mean: float, path: Path = PATH) -> None:
    """Fractions of the limit, one group of bars a layout."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "arraybridge"  # the same figures, the same file
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 0.42 * len(rows) + 1.4))
    for place, row in enumerate(rows):
        limit = row.seconds["limit"]
        for at, who in enumerate(COLOURS):
            if who in row.seconds:
                value = limit / row.seconds[who]
                height = place + 0.2 * (at - 1.5)
                axes.barh(height, min(value, 1.6), 0.2, color=COLOURS[who])
                if value > 1.6:
                    axes.text(1.61, height, f"{value:.1f}", va="center", fontsize=7)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_yticks(range(len(rows)), [row.layout.name for row in rows], fontsize=8)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlim(0, 1.7)
    axes.set_xlabel("fraction of the speed of a contiguous copy by all cores (64 MB, given buffer)")
    axes.set_title(f"Strided to contiguous: {mean:.2f} of the limit (geometric mean)", fontsize=11)
    handles = [pyplot.Rectangle((0, 0), 1, 1, color=COLOURS[who]) for who in COLOURS]
    axes.legend(handles, [NAMES[who] for who in COLOURS], loc="lower right", fontsize=8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
