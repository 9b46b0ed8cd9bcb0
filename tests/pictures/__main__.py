"""Draw the pictures of the documentation: ``python -m tests.pictures [NAME...]``."""

from __future__ import annotations

import sys

from . import FOLDER, pictures


def main(wanted: list[str]) -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, draw in pictures():
        if not wanted or name in wanted or name.removesuffix(".svg") in wanted:
            (FOLDER / name).write_text(draw())
            sys.stdout.write(f"{name}\n")


main(sys.argv[1:])
