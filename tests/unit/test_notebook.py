"""What a notebook shows: tables of fields, escaped, and an Array's own repr."""

from __future__ import annotations

import html
import re

import numpy as np

import arraybridge as ab
from arraybridge.notebook import table


def cells(text: str) -> list[str]:
    return [html.unescape(found) for found in re.findall(r">([^<]+)<", text)]


def test_what_is_shown() -> None:
    assert cells(table({"<b>": "a & b", "n": 3})) == ["<b>", "a & b", "n", "3"]
    x = np.arange(6.0).reshape(2, 3)
    described = cells(ab.inspect(x)._repr_html_())
    assert described[described.index("shape") + 1] == "(2, 3)"
    route = cells(ab.explain(x[::-1], "numpy", copy=True)._repr_html_())
    assert route[route.index("nbytes") + 1] == "48"
    array = ab.from_dlpack(x)
    assert cells(array._repr_html_()) == [repr(array), *described]
