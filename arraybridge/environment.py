"""Numbers in environment variables; an invalid value is a warning, not an error of a copy."""

from __future__ import annotations

import os
from warnings import warn


def whole_number(variable: str, least: int, what: str) -> int | None:
    """Return the number in an environment variable, at least `least`; None if it is not set.

    Any other value gives a RuntimeWarning; `what` names the unit of the number.
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
