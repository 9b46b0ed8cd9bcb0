"""Nested containers: mapped leaf by leaf, each coming back as what it was."""

from __future__ import annotations

import collections
import copy
import dataclasses
import typing

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.optimize import OptimizeResult
from scipy.stats import ttest_1samp

from arraybridge.pytree import leaves, mapped
from tests.support.optional import optional

torch = optional("torch")


def double(leaf):
    return leaf * 2 if type(leaf) is int else leaf


class Point(typing.NamedTuple):
    x: object
    y: object = 0


class Row(list):
    name = "row"


class Tagged(tuple):
    """A tuple of a derived class, with attributes beside its elements."""


class Record(dict):
    """As some have it: its elements are attributes too."""

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        setattr(self, key, value)


@dataclasses.dataclass
class Pair:
    a: object
    b: object = None
    made: typing.ClassVar[int] = 0
    late: object = dataclasses.field(default=7, init=False)

    def __post_init__(self):
        type(self).made += 1


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    a: object
    b: object = None


CASES = {
    "leaf": (3, 6),
    "list": ([1, "a", [2]], [2, "a", [4]]),
    "tuple": ((1, (2.5, 3)), (2, (2.5, 6))),
    "dict": ({"a": 1, 5: {"b": 2}}, {"a": 2, 5: {"b": 4}}),
    "named tuple": (Point(1, [2]), Point(2, [4])),
    "frozen": (Frozen(1, (2,)), Frozen(2, (4,))),
    "ordered": (collections.OrderedDict(b=1, a=2), collections.OrderedDict(b=2, a=4)),
    "counter": (collections.Counter(a=1), collections.Counter(a=2)),
    "row": (Row([1, 2]), Row([2, 4])),
    "tagged": (Tagged((1, 2)), Tagged((2, 4))),
    "empty": ((), ()),
}


@pytest.mark.parametrize("name", CASES)
def test_comes_back_as_it_was(name):
    tree, expected = CASES[name]
    result = mapped(double, tree)
    assert result == expected
    assert type(result) is type(expected)


def test_instances_keep_their_state_and_are_not_made_anew():
    pair = Pair(1, [2])
    pair.extra = "kept"
    pair.late = 5
    before = Pair.made
    result = mapped(double, pair)
    assert (result.a, result.b, result.late, result.extra) == (2, [4], 10, "kept")
    assert Pair.made == before
    row = Row([1])
    row.name = "mine"
    assert mapped(double, row).name == "mine"
    counts = collections.defaultdict(list, a=1)
    assert mapped(double, counts).default_factory is list
    record = Record()
    record["a"] = 1
    assert mapped(double, record).a == 2
    assert record.a == 1


def test_results_of_others():
    best = OptimizeResult(x=1, message="done")
    assert mapped(double, best).x == 2
    assert type(mapped(double, best)) is OptimizeResult
    t = ttest_1samp([1.0, 2.0, 4.0], 0)
    halved = mapped(lambda leaf: leaf / 2 if isinstance(leaf, float) else leaf, t)
    assert type(halved) is type(t)
    assert (halved.pvalue, halved.df) == (t.pvalue / 2, t.df)
    top = torch.ones(2, 3).max(0)  # a struct sequence
    doubled = mapped(lambda leaf: leaf * 2, top)
    assert type(doubled) is type(top)
    assert doubled.values.tolist() == [2, 2, 2]


@pytest.mark.parametrize("leaf", [{1, 2}, "text", b"bytes", range(3), None, Pair, iter([1])])
def test_all_else_is_a_leaf(leaf):
    assert leaves([leaf]) == [leaf]
    assert leaves([Pair(1), Row([1])], lambda x: isinstance(x, Pair)) == [Pair(1), 1]


trees = st.recursive(
    st.integers(-99, 99) | st.text(max_size=2) | st.none(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=2), inner, max_size=3)
        | st.builds(Point, inner, inner)
        | st.builds(Frozen, inner, inner)
    ),
)


@given(trees)
@settings(suppress_health_check=[HealthCheck.too_slow])  # of a busy machine
def test_laws(tree):
    before = copy.deepcopy(tree)
    assert mapped(lambda leaf: leaf, tree) is tree
    assert leaves(mapped(double, tree)) == [double(leaf) for leaf in leaves(tree)]
    assert mapped(double, mapped(double, tree)) == mapped(lambda x: double(double(x)), tree)
    assert tree == before
