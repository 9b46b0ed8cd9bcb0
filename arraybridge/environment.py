"""Numbers in environment variables; an invalid value is a warning, not an error of a copy."""

import os
from warnings import warn


def whole_number(variable: str, least: int, what: str) -> int | None:
    """Return the number in an environment variable, at least `least`; None if it is not set.

    Any other value gives a RuntimeWarning; `what` names the unit of the number.
    """
    text = os.environ.get(variable, "").strip()
    if text.isdecimal() and int(text) >= least:
        return int(text)
    if text:
        expected = f"a whole number of {what}, {least} or more"
        message = f"{variable}={text!r:.50} is ignored: expected {expected}"
        warn(message, RuntimeWarning, stacklevel=3)
    return None
