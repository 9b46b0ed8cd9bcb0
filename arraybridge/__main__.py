"""``python -m arraybridge``, and the script of that name."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line."""
    from .cli import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
