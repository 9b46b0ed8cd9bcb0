"""Numbers in environment variables: what cannot be used is a warning, and no error of a copy."""

from __future__ import annotations

import os
from warnings import warn


def whole_number(variable: str, least: int, what: str) -> int | None:
    """Return the number that an environment variable holds, at least `least`; None if it has none.

    If it holds anything else, that is a RuntimeWarning, which says `what` it counts.
    """
    text = os.environ.get(variable, "").strip()
    if not text:
        return None
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number >= least:
        return number
    found = text if len(text) <= 40 else f"{text[:40]}..."
    expected = f"a whole number of {what}, {least} or more"
    warn(
        f"{variable}={found!r} is ignored, the default is used: expected {expected}",
        RuntimeWarning,
        stacklevel=3,
    )
    return None
