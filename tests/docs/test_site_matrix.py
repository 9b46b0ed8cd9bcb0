"""The interactive matrix in a headless browser: filters, the panel of a pair, the address."""

from __future__ import annotations

from collections import Counter
from urllib.parse import parse_qsl

import pytest

from tests.docs import test_site
from tests.matrix import data
from tests.matrix.report import OUTCOMES, theirs
from tests.matrix.run import Cell

pytestmark = pytest.mark.site

browser, page = test_site.browser, test_site.page
MATRIX = f"file://{test_site.SITE}/matrix.html"
PANEL = "#matrix .mx-panel"


@pytest.fixture(scope="module")
def numpy_to_torch() -> list[Cell]:
    run = data.load(test_site.ROOT / "docs")
    return [cell for cell in run.cells if (cell.source, cell.target) == ("numpy", "torch")]


@pytest.fixture
def matrix(page):
    page.goto(MATRIX)
    page.wait_for_selector("#matrix table")
    return page


def choose(page, **filters: str) -> None:
    for name, value in filters.items():
        page.select_option(f"#mx-{name}", value)


def cell(page, source: str, target: str):
    return page.locator(f'button[data-pair="{source}.{target}"]')


def test_the_grid_has_every_pair_and_headers(matrix) -> None:
    names = matrix.evaluate("window.MATRIX.libraries")
    assert matrix.locator("#matrix tbody button").count() == len(names) * (len(names) - 1)
    assert matrix.locator('#matrix thead th[scope="col"]').count() == len(names) + 1
    assert matrix.locator('#matrix tbody th[scope="row"]').count() == len(names)
    told = cell(matrix, "numpy", "torch").inner_text().split()
    spoken = cell(matrix, "numpy", "torch").get_attribute("aria-label")
    assert spoken.startswith(f"numpy to torch: {told[1]} views, ")
    assert matrix.locator(PANEL).is_hidden()


def test_cells_show_what_the_data_has(matrix, numpy_to_torch) -> None:
    timed = next(c for c in numpy_to_torch if c.ns)
    counts = {
        "route": Counter(c.verdict[0] for c in numpy_to_torch if c.verdict != "n/a"),
        "own": Counter("rnwc"[OUTCOMES.index(theirs(c))] for c in numpy_to_torch if c.native),
    }
    shown = cell(matrix, "numpy", "torch")
    for mode, count in counts.items():
        matrix.check(f"#matrix input[value={mode}]")
        told = shown.inner_text().split()
        assert dict(zip(told[::2], map(int, told[1::2]), strict=True)) == count
    matrix.check("#matrix input[value=time]")
    assert f"{timed.ns / 1000:.2f} µs" in shown.inner_text()
    assert f"own {timed.native_ns / 1000:.2f}" in shown.inner_text()


def test_the_examples_are_questions_with_an_answer(matrix) -> None:
    for link in matrix.locator("#matrix .mx-examples a").all():
        link.click()
        for name, value in parse_qsl(link.get_attribute("href").removeprefix("#")):
            if name != "show":
                is_set = "([name, value]) => document.getElementById(`mx-${name}`).value === value"
                matrix.wait_for_function(is_set, arg=[name, value])
        assert not matrix.locator("#matrix [role=status]").inner_text().startswith("0 cases")


def test_a_panel_has_every_case_and_closes(matrix, numpy_to_torch) -> None:
    choose(matrix, **{"from": "numpy", "to": "torch"})
    panel = matrix.locator(PANEL)
    assert panel.locator(".mx-card li > span").count() == len(numpy_to_torch)
    assert "{" not in panel.inner_text()
    choose(matrix, layout="read-only")
    assert 'ab.convert(x, "torch", alias_readonly=True)' in panel.locator("code").all_inner_texts()
    shown = (c for c in numpy_to_torch if c.case.startswith("read-only") and c.verdict == "copy")
    moved = [c.nbytes for c in shown]
    assert f"{min(moved)} to {max(moved)} bytes moved" in panel.inner_text()
    panel.get_by_text("Close", exact=True).click()
    assert panel.is_hidden()
    assert [matrix.locator(f"#mx-{name}").input_value() for name in ("from", "to")] == ["numpy", ""]
    assert matrix.evaluate("document.activeElement.dataset.pair") == "numpy.torch"


def test_a_question_is_answered_in_three_steps(matrix) -> None:
    cell(matrix, "numpy", "torch").click()
    choose(matrix, dtype="float16", layout="negative")
    panel = matrix.locator(PANEL)
    assert panel.locator("h2").inner_text() == "numpy → torch"
    assert panel.locator(".mx-card").count() == 1
    text = panel.inner_text()
    for words in ("copy", "24 bytes", "torch takes no negative strides", "float16 negative"):
        assert words in text
    assert panel.locator("pre code").inner_text() == 'ab.convert(x, "torch")'
    assert panel.locator(".mx-own .mx-crash").inner_text() == "crash"
    assert cell(matrix, "numpy", "torch").inner_text() == "copy"


