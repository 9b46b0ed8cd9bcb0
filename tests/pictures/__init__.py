"""The committed pictures of the documentation, each drawn from what the package does or contains.

``python -m tests.pictures`` draws all of them into docs/pictures; a test draws them again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "pictures"


def pictures() -> Iterator[tuple[str, Callable[[], str]]]:
    """Names, and what draws them."""
    from . import architecture, hero, routes

    for name in routes.ROUTES:
        yield f"{name}.svg", lambda name=name: routes.route(name)
    for name in routes.MEMORY:
        yield f"{name}.svg", lambda name=name: routes.memory(name)
    yield "architecture.svg", architecture.drawn
    yield "hero.svg", hero.drawn
    yield from charts()


def charts() -> Iterator[tuple[str, Callable[[], str]]]:
    """Charts of benchmarks/RESULTS.md."""
    from benchmarks.chart import draw_all

    with TemporaryDirectory() as folder:
        draw_all(Path(folder))
        drawn = {path.name: path.read_text() for path in sorted(Path(folder).iterdir())}
    for name, text in drawn.items():
        yield name, lambda text=text: text
