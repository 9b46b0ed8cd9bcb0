"""Kernels with one thing wrong: a piece of their source replaced by another."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

__all__ = ["mutated", "rewritten"]

ROOT = "arraybridge.kernels.cuda"
_HOMES = {"plain": "transpose", "narrow": "transpose"}  # others are in the file of their name
_numbers = count()


def mutated(
    kernel: str, old: str, new: str, *, module: str = "", number: int = 1
) -> Callable[..., Any]:
    """Return a kernel's factory from changed source.

    Parameters
    ----------
    kernel : str
        The factory's name.
    old, new : str
        An expression or a statement of the source, and what stands in its place; compared as
        syntax, so that line breaks and needless brackets do not matter.
    module : str
        The file that the kernel is in, if that is not named as itself; or ``indices``: functions
        that the kernel imports from there.
    number : int
        How often `old` occurs; all are replaced.

    Raises
    ------
    LookupError
        Where `old` is not there so often.
    """
    home = _HOMES.get(kernel, kernel)
    source = import_module(f"{ROOT}.{module or home}")
    names = _executed(source.__file__, rewritten(Path(source.__file__), old, new, number))
    if kernel in names:
        return names[kernel]
    own = import_module(f"{ROOT}.{home}")
    mine = _executed(own.__file__, Path(own.__file__).read_text())
    shared = {
        name: made
        for name, made in names.items()
        if name in mine and getattr(made, "__module__", None) == names["__name__"]
    }
    if not shared:
        raise LookupError(f"{kernel} imports nothing from {module}")
    mine.update(shared)
    return mine[kernel]


def rewritten(path: Path, old: str, new: str, number: int = 1) -> str:
    """Return the source of a file with a piece of its syntax replaced."""
    before, after = (ast.parse(text).body[0] for text in (old, new))
    if isinstance(before, ast.Expr) and isinstance(after, ast.Expr):
        before, after = before.value, after.value
    wanted = ast.dump(before)
    found = 0

    class Replace(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            nonlocal found
            if type(node) is type(before) and ast.dump(node) == wanted:
                found += 1
                return after
            return self.generic_visit(node)

    tree = ast.fix_missing_locations(Replace().visit(ast.parse(path.read_text())))
    if found != number:
        raise LookupError(f"{path.name} has {found} times, not {number}, {old}")
    return ast.unparse(tree)


def _executed(path: str, text: str) -> dict[str, Any]:
    """A module's names, from a text that tracebacks and the interpreter can look up."""
    name = f"{Path(path).stem}-{next(_numbers)}.py"
    lines = text.splitlines(keepends=True)
    linecache.cache[name] = len(text), None, lines, name
    names: dict[str, Any] = {"__name__": f"{ROOT}.{Path(path).stem}"}
    exec(compile(text, name, "exec"), names)
    return names
