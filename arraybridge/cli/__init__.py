"""The command line: ``python -m arraybridge info | explain | matrix | warmup | demo``."""

from __future__ import annotations

from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments, by default those of the process.

    Raises
    ------
    ImportError
        If rich is not installed; the message says what to install.
    """
    try:
        import rich  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "the command line prints with rich: pip install 'arraybridge-dlpack[cli]'", name="rich"
        ) from error
    from .command import run

    return run(argv)
