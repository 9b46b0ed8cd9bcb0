"""What a notebook shows of routes, descriptions and Arrays, in a real browser.

The page stands for a notebook's output: its ground and its text color are the notebook's theme,
and the HTML brings no style of its own that could change the rest of the page.
"""

from __future__ import annotations

import numpy as np
import pytest

import arraybridge as ab
from tests.docs.test_site import NARROW, browser, page  # noqa: F401 - fixtures
from tests.support.optional import needs

pytestmark = pytest.mark.site

THEMES = {
    "light": ("rgb(255, 255, 255)", "rgb(0, 0, 0)"),
    "dark": ("rgb(17, 17, 17)", "rgb(240, 240, 240)"),
}
COLORS = """() => ["text", "pre", "b"].flatMap((name) =>
  [...document.querySelectorAll(`.arraybridge ${name}`)].map(
    (e) => e.ownerSVGElement ? getComputedStyle(e).fill : getComputedStyle(e).color))"""


def shown() -> list[object]:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    return [
        ab.explain(x[::-1], "torch"),
        ab.inspect(x[:, ::2]),
        ab.inspect(np.zeros((1 << 10, 1 << 10))[::-1]),
        ab.from_dlpack(x),
        ab.from_dlpack(np.zeros((100, 100))),
    ]


@needs("torch")
@pytest.mark.parametrize("theme", THEMES)
def test_what_a_notebook_shows(page, theme: str) -> None:  # noqa: F811
    ground, ink = THEMES[theme]
    outputs = "".join(f"<div class=output>{each._repr_html_()}</div>" for each in shown())
    page.set_viewport_size({"width": NARROW[0], "height": NARROW[1]})
    page.set_content(f"<body style='background:{ground};color:{ink};margin:8px'>{outputs}<p>after")
    assert set(page.evaluate(COLORS)) == {ink}
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW[0]
    assert page.get_by_role("img").count() == 3, "the pictures that are not folded"
    assert "layout" not in page.locator("p").inner_text()
    assert page.evaluate("getComputedStyle(document.querySelector('p')).color") == ink
    for text in page.locator(".output >> nth=0 >> svg text").all():
        box, picture = text.bounding_box(), text.locator("xpath=..").bounding_box()
        assert box["x"] >= picture["x"] - 1
        assert box["x"] + box["width"] <= picture["x"] + picture["width"] + 1
    summary = page.locator("summary").first
    assert not page.locator("details svg").first.is_visible()
    summary.focus()
    page.keyboard.press("Enter")
    assert page.locator("details svg").first.is_visible()
