"""The built site in a headless browser: what its pages do, not only what they hold."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.site

SITE = Path(__file__).resolve().parents[1] / "docs" / "_build" / "html"
#: Any of these will do; the first that is installed is used.
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
#: A desktop's and a phone's width and height, in CSS pixels.
WIDE, NARROW = (1280, 900), (390, 844)


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    sync_api = pytest.importorskip("playwright.sync_api")
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        message = f"none of {', '.join(BROWSERS)} is installed (Debian: apt-get install chromium)"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(message)
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(browser) -> Iterator[object]:
    """A page without a network, whose errors fail the test."""
    context = browser.new_context(viewport={"width": WIDE[0], "height": WIDE[1]}, offline=True)
    errors: list[str] = []
    page = context.new_page()
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    context.close()
    assert errors == []


def test_search_finds_a_page(page) -> None:
    page.goto(f"file://{SITE}/search.html?q=read-only")
    page.wait_for_selector("#search-results li a")
    assert page.locator("#search-results li a").count() > 3
