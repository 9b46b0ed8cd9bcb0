"""``python -m arraybridge``, and the script of that name."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line; explain a broken installation if a module of ours is missing."""
    try:
        from .cli import main as run

        return run()
    except ImportError as error:
        if (error.name or "").startswith("arraybridge"):
            from .installed import remedy

            error.add_note(remedy())
        raise


if __name__ == "__main__":
    sys.exit(main())
