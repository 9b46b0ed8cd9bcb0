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


def narrow(page) -> None:
    page.set_viewport_size({"width": NARROW[0], "height": NARROW[1]})


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


def test_the_first_mention_of_a_name_leads_to_the_reference():
    link = re.compile(r'<a class="reference internal" href="(api/generated/[\w.]+)#[\w.]+"><code')
    text = (SITE / "converting.html").read_text()
    found = link.findall(text)
    assert {f"api/generated/arraybridge.{name}.html" for name in ("convert", "Device")} < {*found}
    assert len(found) == len(set(found))
    assert [path for path in found if not (SITE / path).exists()] == []
    assert not link.search("".join(re.findall(r"<h[1-6]>.*?</h[1-6]>", text)))


def test_the_reference_shows_what_is_called():
    """Signatures, but of no class that users do not make; the functions of extensions, too."""
    pages = SITE / "api" / "generated"
    signed = {
        name: "sig-paren" in (pages / f"arraybridge.{name}.html").read_text().partition("</dt>")[0]
        for name in ("convert", "Device", "Route", "Array")
    }
    assert signed == {"convert": True, "Device": True, "Route": False, "Array": False}
    for page, name in (("linalg", "linalg.svd"), ("elementwise_functions", "add")):
        assert f'id="arraybridge.xp.numpy.{name}"' in (pages / f"xp_{page}.html").read_text()


@pytest.mark.parametrize("path", SECTIONS)
def test_the_first_page_of_a_section_fits(page, path):
    for width, height in (WIDE, NARROW):
        page.set_viewport_size({"width": width, "height": height})
        page.goto(address(path))
        assert page.evaluate(WRONG) == []


def test_navigation(page):
    page.goto(address("index.html"))
    for path in SECTIONS[1:]:
        page.locator(f"header .navbar-nav a[href$='{path}']").first.click()
        page.wait_for_url(address(path))
        page.wait_for_selector("header .nav-item.current", state="attached")
        page.goto(address("index.html"))
    page.goto(address("api/index.html"))
    page.locator("article a", has_text="convert").first.click()
    page.wait_for_url("**/arraybridge.convert.html*")


def test_navigation_on_a_phone(page):
    narrow(page)
    page.goto(address("converting.html"))
    link = page.locator("dialog a[href$='matrix.html'], .bd-sidebar-primary a[href$='matrix.html']")
    assert not link.first.is_visible()
    page.locator("button.primary-toggle").click()
    link.first.wait_for(state="visible")
    link.first.click()
    page.wait_for_url(address("matrix.html") + "*")


#: What a reader types, and a page that must be among the first three results.
SOUGHT = {
    "numpy to torch": "converting.html",
    "torch to numpy": "converting.html",
    "read-only tensor": "ownership.html",
    "negative strides": "start/unsafe_conversions.html",
    "bfloat16 numpy": "converting.html",
    "requires_grad": "start/errors.html",
    "gradients jax": "adapting.html",
    "polars nulls": "engines.html",
    "dask": "engines.html",
    "data loader": "examples/data_loader.html",
    "shared memory": "examples/shared_memory.html",
    "state_dict": "trees.html",
    "dtensor": "sharding.html",
    "cuda stream": "cuda.html",
    "scipy": "examples/scipy_on_tensors.html",
    "which lines copy": "audit.html",
    "add a library": "extending.html",
    "array api": "array.html",
    "copy=False": "start/errors.html",
    "__dlpack__": "dlpack.html",
    "segfault": "start/unsafe_conversions.html",
    "install": "start/install.html",
    "convert": "api/generated/arraybridge.convert.html",
    "tree.convert": "api/generated/arraybridge.tree.convert.html",
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


def test_search_while_typing(page):
    page.goto(address("start/index.html"))
    page.keyboard.press("Control+k")
    page.keyboard.type("owner")
    results = page.locator("#pst-search-dialog .search-results")
    results.locator("li a").first.wait_for(state="visible")
    assert found(results)[0] == "../ownership.html"
    assert results.locator("mark").count() > 0
    page.keyboard.type("ship")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=ownership")
    page.wait_for_selector("#search-results li a")
    page.locator("#search-results li a").first.click()
    page.wait_for_url("**/ownership.html**")


def test_search_finds_pages_that_have_some_of_the_words(page):
    page.goto(address("search.html") + "?q=misalignment+glossary+aliasing")
    page.wait_for_selector("#search-results li a")
    assert page.locator(".search-summary").inner_text().startswith("No page has all")
    assert "./start/glossary.html" in found(page.locator("#search-results"))[:3]


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


#: The lowest ratio of a comment's brightness to that of what is behind it; WCAG 2.2 asks for 4.5.
CONTRAST = """() => {
  const parts = (color) => color.match(/[\\d.]+/g).slice(0, 3).map((part) => part / 255);
  const linear = (part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
  const light = (color) => [0.2126, 0.7152, 0.0722].reduce(
    (sum, factor, i) => sum + factor * linear(parts(color)[i]), 0.05);
  const ratio = (one, other) => Math.max(one, other) / Math.min(one, other);
  return Math.min(...[...document.querySelectorAll(".highlight pre .c1")].map((comment) =>
    ratio(light(getComputedStyle(comment).color),
          light(getComputedStyle(comment.closest("pre")).backgroundColor))));
}"""


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_comments_in_code_are_readable(page, mode):
    page.emulate_media(color_scheme=mode)
    page.goto(address("start/which_call.html"))
    assert 4.5 <= page.evaluate(CONTRAST) < 21


def test_charts_follow_the_switch(page):
    """A chart takes light or dark from the page, not from the system."""
    page.emulate_media(color_scheme="light")
    page.goto(address("index.html"))
    page.evaluate("localStorage.setItem('mode', 'dark')")
    page.goto(address("kernels.html"))
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "dark"
    chart = page.locator("article img[src$='.svg']").first
    chart.scroll_into_view_if_needed()
    assert chart.evaluate("image => image.naturalWidth") > 0
    assert chart.evaluate("image => getComputedStyle(image).backgroundColor") == "rgba(0, 0, 0, 0)"


def test_the_copy_button_copies_what_was_typed(page):
    page.goto(address("index.html"))
    page.evaluate(
        "document.addEventListener('copy', () => { window.copied = document.activeElement.value; })"
    )
    page.locator("div.highlight").first.hover()
    page.locator("button.copybtn").first.click()
    page.wait_for_function("window.copied !== undefined")
    lines = page.evaluate("window.copied").splitlines()
    assert lines[0] == "import arraybridge as ab"
    assert not [line for line in lines if line.startswith((">>>", "Traceback", "tensor", "True"))]


def test_page_404_leads_on(page):
    page.goto(address("404.html"))
    page.locator("article p a").first.click()
    page.wait_for_url(address("index.html"))
