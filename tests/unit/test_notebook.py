"""What a notebook shows: tables of fields, escaped, and an Array's own repr."""

from __future__ import annotations

import html
import pickle
import re
from typing import get_args

import numpy as np

import arraybridge as ab
from arraybridge.core.records import Kind
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


def test_a_route_has_one_set_of_names() -> None:
    """In its fields, its repr, its table, its text and its pickle; the kinds are the annotated."""
    x = np.arange(6.0).reshape(2, 3)
    for route in (ab.explain(x, "numpy", copy=copy) for copy in (None, True)):
        fields = {name: getattr(route, name) for name in route._fields}
        assert repr(route) == f"Route({', '.join(f'{k}={v!r}' for k, v in fields.items())})"
        assert route._asdict() == fields
        assert cells(route._repr_html_()) == [str(part) for row in fields.items() for part in row]
        assert pickle.loads(pickle.dumps(route)) == route == ab.Route(**fields)
        assert route.kind in get_args(Kind)
    assert get_args(Kind) == ("view", "copy", "transfer", "refuse")
    assert str(route).startswith(f"numpy -> numpy on cpu: copied by {route.kernel}, 48 bytes (")