def test_a_refusal_shows_what_to_write(matrix) -> None:
    choose(matrix, **{"from": "torch", "to": "numpy", "layout": "requires_grad"})
    panel = matrix.locator(PANEL)
    assert panel.locator("pre code").inner_text() == 'ab.convert(x.detach(), "numpy")'
    assert panel.locator(".mx-refused").first.inner_text() == "refused"
    matrix.context.grant_permissions(["clipboard-read", "clipboard-write"])
    panel.get_by_text("Copy", exact=True).click()
    panel.get_by_text("Copied").wait_for()
    assert matrix.evaluate("navigator.clipboard.readText()") == 'ab.convert(x.detach(), "numpy")'


def test_filters_say_what_is_left(matrix) -> None:
    choose(matrix, dtype="float8_e5m2", layout="negative")
    assert not matrix.locator('#mx-layout option[value="negative"]').is_disabled()
    assert matrix.locator('#mx-layout option[value="8-d"]').is_disabled()
    choose(matrix, layout="", dtype="float32")
    choose(matrix, layout="8-d")  # of which there is one data type
    enabled = "#mx-dtype option:not([disabled]):not([value=''])"
    assert matrix.locator(enabled).all_inner_texts() == ["float32"]
    choose(matrix, layout="", dtype="float8_e5m2", **{"from": "torch"})
    left = matrix.locator('#mx-layout option[value="negative"]').inner_text()
    assert left == "negative (no such array)"
    choose(matrix, dtype="", layout="read-only", **{"from": ""})
    options = matrix.locator("#mx-from option").all_inner_texts()
    assert {"jax (every array is)", "torch (no such array)", "numpy"} <= set(options)
    choose(matrix, layout="", **{"from": "jax"})
    left = matrix.locator('#mx-layout option[value="read-only"]').inner_text()
    assert left == "read-only (every array is)"
    choose(matrix, dtype="float8_e5m2", **{"from": "torch"})
    assert matrix.locator("#matrix .mx-list tbody tr").count() == (
        matrix.evaluate("window.MATRIX.libraries.length") - 1
    )
    matrix.get_by_text("Clear filters").click()
    assert cell(matrix, "numpy", "torch").is_visible()
    assert matrix.evaluate("location.hash") == ""


def test_keys_alone_do(matrix) -> None:
    first = matrix.locator('#matrix tbody button[tabindex="0"]')
    assert first.count() == 1
    first.focus()
    begin = first.get_attribute("data-pair")
    for key in ("ArrowDown", "ArrowRight", "ArrowLeft", "ArrowUp"):
        matrix.keyboard.press(key)
    assert matrix.evaluate("document.activeElement.dataset.pair") == begin
    for key in ("ArrowDown", "ArrowRight", "Enter"):
        matrix.keyboard.press(key)
    focused = matrix.evaluate("document.activeElement.textContent")
    assert focused == matrix.locator(f"{PANEL} h2").inner_text()
    assert matrix.locator(f"{PANEL} .mx-card").count() > 3
    status = matrix.locator("#matrix [role=status]")
    assert focused.replace(" → ", " to ") in status.inner_text()


@pytest.mark.parametrize(
    "hash",
    ["from=numpy&to=numpy", "show=constructor", "at=numpy.numpy&own=__proto__", "from=<b>&%"],
)
def test_an_address_may_say_anything(matrix, hash: str) -> None:
    errors: list[str] = []
    matrix.on("pageerror", lambda error: errors.append(str(error)))
    matrix.evaluate("hash => { location.hash = hash; }", hash)
    matrix.wait_for_timeout(200)
    matrix.reload()
    assert not errors
    assert "cases" in matrix.locator(".mx-status").inner_text()
    assert matrix.locator("#matrix input[type=radio]:checked").count() == 1


def test_the_address_restores_the_state(matrix) -> None:
    cell(matrix, "jax", "numpy").click()
    choose(matrix, outcome="view", dtype="float32")
    address, text = matrix.evaluate("location.href"), matrix.locator(PANEL).inner_text()
    assert {"outcome=view", "dtype=float32", "at=jax.numpy"} <= set(
        address.split("#")[1].split("&")
    )
    matrix.goto("about:blank")
    matrix.goto(address)
    assert matrix.locator(PANEL).inner_text() == text
    assert matrix.locator("#mx-outcome").input_value() == "view"
    matrix.goto(f"{MATRIX}#from=nobody&at=x.y")  # what there is not, is left out
    assert cell(matrix, "numpy", "torch").is_visible()


@pytest.mark.parametrize("state", ["", "#from=numpy", "#from=numpy&to=torch"])
def test_a_phone_scrolls_only_down(page, state) -> None:
    page.set_viewport_size({"width": test_site.NARROW[0], "height": test_site.NARROW[1]})
    page.goto(MATRIX + state)
    page.wait_for_selector("#matrix form")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    if state == "#from=numpy":
        cell(page, "numpy", "torch").click()
        assert page.locator(f"{PANEL} h2").is_visible()
    within = "e => e.scrollWidth <= document.documentElement.clientWidth"
    assert page.locator("#matrix form").evaluate(within)
    if state:
        assert page.locator("#matrix .mx-panel").evaluate(within)


def test_without_a_script_there_is_a_table(browser) -> None:
    context = browser.new_context(java_script_enabled=False, offline=True)
    page = context.new_page()
    page.goto(MATRIX)
    assert "The table below does not." in page.locator("#matrix").inner_text()
    assert page.locator("article table").count() == 1
    context.close()
