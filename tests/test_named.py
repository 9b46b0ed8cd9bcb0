"""Named tuples as `typing` makes them."""

from __future__ import annotations

import inspect
import pickle
import typing

import pytest

from arraybridge.named import NamedTuple


class Ours(NamedTuple):
    """A pair."""

    first: int
    second: str = "two"

    @property
    def both(self) -> str:
        return f"{self.first}{self.second}"

    @classmethod
    def of(cls, text: str) -> Ours:
        return cls(1, text)


class Theirs(typing.NamedTuple):
    """A pair."""

    first: int
    second: str = "two"

    @property
    def both(self) -> str:
        return f"{self.first}{self.second}"


class Derived(Ours):
    __slots__ = ()

    def __new__(cls, first: int) -> Derived:
        return super().__new__(cls, first, "derived")


def test_the_same_class():
    for name in ("_fields", "_field_defaults", "__doc__", "__module__", "__bases__", "__slots__"):
        assert getattr(Ours, name) == getattr(Theirs, name), name
    assert type(Ours) is type(Theirs) is type
    assert [*inspect.signature(Ours).parameters] == [*inspect.signature(Theirs).parameters]
    assert typing.get_type_hints(Ours) == typing.get_type_hints(Theirs)


def test_the_same_tuples():
    assert Ours(1) == Theirs(1) == (1, "two")
    assert Ours(1).both == "1two"
    assert repr(Ours(1, second="2")) == "Ours(first=1, second='2')"
    assert Ours.of("x")._replace(first=3)._asdict() == {"first": 3, "second": "x"}
    assert pickle.loads(pickle.dumps(Ours(1))) == (1, "two")
    assert Derived(4).both == "4derived"
    assert isinstance(Derived(4), Ours)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'first'"):
        Ours()
    with pytest.raises(AttributeError):
        Ours(1).first = 2
    with pytest.raises(AttributeError):
        Ours(1).third = 2
