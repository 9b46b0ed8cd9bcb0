"""Pages, docstrings, messages and comments avoid the turns of phrase of `english`."""

from tests.docs.english import PROSE, READ, SAYING, SOURCES, TURNS, found, tracked
from tests.support.processes import ROOT


def places(names: list[str], turns: dict[str, str]) -> list[str]:
    return [place for name in names for place in found(ROOT / name, turns)]


def test_what_users_read() -> None:
    assert places(tracked(*PROSE, *READ), TURNS | SAYING) == []


def test_sources() -> None:
    assert places(tracked(*SOURCES), TURNS) == []


def test_the_list_itself_is_found() -> None:
    assert len(found(ROOT / "tests" / "docs" / "english.py", TURNS)) > 3
