"""Every public name is in the reference, and its examples run against the libraries."""

from __future__ import annotations

import doctest
import inspect
import re
from types import ModuleType
from typing import Any

import pytest

import arraybridge as ab
from arraybridge import auditing, sharding, tree
from tests.docs.test_docs import FLAGS
from tests.support.optional import needs
from tests.support.processes import ROOT

PAGES = {page.name: page.read_text() for page in sorted((ROOT / "docs" / "api").glob("*.rst"))}
LIBRARIES = {"torch", "jax", "polars", "dask"}
PUBLIC: dict[str, Any] = {
    f"{module.__name__}.{name}": getattr(module, name)
    for module in (ab, ab.dlpack, auditing, sharding, tree)
    for name in module.__all__
    if not isinstance(getattr(module, name), ModuleType)
}


def texts() -> dict[str, str]:
    """The pages of the reference, and every docstring, that have examples."""
    found = dict(PAGES)
    for name, value in PUBLIC.items():
        if isinstance(value, type) or inspect.isroutine(value):
            found[name] = inspect.getdoc(value) or ""
        for member, each in vars(value).items() if isinstance(value, type) else ():
            function = getattr(each, "fget", None) or getattr(each, "__func__", each)
            if not member.startswith("_") and inspect.isfunction(function):
                found[f"{name}.{member}"] = inspect.getdoc(function) or ""
    return {name: text for name, text in found.items() if ">>>" in text}


EXAMPLES = [
    pytest.param(name, text, id=name, marks=needs(*LIBRARIES & set(re.findall(r"\w+", text))))
    for name, text in {text: (name, text) for name, text in texts().items()}.values()
]


@pytest.mark.parametrize(("name", "text"), EXAMPLES)
def test_examples_run(name, text):
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    report: list[str] = []
    doctest.DocTestRunner(optionflags=FLAGS).run(test, out=report.append)
    assert not report, "".join(report)


def test_every_function_has_an_example():
    shown = texts()
    functions = [name for name, value in PUBLIC.items() if inspect.isroutine(value)]
    assert [name for name in functions if name not in shown] == []


def test_pages_list_every_name():
    listed = set(re.findall(r"[\w.]+", "".join(PAGES.values())))
    assert [name for name in PUBLIC if name.rpartition(".")[2] not in listed] == []
