"""The command line: ``python -m arraybridge info | explain | matrix | warmup | demo``."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments, by default those of the process.
    """
    from .command import run

    try:
        return run(argv)
    except ImportError as error:  # what prints tables; ``--help``, ``--json`` and warmup do not
        if (error.name or "").partition(".")[0] != "rich":
            raise
        print("the command line prints with rich: pip install rich", file=sys.stderr)
        return 1
