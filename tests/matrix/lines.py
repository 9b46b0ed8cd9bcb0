"""The line of code for a cell: the plain call, or the remedy of a refusal.

Each line is run in the cell's own process first, so that every line shown works.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from .cases import Case

#: State of an array that only a refusal is right for -> what to pass instead.
INSTEAD = {
    "requires_grad": "x.detach()",
    "structured": 'x["a"]',
    "object": 'x.astype("float64")',
    "datetime": 'x.view("int64")',
    "masked": "x.filled(0)",
    "arrow_nulls": "x.fill_null(0)",
}
#: Data type -> what to ask for where the target lacks it, the nearest first.
NEAREST = {
    "bool": ("uint8",),
    "uint16": ("int32",),
    "uint32": ("int64", "int32"),
    "uint64": ("int64", "uint32"),
    "int64": ("int32",),
    "float64": ("float32",),
    "complex128": ("complex64",),
    "float16": ("float32",),
    "bfloat16": ("float32",),
    "float8_e8m0fnu": ("bfloat16", "float32"),
}  # the other float8 types: float16 holds them all


class Line(NamedTuple):
    """What to write."""

    code: str = ""  # a call of `ab.convert` on ``x``; empty if no line helps
    kind: str = ""  # of its route, as `explain` has it


def call(to: str, x: str = "x", **how: object) -> str:
    """Spell a call of `ab.convert`."""
    words = [x, f'"{to}"', *(f"{name}={_literal(value)}" for name, value in how.items())]
    return f"ab.convert({', '.join(words)})"


def _literal(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def explained(code: str) -> str:
    """The same question to `ab.explain`: the outermost call of a line."""
    return code.replace("ab.convert(", "ab.explain(", 1)


def run(code: str, x: Any, ab: Any) -> tuple[str, Any]:
    """The kind of route that a line takes, and what it gives."""
    names = {"ab": ab, "x": x}
    return eval(explained(code), names).kind, eval(code, names)


def mended(ab: Any, x: Any, case: Case, to: str, why: str, **how: object) -> Line:
    """The first line that converts what was refused."""
    for code in _remedies(case, to, why, how):
        try:
            return Line(code, run(code, x, ab)[0])
        except Exception:  # the next one
            continue
    return Line()


def _remedies(case: Case, to: str, why: str, how: dict[str, object]) -> Iterator[str]:
    if case.steps and case.steps[0][0] in INSTEAD:
        yield call(to, INSTEAD[case.steps[0][0]], **how)
    told = re.search(r"pass (?:[\w ]+, )?((?:x|arraybridge)\b.*?)(?:, which .*)?$", why)
    if told:
        yield call(to, told[1].replace("arraybridge.", "ab.").replace("'", '"'), **how)
    if "imaginary" in why:
        half = {"complex64": "float32", "complex128": "float64"}[case.dtype]
        yield call(to, f'ab.convert(x, "numpy")[..., None].view("{half}")', **how)
    if "dimensions" in why or "axis" in why:
        for shape in ("-1", "1, -1"):
            yield call(to, f'ab.convert(x, "numpy").reshape({shape})', **how)
    for dtype in NEAREST.get(case.dtype, ("float16", "bfloat16", "float32")):
        yield call(to, dtype=dtype, **how)


def view_instead(ab: Any, x: Any, to: str, **how: object) -> str:
    """A line that gives a view where the plain call copies, if there is one; else nothing."""
    for option in ({"alias_readonly": True}, {"copy": False}):
        if ab.explain(x, to, **option, **how).kind == "view":
            return call(to, **option, **how)
    return ""
