"""The tests themselves: no assertion that holds whatever happens, no skip that nobody asked for."""

from __future__ import annotations

import ast

import pytest

from tests.support.optional import optional
from tests.support.processes import ROOT

TESTS = ROOT / "tests"
LITERALS = ast.Tuple | ast.List | ast.Dict | ast.Set | ast.JoinedStr | ast.Lambda | ast.GeneratorExp


def always_true(node: ast.expr, functions: set[str]) -> bool:
    """Whether an expression is true by its form: a literal, a function, a new object."""
    if isinstance(node, ast.BoolOp):
        each = (always_true(value, functions) for value in node.values)
        return any(each) if isinstance(node.op, ast.Or) else all(each)
    if isinstance(node, ast.Constant):
        return bool(node.value)
    if isinstance(node, ast.Call):  # of a class, by its name
        name = getattr(node.func, "attr", getattr(node.func, "id", "")).lstrip("_")
        return name[:1].isupper() and not name.isupper()
    return isinstance(node, LITERALS) or (isinstance(node, ast.Name) and node.id in functions)


def vacuous(source: str) -> list[str]:
    """The assertions of a file that cannot fail."""
    tree = ast.parse(source)
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    asserts = [node for node in ast.walk(tree) if isinstance(node, ast.Assert)]
    return [ast.unparse(node) for node in asserts if always_true(node.test, functions)]


@pytest.mark.parametrize(
    "wrong",
    [
        "assert x == 'cpu' or Device(1)",
        "assert (x == 1, 'one')",
        "assert x.ok or 'no'",
        "def ok(): ...\nassert ok",
        "assert (y for y in x)",
    ],
)
def test_what_cannot_fail_is_seen(wrong: str) -> None:
    assert len(vacuous(wrong)) == 1
    assert not vacuous("assert x == 'cpu' or x == Device(1)\nassert f(x) and (x, 1) == y")


def test_every_assertion_can_fail() -> None:
    found = {str(path): vacuous(path.read_text()) for path in TESTS.rglob("*.py")}
    assert len(found) > 80
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


def test_a_library_that_is_missing_is_false_and_skips_who_uses_it():
    missing = optional("no_such_library")
    assert [x for x in (missing, missing) if x] == []
    with pytest.raises(pytest.skip.Exception):
        missing.array([1])
