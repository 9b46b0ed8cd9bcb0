"""Pictures of memory and routes: the boxes that are drawn are where the elements are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from html.parser import HTMLParser
from itertools import product
from math import comb
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import arraybridge as ab
from arraybridge.drawing import array_html, info_html, memory_svg, route_html, route_svg, table_html
from arraybridge.drawing.cells import memory_of
from tests.support.optional import needs, optional

torch, jax, pyarrow = map(optional, ("torch", "jax", "pyarrow"))

SVG = "{http://www.w3.org/2000/svg}"
BOX = re.compile(
    r"(−?[\d,]+) (?:B|bits): "
    r"(?:element \(([\d, ]*)\)(?:, read( at least)? ([\d,]+ times|once))?|no element)"
)
LARGEST = 30_000  # characters


def drawn(svg: str) -> dict[int, tuple[tuple[int, ...] | None, int, bool]]:
    """Byte offset -> the element of its box, None for a gap; how often it is read, or at least.

    In the order of the picture.
    """
    found: dict[int, tuple[tuple[int, ...] | None, int, bool]] = {}
    for rect in ElementTree.fromstring(svg).iter(f"{SVG}rect"):
        title = rect.find(f"{SVG}title")
        if title is None:
            continue
        match = BOX.fullmatch(title.text)
        assert match, title.text
        offset, index, least, often = match.groups()
        at = int(offset.replace(",", "").replace("−", "-"))
        numbers = None if index is None else tuple(map(int, index.split(", "))) if index else ()
        assert at not in found
        times = int(often.split()[0].replace(",", "")) if often and often != "once" else 1
        found[at] = numbers, times, least is None
    return found


def hidden(svg: str) -> int:
    words = [text.text or "" for text in ElementTree.fromstring(svg).iter(f"{SVG}text")]
    counts = [re.match(r"… ([\d,]+) more(?! axes)", word) for word in words]
    return sum(int(match[1].replace(",", "")) for match in counts if match)


@st.composite
def layouts(draw: st.DrawFn, most: int = 5) -> np.ndarray:
    """Views of a dense array: sliced with steps of any sign, transposed, broadcast, windowed."""
    shape = draw(npst.array_shapes(min_dims=0, max_dims=3, min_side=1, max_side=most))
    x = np.zeros(shape, draw(st.sampled_from(["u1", "i2", "f4", "c16"])))
    steps = [draw(st.sampled_from([1, 2, 3, -1, -2])) for _ in shape]
    x = x[(..., *(slice(None, None, step) for step in steps))]  # "...": never a scalar
    x = x.transpose(draw(st.permutations(range(x.ndim))))
    if draw(st.booleans()):
        x = np.broadcast_to(x, (draw(st.integers(1, 3)), *x.shape))
    elif x.ndim == 1 and x.size > 2 and draw(st.booleans()):
        x = np.lib.stride_tricks.sliding_window_view(x, 2)
    return x


def address(x: np.ndarray, index: tuple[int, ...]) -> int:
    """Of an element, as NumPy finds it: bytes from the first."""
    view = x[(..., *(slice(i, i + 1) for i in index))]
    return view.__array_interface__["data"][0] - x.__array_interface__["data"][0]


@settings(max_examples=150, deadline=None)
@given(layouts())
def test_boxes_are_where_the_elements_are(x: np.ndarray) -> None:
    svg = memory_svg(ab.inspect(x))
    boxes = drawn(svg)
    real = Counter(address(x, index) for index in product(*map(range, x.shape)))
    for at, (index, times, exact) in boxes.items():
        assert (at in real) == (index is not None)
        if index is not None:
            assert address(x, index) == at
            assert times == real[at] if exact else times <= real[at]
    assert list(boxes) == sorted(boxes)
    covered = (max(real) - min(real)) // x.itemsize + 1
    assert len(boxes) + hidden(svg) == covered
    if not hidden(svg):
        assert set(real) <= set(boxes)
    assert min(boxes) == min(real)
    assert max(boxes) == max(real)


@settings(max_examples=40, deadline=None)
@given(layouts(most=60))
def test_truncated_pictures_are_true(x: np.ndarray) -> None:
    svg = memory_svg(ab.inspect(x))
    for at, (index, _, _) in drawn(svg).items():
        if index is not None:
            assert address(x, index) == at
    low, high = np.lib.array_utils.byte_bounds(x)
    assert len(drawn(svg)) + hidden(svg) == (high - low) // x.itemsize


AXES = st.lists(st.tuples(st.integers(1, 40), st.integers(-12, 12)), min_size=1, max_size=3)


@settings(max_examples=150, deadline=None)
@given(AXES)
@example([(100, 3), (100, 2)])  # more steps to try than are tried
def test_no_layout_is_drawn_as_what_it_is_not(axes: list[tuple[int, int]]) -> None:
    shape, strides = zip(*axes, strict=True)
    indices = np.indices([1 if step == 0 else extent for extent, step in axes])
    real = Counter(np.tensordot(strides, indices, 1).ravel().tolist())
    for cell in (cell for row in memory_of(shape, strides, 12).rows for cell in row):
        if cell.known:
            assert (cell.element is not None) == (cell.at in real)
        if cell.element is not None:
            assert np.dot(cell.element, strides) == cell.at
            assert cell.sharing == real[cell.at] if cell.known else cell.sharing <= real[cell.at]


def odd() -> dict[str, np.ndarray]:
    windows = np.lib.stride_tricks.as_strided(np.zeros(64, "u1"), (2,) * 32, (1,) * 32)
    return {
        "0-d": np.array(3.0),
        "empty": np.zeros((0, 3)),
        "32-d": np.zeros((1,) * 31 + (3,)),
        "32-d, overlapping": windows,
        "2**20 axes of two": np.zeros((2,) * 20),
        "many": np.zeros(1 << 24, "u1")[::-1],
        "far apart": np.lib.stride_tricks.as_strided(np.zeros(1), (2, 2), (1 << 40, -(1 << 50))),
        "strings": np.zeros(3, "S7"),
    }


@pytest.mark.parametrize("name", list(odd()))
def test_odd_arrays_are_drawn_small(name: str) -> None:
    x = odd()[name]
    info = ab.inspect(x)
    assert len(info_html(info)) < LARGEST
    route = ab.explain(x, "numpy", copy=True)
    assert len(route_html(route)) < LARGEST
    if name != "strings" and name != "far apart":
        assert len(ab.from_dlpack(x)._repr_html_()) < LARGEST


def test_what_is_not_all_counted_is_at_least_that() -> None:
    """The windows of 32 axes: at byte n as many elements as there are ways to choose n axes."""
    boxes = drawn(memory_svg(ab.inspect(odd()["32-d, overlapping"])))
    for at, (_, times, exact) in boxes.items():
        assert times == comb(32, at) if exact else times <= comb(32, at)
    assert not all(exact for _, _, exact in boxes.values())


def plain() -> np.ndarray:
    return np.arange(6.0).reshape(2, 3)


def packed() -> ab.Array:
    memory = np.zeros(8, "u1")
    return ab.from_pointer(memory.ctypes.data, (3, 5), "int4", device="cpu", owner=memory)


#: Of an array: how it is made, what of its description is another's, and words of the card.
SAID = {
    "writable": (plain, {}, "writable", "read-only"),
    "read-only": (lambda: np.broadcast_to(plain(), (2, 2, 3)), {}, "read-only", "writable"),
    "read twice": (lambda: np.broadcast_to(plain(), (2, 2, 3)), {}, ", read 2 times", "at least"),
    "windows": (
        lambda: np.lib.stride_tricks.sliding_window_view(np.zeros(6), 2),
        {},
        "element (4, 1)</title>",
        "(0, 1)</title>",  # which is (1, 0) as well
    ),
    "aligned": (plain, {}, "aligned to ", "handle"),
    "a handle": (plain, {"device": ab.Device("metal")}, "on metal:0", "aligned to"),
    "no address": (plain, {"data": 0}, "the array has no memory of its own", "<rect"),
    "bits": (packed, {}, "strides (20, 4) bits", " B:"),
    "many axes": (lambda: np.zeros((2,) * 20), {}, "… 14 more axes", "axis 6:"),
    "hidden": (lambda: np.zeros((99, 99))[::-1], {}, " more, including the start", ">start<"),
    "shown": (lambda: np.zeros((99, 99)), {}, ">start<", "including the start"),
    "long": (plain, {"library": "l" * LARGEST}, "lll…", "l" * 1000),
}


@pytest.mark.parametrize(("make", "other", "said", "unsaid"), SAID.values(), ids=SAID)
def test_what_a_card_says(
    make: Callable[[], Any], other: dict[str, Any], said: str, unsaid: str
) -> None:
    html = info_html(ab.inspect(make())._replace(**other))
    assert said in html
    assert unsaid not in html


def test_booleans_of_arrow_are_bits() -> None:
    html = info_html(ab.inspect(pyarrow.array([True] * 12)))
    assert "strides (1,) bits" in html
    assert "the elements are packed, eight to a byte</text>" in html


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


EVIL = '"><script>alert(1)</script><img src=x onerror=alert(1)>\0\ud800&'


@needs("torch")
def test_texts_from_outside_are_escaped() -> None:
    info = ab.inspect(np.zeros((2, 3)))._replace(library=EVIL, pending=(EVIL,), refused=EVIL)
    route = ab.explain(np.zeros((2, 3))[::-1], "torch")
    copied = route._replace(source=EVIL, target=EVIL, why=f"{EVIL}: {EVIL}")
    refused = copied._replace(kind="refuse")
    for made in copied, refused:
        made.info = info
    assert copied.made is not None
    plain = Tags()
    plain.feed(info_html(ab.inspect(np.zeros((2, 3)))) + route_html(route))
    plain.feed(array_html(None, "", ""))
    plain.feed(
        route_html(route._replace(kind="refuse")) + table_html("", "", [["a"], ["b"]], 0, ["c"])
    )
    table = table_html(EVIL, EVIL, [[EVIL], [EVIL]], 1, [EVIL])
    values = array_html(None, EVIL, EVIL)
    for html in (info_html(info), route_html(copied), route_html(refused), table, values):
        found = Tags()
        found.feed(html)
        assert found.tags <= plain.tags
        assert found.attributes <= plain.attributes
        assert "\0" not in html
        html.encode()
    for made in (copied, refused):
        ElementTree.fromstring(route_svg(made, title=EVIL, page=True))


def test_an_array_shows_what_it_is() -> None:
    x = np.arange(12, dtype="f4").reshape(3, 4)
    x.flags.writeable = False
    html = ab.from_dlpack(x)._repr_html_()
    for words in ("float32 (3, 4) on cpu", "48 bytes", "read-only", "[ 4.,  5.,  6.,  7.]", "<svg"):
        assert words in html
    long = ab.from_dlpack(np.arange(10_000))._repr_html_()
    assert "..." in long
    assert "5000" not in re.sub(r"aria-label.*?>", "", long)
    wide = ab.from_dlpack(np.arange(1e6).reshape(1000, 1000))._repr_html_()
    (values,) = re.findall("<pre[^>]*>(.*?)</pre>", wide, re.DOTALL)
    assert max(map(len, values.splitlines())) <= 56  # as many as the card has room for
    deep = ab.from_dlpack(np.zeros((2, 2, 6, 6, 6, 6)))._repr_html_()
    assert "[0, 0, 0, ...] =\n[[[0., 0.," in deep
    assert "&lt;arraybridge.Array dlpack: int4" in packed()._repr_html_()


def test_no_name_is_invented_for_a_data_type() -> None:
    x = np.zeros(4, "datetime64[s]")
    html = info_html(ab.inspect(x)) + route_html(ab.explain(x, "numpy", copy=False))
    assert "datetime64[s]" in html
    assert "strides (1,) elements" in html
    assert not re.search("handle8|, 4 bytes|1 B", html)


def test_values_are_read_of_host_memory_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    x = ab.from_dlpack(np.full(4, 7.25))
    away = ab.inspect(x)._replace(device=ab.Device("cuda"))
    monkeypatch.setattr(type(x), "info", property(lambda self: away))
    monkeypatch.setattr(type(x), "__array__", None)
    html = x._repr_html_()
    assert "7.25" not in html
    assert "not in host memory" in html


def test_what_cannot_be_read_is_shown_all_the_same() -> None:
    html = ab.from_dlpack(torch.full((2,), 7.25, requires_grad=True))._repr_html_()
    assert "7.25" in html
    assert "requires_grad" in html


@pytest.mark.parametrize("shape", [(0, 2, 2, 2, 2), (2, 0, 3, 4, 5, 6), (0,) * 32, (50, 50, 0)])
def test_an_array_without_elements_is_shown(shape: tuple[int, ...]) -> None:
    assert "no elements" in ab.from_dlpack(np.zeros(shape))._repr_html_()


def test_to_show_an_array_is_no_copy() -> None:
    x = torch.ones(2, 3, dtype=torch.complex64)
    arrays = [x, x.conj(), x.conj().imag, x.numpy()[::-1], x.numpy().astype(">c8")]
    arrays = [ab.from_dlpack(array) for array in arrays]
    with ab.audit(copies="forbid", libraries=True) as log:
        assert all("1." in array._repr_html_() for array in arrays)
    assert not log.records
    far = torch.ones(1, dtype=torch.complex64).expand(1 << 40).conj()
    assert "would copy 8,796,093,022,208 bytes" in ab.from_dlpack(far)._repr_html_()


def test_memory_that_is_gone_is_not_read() -> None:
    t = torch.ones(1000)
    x = ab.from_dlpack(t)
    t.untyped_storage().resize_(0)  # torch's own repr ends the process
    assert "storage was resized" in x._repr_html_()
    assert repr(x) == "Array(<its storage was resized>, torch: float32 (1000,) on cpu)"
    t = torch.zeros(3, dtype=torch.uint8).view(torch.bits8)  # torch's own repr raises
    assert "NotImplementedError" in repr(ab.from_dlpack(t))


def test_a_deleted_array_is_shown() -> None:
    x = ab.from_dlpack(jax.numpy.ones(3))
    x.native.delete()
    assert repr(x) == "Array(<deleted>, jax: float32 (3,))"
    assert "deleted" in x._repr_html_()


def test_print_options_do_not_hide_an_array() -> None:
    with np.printoptions(formatter={"float": lambda x: 1 / 0}):
        assert "ZeroDivisionError" in ab.from_dlpack(np.ones(3))._repr_html_()


def test_a_tracer_is_shown() -> None:
    shown: list[str] = []
    kind = type(ab.from_dlpack(jax.numpy.ones(3)))

    @jax.jit
    def traced(x):
        shown.append(kind._of(x)._repr_html_())
        return x

    traced(jax.numpy.ones(3))
    assert "float32" in shown[0]


def test_a_search_without_an_end_is_given_up() -> None:
    """Of a layout that asks for too much, boxes say that they do not know."""
    steps = (2,) * 12  # nothing lies at odd places, and a thousand elements lie beside each
    memory = memory_of((2,) * len(steps), steps, 12)
    cells = [cell for row in memory.rows for cell in row]
    assert any(not cell.known for cell in cells)
    for cell in cells:
        if cell.element is not None:
            assert sum(i * s for i, s in zip(cell.element, steps, strict=True)) == cell.at


def test_routes_compare_as_before() -> None:
    import pickle

    x = np.zeros((3, 4))
    route = ab.explain(x[::-1], "numpy", copy=True)
    assert route == ab.explain(x[1:][::-1], "numpy", copy=True)._replace(
        nbytes=route.nbytes, copier=route.copier
    )
    again = pickle.loads(pickle.dumps(route))
    assert (again.kind, again.info, str(again)) == (route.kind, None, str(route))
    assert "<svg" in again._repr_html_()


def test_a_card_names_the_outcome_as_the_pages_do():
    x = np.arange(6.0).reshape(2, 3)
    for array, target, said in (
        (x, "torch", "numpy → torch: view"),
        (x[::-1], "torch", "numpy → torch: copied"),
        (torch.ones(2, requires_grad=True), "numpy", "torch → numpy: refused"),
    ):
        assert said in ab.explain(array, target)._repr_html_()


@needs("torch")
def test_an_audit_is_shown_as_its_table() -> None:
    with ab.audit() as log:
        assert "0 routes, 0 copies of 0 bytes" in log._repr_html_()
        ab.convert(np.zeros((2, 3))[::-1], "torch")
    html = re.sub(r"<[^>]*>", " ", log._repr_html_())
    assert "bytes copies calls route call why where 48 1 1 numpy" in " ".join(html.split())
    assert "copied" in html
