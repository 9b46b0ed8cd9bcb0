"""``python -m arraybridge``, and the script of that name."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line; if it cannot be imported, say what is wrong with the installation."""
    try:
        from .cli import main as run
    except ImportError as error:
        from .installed import problems

        for problem in problems():
            error.add_note(problem)
        raise
    return run()


if __name__ == "__main__":
    sys.exit(main())
