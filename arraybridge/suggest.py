"""Suggest the known name that is spelled like an unknown one; imported for an error alone."""

from collections.abc import Iterable
from difflib import get_close_matches


def closest(name: object, known: Iterable[str]) -> str | None:
    """Return the known name that is spelled most alike, if one is."""
    lower = {each.lower(): each for each in known}
    found = get_close_matches(str(name).lower(), lower, 1, 0.7)
    return lower[found[0]] if found else None


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """End a message about an unknown name: with a suggestion, and all that are known."""
    known = list(known)
    guess = closest(name, known)
    return (f": did you mean {guess!r}?" if guess else ";") + f" expected {', '.join(known)}"
