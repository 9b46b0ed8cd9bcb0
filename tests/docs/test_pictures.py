"""The pictures of the documentation are what their programs draw."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from tests.pictures import FOLDER, pictures
from tests.support.optional import needs

DRAWN = dict(pictures())


@needs("torch", "jax")
@pytest.mark.parametrize("name", list(DRAWN))
def test_the_committed_picture_is_what_is_drawn(name: str) -> None:
    """Else: ``python -m tests.pictures``."""
    drawn = DRAWN[name]()
    assert (FOLDER / name).read_text() == drawn
    root = ElementTree.fromstring(drawn)
    _, _, width, height = map(float, root.get("viewBox").split())
    assert width <= 480, "a phone would show small letters"
    for node in root.iter("{http://www.w3.org/2000/svg}text"):
        assert 0 <= float(node.get("y")) <= height
    assert root.find("{http://www.w3.org/2000/svg}title").text


def test_every_picture_is_drawn() -> None:
    committed = {path.name for path in FOLDER.iterdir()}
    assert committed == set(DRAWN)


def test_every_picture_is_shown() -> None:
    docs = FOLDER.parent
    pages = [docs.parent / "README.md", *docs.rglob("*.md")]
    links = {
        link for page in pages for link in re.findall(r"pictures/(\w+\.svg)", page.read_text())
    }
    assert {path.name for path in FOLDER.iterdir()} <= links
