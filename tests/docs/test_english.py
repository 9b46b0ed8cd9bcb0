"""Pages, docstrings, messages and comments avoid the turns of phrase of `english`."""

from tests.docs.english import PROSE, READ, SAYING, SOURCES, TURNS, found, tracked
from tests.support.processes import ROOT

#: Files that still have some.
PENDING = (
    "docs/start/errors.md", "arraybridge/containers.py", "arraybridge/copies.py",
    "arraybridge/core/", "arraybridge/dlpack/", "arraybridge/layout.py",
    "arraybridge/libraries/", "arraybridge/native/", "arraybridge/protocols/",
    "arraybridge/tree.py", "tests/integration/test_library_pillow.py", "tests/unit/test_tree.py",
)  # fmt: skip


def places(names: list[str], turns: dict[str, str]) -> list[str]:
    return [
        place
        for name in names
        if not name.startswith(PENDING)
        for place in found(ROOT / name, turns)
    ]


def test_what_users_read() -> None:
    assert places(tracked(*PROSE, *READ), TURNS | SAYING) == []


def test_sources() -> None:
    assert places(tracked(*SOURCES), TURNS) == []
