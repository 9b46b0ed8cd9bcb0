"""Imports point down only, by the table of layers in pyproject.toml.

import-linter reads the same table; the check here is one of our own because it also sees what
import-linter's layers leave out (an import of the package itself, from below), and needs nothing.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes import ROOT, run_python

LINTER = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
CONTRACT = next(contract for contract in LINTER["contracts"] if "layers" in contract)
LAYERS = CONTRACT["layers"]
EXCEPTIONS = [tuple(arrow.split(" -> ")) for arrow in CONTRACT["ignore_imports"]]
PUBLIC = ("__init__", "__main__")  # above every layer
KERNELS = "arraybridge.kernels"


def sources() -> dict[str, Path]:
    """Module name -> file, kernels/ under the name that it is imported by."""
    found = {}
    for folder, package in ((ROOT / "arraybridge", "arraybridge"), (ROOT / "kernels", KERNELS)):
        for path in folder.rglob("*.py"):
            parts = path.relative_to(folder).with_suffix("").parts
            if package == "arraybridge" and parts[0] == "kernels":
                continue  # the symlink: rglob follows it in some versions of Python
            found[".".join((package, *parts)).removesuffix(".__init__")] = path
    return found


SOURCES = sources()


def imported(source: str, module: str, *, is_package: bool = False) -> Iterator[str]:
    """Yield the names of arraybridge that a source imports, anywhere, save for type checkers."""
    skipped: set[ast.AST] = set()
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            skipped.update(inner for child in node.body for inner in ast.walk(child))
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                package = module.split(".")
                package = package[: len(package) - node.level + is_package]
                base = ".".join([*package, base] if base else package)
            names = [f"{base}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from (name for name in names if name.split(".")[0] == "arraybridge")


def first_level(name: str) -> str:
    """Return the top module: ``arraybridge.dlpack.capsule`` -> ``dlpack``."""
    parts = name.split(".")
    if len(parts) == 1 or parts[1] in PUBLIC:
        return "__init__"
    known = {name.strip() for layer in LAYERS for name in layer.split("|")}
    # `from arraybridge import Array` names no module: it imports the package itself
    is_module = parts[1] in known or f"arraybridge.{parts[1]}" in SOURCES
    return parts[1] if is_module else "__init__"


def height(top: str) -> int:
    """Return how far up a module lies; the ground is 0."""
    if top == "__init__":
        return len(LAYERS)
    for i, layer in enumerate(reversed(LAYERS)):
        if top in (name.strip() for name in layer.split("|")):
            return i
    raise AssertionError(f"arraybridge.{top} has no layer: give it one in pyproject.toml")


def may_import(importer: str, target: str) -> bool:
    """Whether a module may import another: downwards, at home, or by an exception in the table."""
    a, b = first_level(importer), first_level(target)
    if a == b or importer == "arraybridge":
        return True
    if any(importer == here and f"{target}.".startswith(f"{there}.") for here, there in EXCEPTIONS):
        return True
    # the command line uses the public API, like any other program
    return height(a) > height(b) or (a == "cli" and b == "__init__")


@pytest.mark.parametrize("module", sorted(SOURCES))
def test_imports_point_down(module: str) -> None:
    path = SOURCES[module]
    names = imported(path.read_text(), module, is_package=path.name == "__init__.py")
    wrong = sorted({name for name in names if not may_import(module, name)})
    assert not wrong, f"{module} imports from beside or above itself: {', '.join(wrong)}"


@pytest.mark.parametrize(
    ("module", "source", "allowed"),
    [
        ("arraybridge.core.planner", "from arraybridge.layout import classify", True),
        ("arraybridge.core.planner", "from ..dlpack import header", True),
        ("arraybridge.array", "from arraybridge import conversion", True),
        ("arraybridge.xp.numbers", "from ..array import promotion", True),
        ("arraybridge.array.native_array", "from ..xp.standard import functions_of", False),
        ("arraybridge.cli.matrix", "import arraybridge as ab", True),
        ("arraybridge.cli.matrix", "from arraybridge import convert", True),
        ("arraybridge", "from arraybridge.conversion import convert", True),
        ("arraybridge.dlpack.capsule", "from arraybridge.layout import classify", True),
        ("arraybridge.dlpack.capsule", "from arraybridge.kernels import cpu", False),
        ("arraybridge.kernels.cpu.copying", "import arraybridge.dlpack", False),
        ("arraybridge.core.planner", "from arraybridge.libraries import torch", False),
        ("arraybridge.core.planner", "def f():\n    from ..conversion import convert", False),
        ("arraybridge.libraries.torch", "from arraybridge import convert", False),
        ("arraybridge.libraries.torch", "from arraybridge.cli.child import apart", False),
        ("arraybridge.layout", "if TYPE_CHECKING:\n    from arraybridge.conversion import f", True),
        ("arraybridge.layout", "if a:\n    from arraybridge.conversion import f", False),
    ],
)
def test_the_check_tells_down_from_up(module: str, source: str, allowed: bool) -> None:
    assert all(may_import(module, name) for name in imported(source, module)) is allowed


def test_no_import_is_hidden_in_a_name() -> None:
    """``import_module`` shows no arrow: only what is at home, or no module of ours, is so named."""
    for module, path in SOURCES.items():
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            called = node.func.attr if isinstance(node.func, ast.Attribute) else node.func
            if (called.id if isinstance(called, ast.Name) else called) != "import_module":
                continue
            name = ast.unparse(node.args[0])
            assert "arraybridge" not in name or first_level(module) in ("__init__", "cli"), (
                module,
                name,
            )


@functools.cache
def at_import(module: str) -> set[str]:
    """Return the modules that importing a module waits for: `from a import b` is `a`, and `a.b`."""
    path, found = SOURCES[module], set()
    for node in ast.parse(path.read_text()).body:
        code = ast.unparse(node) if isinstance(node, ast.Import | ast.ImportFrom | ast.Try) else ""
        for name in imported(code, module, is_package=path.name == "__init__.py"):
            found |= {name, name if code.startswith("import") else name.rpartition(".")[0]}
    return found & SOURCES.keys()


def test_no_package_waits_for_itself() -> None:
    """A thread that imports it, and one that imports a module of it, would wait for each other.

    Python gives one of them half a module then: an ImportError that speaks of a circle.
    """
    for package in (name for name, path in SOURCES.items() if path.name == "__init__.py"):
        seen = waiting = at_import(package) - {package}
        while waiting:
            waits = [name for name in waiting if package in at_import(name)]
            assert not waits, f"{waits} import {package}, which imports them"
            waiting = set().union(*map(at_import, waiting)) - seen
            seen |= waiting


def test_who_uses_the_python_c_api() -> None:
    # Contract 2 (no Python on the way out) is kept or broken in one file.
    users = [
        module
        for module, path in SOURCES.items()
        if any(
            isinstance(node, ast.Attribute | ast.alias)
            and "pythonapi" in (getattr(node, "attr", None), getattr(node, "name", None))
            for node in ast.walk(ast.parse(path.read_text()))
        )
    ]
    assert sorted(users) == ["arraybridge.native.pyapi"]


@pytest.mark.skipif(importlib.util.find_spec("importlinter") is None, reason="no import-linter")
def test_import_linter_agrees() -> None:
    code = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports())"
    done = run_python("-c", code, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
