"""Every public name is documented with an example, and the example runs against the libraries."""

from __future__ import annotations

import doctest
import inspect
import re
from types import ModuleType
from typing import Any

import pytest

import arraybridge as ab
from arraybridge import auditing, sharding, tree
from tests.support.optional import needs
from tests.support.processes import ROOT

PAGES = sorted((ROOT / "docs" / "api").glob("*.rst"))
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
LIBRARIES = {"torch", "jax", "polars", "dask"}

#: Every public object once, under the first name that it has.
PUBLIC: dict[str, Any] = {}
for module in (ab, ab.dlpack, auditing, sharding, tree):
    for name in module.__all__:
        value = getattr(module, name)
        if not isinstance(value, ModuleType) and all(
            value is not known for known in PUBLIC.values()
        ):
            PUBLIC[f"{module.__name__}.{name}"] = value
DOCUMENTED = {name: x for name, x in PUBLIC.items() if isinstance(x, type) or inspect.isroutine(x)}
STRUCTS = {name for name in DOCUMENTED if name.startswith("arraybridge.dlpack.DL")} - {
    "arraybridge.dlpack.DLPackError"
}
CONSTANTS = PUBLIC.keys() - DOCUMENTED.keys()

#: Members without an example: those of Library, and those that only arraybridge calls.
EXEMPT = {
    "arraybridge.Library": set(dir(ab.Library)),
    "arraybridge.dlpack.ManagedTensor": {"trusted"},
}


def members(name: str, cls: type) -> dict[str, Any]:
    """The methods and properties that a class defines itself and that have a docstring."""
    found = {}
    for member, value in vars(cls).items():
        if not member.startswith("_") and member not in EXEMPT.get(name, ()):
            function = getattr(value, "fget", None) or getattr(value, "__func__", value)
            if inspect.isfunction(function):
                found[member] = function
    return found


def run(name: str, text: str) -> int:
    """Run the examples of a text, and return how many there are."""
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    report: list[str] = []
    failed, attempted = runner.run(test, out=report.append)
    assert not failed, "".join(report)
    return attempted


def documented() -> list[Any]:
    """(name, docstring) of all that has examples."""
    texts = {page.name: page.read_text() for page in PAGES if ">>>" in page.read_text()}
    for name, value in DOCUMENTED.items():
        if name in STRUCTS:  # the page about DLPack uses them
            continue
        texts[name] = inspect.getdoc(value) or ""
        if isinstance(value, type):
            for member, function in members(name, value).items():
                text = inspect.getdoc(function) or ""
                if ">>>" in text:
                    texts[f"{name}.{member}"] = text
    return [
        pytest.param(name, text, id=name, marks=needs(*LIBRARIES & set(re.findall(r"\w+", text))))
        for name, text in texts.items()
    ]


@pytest.mark.parametrize(("name", "text"), documented())
def test_examples_run(name, text):
    assert name.endswith(".rst") or re.search(r"^Examples\n-+$", text, re.MULTILINE), (
        f"the docstring of {name} has no section Examples"
    )
    assert run(name, text)


@pytest.mark.parametrize(
    "name",
    [name for name, x in DOCUMENTED.items() if isinstance(x, type) and name not in STRUCTS],
)
def test_examples_show_every_member(name):
    """A method or property has an example of its own, or that of the class uses it."""
    shown = " ".join(
        re.findall(r"^(?:>>>|\.\.\.) (.*)", inspect.getdoc(PUBLIC[name]), re.MULTILINE)
    )
    missing = [
        member
        for member, function in members(name, PUBLIC[name]).items()
        if not re.search(rf"\.{member}\b", shown) and ">>>" not in (function.__doc__ or "")
    ]
    assert missing == []


def test_pages_show_every_constant():
    shown = " ".join(
        re.findall(r"^\s*>>> (.*)", "".join(p.read_text() for p in PAGES), re.MULTILINE)
    )
    assert [name for name in CONSTANTS if name.rpartition(".")[2] not in shown] == []


def test_pages_list_every_name():
    listed = set(re.findall(r"[\w.]+", "".join(page.read_text() for page in PAGES)))
    assert [name for name in PUBLIC if name.rpartition(".")[2] not in listed] == []
