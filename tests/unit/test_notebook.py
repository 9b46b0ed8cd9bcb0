"""What a notebook shows: tables of fields, escaped, and an Array's own repr."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np

import arraybridge as ab
from arraybridge.notebook import table
from tests.support.optional import needs


def cells(html: str) -> list[str]:
    found: list[str] = []
    parser = HTMLParser()
    parser.handle_data = found.append  # type: ignore[method-assign]
    parser.feed(html)
    return found


def test_names_and_values_are_escaped() -> None:
    assert cells(table({"<b>": "a & b", "n": 3})) == ["<b>", "a & b", "n", "3"]
    assert "<b>" not in table({"<b>": "<b>"})


def test_what_is_shown() -> None:
    x = np.arange(6.0).reshape(2, 3)
    described = cells(ab.inspect(x)._repr_html_())
    assert described[described.index("shape") + 1] == "(2, 3)"
    route = cells(ab.explain(x[::-1], "numpy", copy=True)._repr_html_())
    assert route[route.index("nbytes") + 1] == "48"
    array = ab.from_dlpack(x)
    assert cells(array._repr_html_())[0] == repr(array)
    assert cells(array._repr_html_())[1:] == described


@needs("jax")
def test_tracers_have_only_a_repr() -> None:
    import jax

    import arraybridge.xp.jax as xp

    shown: list[str] = []
    jax.jit(lambda x: shown.append(xp.asarray(x)._repr_html_()))(np.ones(3))
    assert "<table>" not in shown[0]
