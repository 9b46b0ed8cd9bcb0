"""A case: a few lines of ordinary code, and what they must print."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["CASES", "KINDS", "Case", "case"]

#: What a conversion does to a program, worst first, with the page's heading for it.
KINDS = {
    "crash": "Crashes and segfaults",
    "freed": "The memory is freed",
    "wrong": "The numbers are wrong",
    "overwritten": "Read-only data is overwritten",
    "lost": "Information is lost",
}


#: A library by its import name, its first version with a fix, and what that version does.
Mended = tuple[str, str, str]


@dataclass(frozen=True)
class Case:
    """One conversion that goes wrong.

    Attributes
    ----------
    name : str
    kind : str
        A key of `KINDS`.
    given : str
        The array that is converted, for the table of the page.
    function : str
        The library's function, for the table; by default the first expression up to its arguments.
    right : str
        What the last line must print; for an error, how its text begins.
    own : tuple of str
        The libraries' own conversions, as expressions. The first is in the code; each of the others
        replaces it in turn.
    ours : str
        The expression with arraybridge that replaces them.
    needs : tuple of str
        The libraries, by their import names.
    mended : dict
        Expressions that a newer version has mended: expression -> (library, version, what it does).
    sometimes : bool
        Whether it depends on timing or on the allocator, so that a run may come out right.
    shown : bool
        Whether the page shows the code.
    file : str
        The name of the file with the case.
    code : str
        The lines, as they are run and shown.
    why : str
        The page's sentence on it, in Markdown: the first line of the docstring.
    """

    name: str
    kind: str
    given: str
    function: str
    right: str
    own: tuple[str, ...]
    ours: str
    needs: tuple[str, ...]
    mended: dict[str, Mended]
    sometimes: bool
    shown: bool
    file: str
    code: str
    why: str

    def variant(self, expression: str) -> str:
        """Return the code with another expression in place of the first of `own`."""
        return self.code.replace(self.own[0], expression)


CASES: dict[str, Case] = {}


def case(
    kind: str,
    given: str,
    *,
    own: str | tuple[str, ...],
    ours: str,
    right: str,
    needs: str,
    function: str = "",
    mended: dict[str, Mended] | None = None,
    sometimes: bool = False,
    shown: bool = False,
) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Register a function as a case: its body is the code, its docstring the explanation."""

    def register(body: Callable[[], None]) -> Callable[[], None]:
        name, ways = body.__name__, (own,) if isinstance(own, str) else own
        lines = inspect.getsource(body).partition('"""')[2].partition('"""')[2]
        code = textwrap.dedent(lines.strip("\n"))
        if code.count(ways[0]) != 1:
            raise ValueError(f"{name}: {ways[0]!r} must be in its code once")
        CASES[name] = Case(
            name,
            kind,
            given,
            function or ways[0].partition("(")[0],
            right,
            ways,
            ours,
            tuple(needs.split()),
            mended or {},
            sometimes,
            shown,
            f"{body.__module__.rpartition('.')[2]}.py",
            code,
            inspect.cleandoc(body.__doc__ or "").partition("\n")[0],
        )
        return body

    return register
