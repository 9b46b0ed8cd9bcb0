"""The templates of the array API standard against themselves and against array_api_strict."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

import array_api_strict
import pytest

from arraybridge.xp import standard
from arraybridge.xp.standard import data_types

# array_api_strict says `Undef` where the standard has None as the default of these.
STRICT_DEFAULTS = {("astype", "device"), ("from_dlpack", "device"), ("from_dlpack", "copy")}
# ... leaves these out of linalg.__all__, though it has them,
STRICT_UNLISTED = {"linalg.eig", "linalg.eigvals"}
STRICT_OWN = {
    *("ArrayAPIStrictFlags", "Device", "__version__", "get_array_api_strict_flags"),
    *("reset_array_api_strict_flags", "set_array_api_strict_flags"),
}


def module_of(chapter: str) -> ModuleType:
    return import_module(f"{standard.__name__}.{chapter}")


def templates() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield each function and the name that a namespace has it by (``linalg.qr``)."""
    for chapter in (*standard.CHAPTERS, *standard.EXTENSIONS):
        module = module_of(chapter)
        prefix = f"{chapter}." if chapter in standard.EXTENSIONS else ""
        for name in module.__all__:
            if inspect.isfunction(getattr(module, name)):
                yield prefix + name, getattr(module, name)


TEMPLATES = dict(templates())


def test_data_types():
    info = array_api_strict.__array_namespace_info__()
    assert set(data_types.DATA_TYPES) == set(info.dtypes())
    for kind, names in data_types.KINDS.items():
        assert set(names) == set(info.dtypes(kind=kind)), kind
        assert list(names) == [name for name in data_types.DATA_TYPES if name in names]


def test_array_api_strict_has_the_same_names():
    ours = {*TEMPLATES, *data_types.__all__, *data_types.DATA_TYPES, *standard.EXTENSIONS}
    theirs = set(array_api_strict.__all__) - STRICT_OWN - {"__array_api_version__"}
    for extension in standard.EXTENSIONS:
        listed = getattr(array_api_strict, extension).__all__
        theirs |= {f"{extension}.{name}" for name in listed}
    assert array_api_strict.__array_api_version__ == "2025.12"
    assert ours - theirs == STRICT_UNLISTED
    assert theirs - ours == set()


def shape_of(function: Callable[..., Any], name: str) -> list[tuple[str, str, object]]:
    """Names, kinds and defaults."""
    return [
        (p.name, p.kind.name, None if (name, p.name) in STRICT_DEFAULTS else p.default)
        for p in inspect.signature(function).parameters.values()
    ]


@pytest.mark.parametrize("name", TEMPLATES)
def test_array_api_strict_has_the_same_signature(name):
    theirs = array_api_strict
    for part in name.split("."):
        theirs = getattr(theirs, part)
    assert shape_of(TEMPLATES[name], name) == shape_of(theirs, name)


def test_the_main_namespace_has_every_chapter():
    """What type checkers see is what the chapters have."""
    source = inspect.getsource(module_of("main_namespace"))
    tree = ast.parse(source)
    starred = {
        node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.names[0].name == "*"
    }
    declared = {n.target.id for n in ast.walk(tree) if isinstance(n, ast.AnnAssign)}
    assert starred == set(standard.CHAPTERS)
    assert declared == {*data_types.DATA_TYPES, "__array_api_version__"}
