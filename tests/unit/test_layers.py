"""Imports point down only: import-linter checks the table of layers in pyproject.toml.

What its layers leave out (an import of the package itself, from below) is checked here.
"""

from __future__ import annotations

import ast
import functools
import tomllib
from collections.abc import Iterator
from pathlib import Path

from tests.support.processes import ROOT

LINTER = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
CONTRACT = next(contract for contract in LINTER["contracts"] if "layers" in contract)
LAYERS = CONTRACT["layers"]
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


def test_what_is_below_imports_no_public_name() -> None:
    """The package itself is above every layer; the command line uses it, like any other program."""
    for module, path in SOURCES.items():
        names = imported(path.read_text(), module, is_package=path.name == "__init__.py")
        if first_level(module) not in ("__init__", "cli"):
            assert "__init__" not in map(first_level, names), module


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
            if name == "'arraybridge._native'":  # in C: it does not import arraybridge
                continue
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
    # Contract 2 (no Python on the way out) is kept or broken in one folder.
    users = [
        module
        for module, path in SOURCES.items()
        if any(
            isinstance(node, ast.Attribute | ast.alias)
            and "pythonapi" in (getattr(node, "attr", None), getattr(node, "name", None))
            for node in ast.walk(ast.parse(path.read_text()))
        )
    ]
    assert sorted(users) == ["arraybridge.native", "arraybridge.native.pyapi"]
