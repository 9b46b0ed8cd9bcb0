"""The built site in a headless browser: what its pages do, not only what they hold."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes import ROOT

pytestmark = pytest.mark.site

SITE = ROOT / "docs" / "_build" / "html"
#: Any of these will do; the first that is installed is used.
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
#: A desktop's and a phone's width and height, in CSS pixels.
WIDE, NARROW = (1280, 900), (390, 844)
#: The first page of every section.
SECTIONS = (
    "index.html", "start/index.html", "guide.html", "matrix.html", "examples/index.html",
    "api/index.html", "performance.html", "internals.html",
)  # fmt: skip
PAGES = sorted(page for page in SITE.rglob("*.html") if "_static" not in page.parts)

#: What is wrong with a page, in words.
WRONG = """() => {
  const wrong = [];
  const beyond = document.documentElement.scrollWidth - window.innerWidth;
  if (beyond > 0) wrong.push(`scrolls sideways by ${beyond} px`);
  const titles = document.querySelectorAll("h1").length;
  if (titles !== 1) wrong.push(`has ${titles} h1`);
  for (const link of document.querySelectorAll("article a[href]"))
    if (!link.textContent.trim() && !link.querySelector("img")) wrong.push(`no text: ${link.href}`);
  const edge = document.querySelector("main").getBoundingClientRect().right;
  const read = "article :is(p, li) > code, .gr ~ .n, .highlight-python .go";
  for (const text of document.querySelectorAll(read))
    if (!text.closest("table") && text.getBoundingClientRect().right > edge)
      wrong.push(`cut: ${text.textContent.slice(0, 40)}`);
  for (const image of document.images) if (!image.alt) wrong.push(`no alt: ${image.src}`);
  for (const element of document.querySelectorAll("body *")) {
    const seen = element.getClientRects().length && !element.closest("script, style, noscript");
    const text = [...element.childNodes].filter((node) => node.nodeType === 3 && node.data.trim());
    if (!seen || !text.length) continue;
    const scale = element.ownerSVGElement ? element.getScreenCTM().a : 1;
    const size = parseFloat(getComputedStyle(element).fontSize) * scale;
    if (size < 11.99 && size > 0) wrong.push(`${size} px: ${text[0].data.trim().slice(0, 40)}`);
  }
  return wrong;
}"""


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
    """A page without a network, whose errors, and requests for anything else, fail the test."""
    context = browser.new_context(viewport={"width": WIDE[0], "height": WIDE[1]}, offline=True)
    wrong: list[str] = []
    page = context.new_page()
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda request: wrong.extend(outside(request.url)))
    yield page
    context.close()
    assert wrong == []


def outside(url: str) -> list[str]:
    return [] if url.startswith(("file:", "data:")) else [f"asks for {url}"]


def address(page: str | Path) -> str:
    return (SITE / page).as_uri()


def test_every_page_fits_a_phone(browser):
    """Without JavaScript: that is quicker, and a page must be readable so."""
    size = {"width": NARROW[0], "height": NARROW[1]}
    context = browser.new_context(viewport=size, offline=True, java_script_enabled=False)
    page, requests = context.new_page(), []
    page.on("request", lambda request: requests.extend(outside(request.url)))
    wrong = {}
    for path in PAGES:
        page.goto(path.as_uri())
        if found := page.evaluate(WRONG):
            wrong[path.relative_to(SITE).as_posix()] = found[:5]
    context.close()
    assert wrong == {}
    assert requests == []


def test_nothing_is_loaded_from_elsewhere():
    """No page and no style asks another host for a script, a style, a picture or a font."""
    loaded = re.compile(
        r"<(?:script|img|iframe|source|video|link(?! rel=\"canonical\"))\b[^>]*"
        r"(?:src|href)=[\"']?(?:https?:)?//[^>]*>|url\([\"']?(?:https?:)?//[^)]*"
    )
    styles = SITE.rglob("*.css")
    found = {str(file): loaded.findall(file.read_text()) for file in (*PAGES, *styles)}
    assert PAGES
    assert {file: places for file, places in found.items() if places} == {}


def test_navigation(page):
    page.goto(address("index.html"))
    for path in SECTIONS[1:]:
        page.locator(f"header .navbar-nav a[href$='{path}']").first.click()
        page.wait_for_url(address(path))
        page.goto(address("index.html"))
    page.goto(address("api/index.html"))
    page.locator("article a", has_text="convert").first.click()
    page.wait_for_url("**/arraybridge.convert.html*")


#: What a reader types, and a page that must be among the first three results.
SOUGHT = {
    "numpy to torch": "converting.html",
    "read-only tensor": "start/unsafe_conversions.html",
    "bfloat16 numpy": "converting.html",
    "state_dict": "trees.html",
    "array api": "array.html",
    "__dlpack__": "dlpack.html",
    "segfault": "start/unsafe_conversions.html",
    "convert": "api/generated/arraybridge.convert.html",
}


def found(results) -> list[str]:
    """The pages that a search found, in order."""
    links = [link.get_attribute("href") for link in results.locator("li a").all()]
    return [link.rpartition("#")[0] or link for link in links]


def test_search_ranks_titles_headings_and_first_sentences(page):
    page.goto(address("search.html"))
    field, results = page.locator(".bd-search-container input"), page.locator("#search-results")
    missed = {}
    for words, wanted in SOUGHT.items():
        field.fill(words)
        page.wait_for_function("document.querySelector('#search-results li')")
        first = found(results)
        if f"./{wanted}" not in first[: 1 if wanted.startswith("api") else 3]:
            missed[words] = first[:4]
        field.fill("")
    assert missed == {}


def colors(page) -> tuple[str, str]:
    """The ground and the text of the page."""
    script = "(s => [s.backgroundColor, s.color])(getComputedStyle(document.body))"
    return tuple(page.evaluate(script))


def test_dark_and_light(page):
    page.goto(address("index.html"))
    seen = {}
    for mode in ("light", "dark"):
        page.locator("header .theme-switch-button").first.click()
        page.locator(f"header .theme-change-button[data-mode={mode}]").first.click()
        seen[mode] = colors(page)
        page.goto(address("converting.html"))  # it is remembered
        assert colors(page) == seen[mode]
    assert seen["light"][0] != seen["dark"][0]
    assert seen["light"][1] != seen["dark"][1]


def test_page_404_leads_on(page):
    page.goto(address("404.html"))
    page.locator("article p a").first.click()
    page.wait_for_url(address("index.html"))
