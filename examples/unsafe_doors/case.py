"""A case: a few lines of ordinary code, and what must come out of them."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["CASES", "KINDS", "Case", "case"]

#: What a conversion does to a program, worst first, with the page's heading for it.
KINDS = {
    "crash": "The process dies",
    "freed": "The memory is gone",
    "wrong": "The numbers are wrong",
    "overwritten": "Read-only data is overwritten",
    "lost": "Something is lost without a word",
}


#: A library by its import name, the first version that was seen to be mended, and what that does.
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
        What comes in, for the table of the page.
    call : str
        The first door's name; by default the expression without its arguments.
    right : str
        What the last line must print; for an error, how its text begins.
    doors : tuple of str
        The libraries' own conversions, as expressions. The first is in the code; the others take
        its place.
    bridge : str
        arraybridge's expression in its place.
    needs : tuple of str
        The libraries, by their import names.
    mended : dict
        Doors that a newer version has mended: door -> (library, version, what it does now).
    sometimes : bool
        Whether it depends on timing or on the allocator, so that a run may come out right.
    code : str
        The lines, as they are run and shown.
    why : str
        The page's text on it, in Markdown.
    """

    name: str
    kind: str
    given: str
    call: str
    right: str
    doors: tuple[str, ...]
    bridge: str
    needs: tuple[str, ...]
    mended: dict[str, Mended]
    sometimes: bool
    code: str
    why: str

    @property
    def title(self) -> str:
        """The heading on the page."""
        return f"`{self.call}`: {self.given}"

    @property
    def anchor(self) -> str:
        """The anchor that Sphinx and code hosts make of the heading."""
        return re.sub(r"[^\w\- ]", "", self.title.lower()).replace(" ", "-")

    def variant(self, expression: str) -> str:
        """The code with another expression in place of the first door's."""
        return self.code.replace(self.doors[0], expression)


CASES: dict[str, Case] = {}


def case(
    kind: str,
    given: str,
    *,
    doors: str | tuple[str, ...],
    bridge: str,
    right: str,
    needs: str,
    call: str = "",
    mended: dict[str, Mended] | None = None,
    sometimes: bool = False,
) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Register a function as a case: its body is the code, its docstring the text."""

    def register(function: Callable[[], None]) -> Callable[[], None]:
        name, ways = function.__name__, (doors,) if isinstance(doors, str) else doors
        body = inspect.getsource(function).partition('"""')[2].partition('"""')[2]
        code = textwrap.dedent(body.strip("\n"))
        if code.count(ways[0]) != 1:
            raise ValueError(f"{name}: {ways[0]!r} is not once in its code")
        CASES[name] = Case(
            name,
            kind,
            given,
            call or ways[0].partition("(")[0],
            right,
            ways,
            bridge,
            tuple(needs.split()),
            mended or {},
            sometimes,
            code,
            inspect.cleandoc(function.__doc__ or ""),
        )
        return function

    return register
