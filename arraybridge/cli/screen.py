"""Where the command line prints."""

from __future__ import annotations

import sys

from rich.console import Console

WIDE = 130  # columns that a file or a pipe takes; rich would think of 80


def screen(*, stderr: bool = False) -> Console:
    """A console as wide as the terminal, or `WIDE` where there is none."""
    stream = sys.stderr if stderr else sys.stdout
    return Console(stderr=stderr, width=None if stream.isatty() else WIDE)
