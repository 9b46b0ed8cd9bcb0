"""``ab.tree``: trees of arrays in another library, with their structure and what they share."""

from __future__ import annotations

import collections
import dataclasses
import functools
import typing

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import arraybridge as ab
from arraybridge import tree

torch = pytest.importorskip("torch")

from torch.utils import _pytree  # noqa: E402


class Point(typing.NamedTuple):
    x: object
    y: object = None


@dataclasses.dataclass
class Batch:
    image: object
    label: object = "none"


class Registered:
    """A container that only a registry knows."""

    def __init__(self, inside, beside="kept"):
        self.inside, self.beside = inside, beside

    def __eq__(self, other):
        return (self.inside, self.beside) == (other.inside, other.beside)


class OfJax(Registered):
    pass


class OfTorch(Registered):
    pass


jax.tree_util.register_pytree_with_keys(
    OfJax,
    lambda x: (((jax.tree_util.GetAttrKey("inside"), x.inside),), x.beside),
    lambda beside, inside: OfJax(*inside, beside),
)
_pytree.register_pytree_node(
    OfTorch, lambda x: ([x.inside], x.beside), lambda inside, beside: OfTorch(*inside, beside)
)


arrays = st.integers(1, 9).map(lambda n: np.arange(n, dtype=np.float32))
trees = st.recursive(
    arrays | st.none() | st.integers() | st.text(max_size=2),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(lambda x: collections.deque(x, maxlen=5))
        | st.dictionaries(st.text(max_size=2), inner, max_size=3)
        | st.dictionaries(st.integers(), inner, max_size=3).map(collections.UserDict)
        | st.builds(Point, inner, inner)
        | st.builds(Batch, inner)
        | st.builds(OfJax, inner)
        | st.builds(OfTorch, inner)
    ),
    max_leaves=12,
)


def classes(x):
    """The classes of a tree's containers and leaves, nested as they are."""
    node = tree._node(x)
    return type(x) if node is None else (type(x), [*map(classes, node.children)])


@given(trees, st.sampled_from(["torch", "jax"]))
def test_there_and_back(given, to):
    made = tree.convert(given, to)
    before, after = tree.leaves(given), tree.leaves(made)
    assert [*before] == [*after]
    for path, x in before.items():
        if isinstance(x, np.ndarray):
            assert isinstance(after[path], torch.Tensor if to == "torch" else jax.Array)
            assert after[path].tolist() == x.tolist()
        else:
            assert after[path] is x
    assert classes(tree.convert(made, "numpy")) == classes(given)
    assert tree.convert(given, "numpy") is given


def test_paths():
    state = {"params": {"layer1": {"kernel": 1}}, "batch": [Point(2), Batch(3)], 5: OfJax(4)}
    state["params.layer1"] = {"kernel": 6, "": OfTorch(7)}
    assert tree.leaves(state) == {
        "params.layer1.kernel": 1, "batch[0].x": 2, "batch[0].y": None, "batch[1].image": 3,
        "batch[1].label": "none", "[5].inside": 4, "params.layer1.kernel#2": 6,
        "params.layer1[''][0]": 7,
    }  # fmt: skip
    assert tree.leaves(3) == {"": 3}
    assert [*tree.leaves({"a.b": 1, "a": {"b": 2}, "a.b#2": 3}).values()] == [1, 2, 3]


def test_modules():
    module = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    module[1].weight = module[0].weight
    state = tree.convert({"model": module}, "numpy")["model"]
    assert [*state] == [*module.state_dict()]
    assert type(state) is dict
    assert state["0.weight"] is state["1.weight"]
    assert np.shares_memory(state["0.weight"], module[0].weight.detach().numpy())
    assert tree.leaves(module).keys() == state.keys()
    assert type(tree.convert(module, "torch")) is dict
    assert ab.unify(np.ones(1), [module])[2] == [module]


@pytest.mark.parametrize("options", [{"copy": True}, {"dtype": "float64"}, {}])
@pytest.mark.parametrize("to", ["torch", "numpy", "jax"])
def test_sharing(to, options):
    """The same memory has one result."""
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    given = {"x": x, "again": x, "tied": x[:], "row": x[1], "other": x + 1}
    if to == "numpy":
        given = {name: torch.from_numpy(value) for name, value in given.items()}
        given["again"] = given["x"]
    with jax.enable_x64(True):
        made = tree.convert(given, to, **options)
        report = tree.explain(given, to, **options)
    assert made["again"] is made["x"] is made["tied"]
    for name, value in given.items():
        assert made[name].tolist() == value.tolist()
    assert report.nbytes == sum(report.routes[path].nbytes for path in ("x", "row", "other"))


def test_a_parameter_and_its_data_are_one():
    """Another class of the same library has the same result, except in that library."""
    weight = torch.nn.Parameter(torch.ones(3), requires_grad=False)
    for to in ("numpy", "jax"):
        for options in ({"copy": True}, {}):
            first, second = tree.convert([weight, weight.data], to, **options)
            assert first is second
    assert [*map(type, tree.convert([weight, weight.data], "torch"))] == [
        type(weight),
        torch.Tensor,
    ]
    rows = np.arange(4.0).reshape(2, 2)
    assert [*map(type, tree.convert([rows.view(np.matrix), rows], "numpy"))] == [
        np.matrix,
        np.ndarray,
    ]


def test_memory_described_inexactly_is_not_shared():
    """Bits within a byte, strides of parts of an element, memory that is new at each access."""
    import pyarrow as pa

    bits = pa.array([True, False, False, True, False, True, True, False])
    buffer = np.arange(40, dtype=np.uint8).tobytes()
    fives, sixes = (np.ndarray((3,), "<i4", buffer, 0, (n,)) for n in (5, 6))

    class New:
        def __init__(self, value):
            self.value = value

        @property
        def __array_interface__(self):
            self.kept = np.full(3, self.value)
            return self.kept.__array_interface__

    given = {"a": bits[:4], "b": bits[4:], "c": fives, "d": sixes, "e": New(1), "f": New(2)}
    made = tree.convert(given, "torch")
    assert {name: x.tolist() for name, x in made.items()} == {
        "a": [True, False, False, True], "b": [False, True, True, False],
        "c": fives.tolist(), "d": sixes.tolist(), "e": [1] * 3, "f": [2] * 3,
    }  # fmt: skip


@given(trees, st.sampled_from(["torch", "jax", "numpy"]), st.sampled_from([None, True, False]))
def test_explain_says_what_convert_does(given, to, copy):
    report = tree.explain(given, to, copy=copy)
    if report.refusals:
        with pytest.raises(ab.ConversionError) as caught:
            tree.convert(given, to, copy=copy)
        told = str(caught.value)
        assert all(f"{path}: {why}" in told for path, why in [*report.refusals.items()][:10])
        return
    made = tree.leaves(tree.convert(given, to, copy=copy))
    for path, x in tree.leaves(given).items():
        if isinstance(x, np.ndarray):
            shares = np.shares_memory(np.asarray(made[path]), x)
            assert shares == (path in report.views) != (path in report.copies)
    assert report.nbytes == sum(report.routes[path].nbytes for path in report.copies)


def test_all_refusals_at_once():
    deleted = jnp.ones(3)
    deleted.delete()
    given = {
        "params": [torch.ones(2, requires_grad=True), np.ones(3), np.array("text"), deleted],
        "more": {str(i): np.zeros(1, "M8[s]") for i in range(20)},
    }
    with pytest.raises(ab.ConversionError) as caught:
        tree.convert(given, "jax", dtype="float32", casting="unsafe")
    message = str(caught.value)
    assert message.startswith("23 arrays cannot be converted to jax, so nothing was converted:\n")
    assert "params[0]: gradients are tracked" in message
    assert "params[3]: the JAX array has no memory" in message
    assert message.endswith("and 13 more")


def test_a_refused_tree_leaves_its_capsules():
    capsule = np.arange(3.0).__dlpack__()
    with pytest.raises(ab.ConversionError, match="1 array cannot be converted"):
        tree.convert({"a": capsule, "b": np.array("text")}, "torch")
    assert tree.convert([capsule], "torch")[0].tolist() == [0, 1, 2]


def test_an_invalid_option_is_one_error():
    """Found: each array was refused by itself, and `explain` told nothing."""
    given = {"a": np.ones(2), "b": np.ones(3)}
    for function in (tree.convert, tree.explain):
        for options in ({"device": 3}, {"dtype": "floot"}, {"copy": "no"}, {"order": "D"}):
            with pytest.raises((TypeError, ValueError)) as caught:
                function(given, "numpy", **options)
            assert not isinstance(caught.value, ab.ConversionError)
        with pytest.raises(ValueError, match="no library 'nonsense'"):
            function({}, "nonsense")
    capsule = np.arange(3.0).__dlpack__()
    one, two = tree.convert([capsule, capsule], "torch")
    assert one is two


def test_options_by_path_and_leaf():
    given = {"kernel": np.ones((2, 3)), "bias": np.ones(3), "n": 3}

    def dtype(path, x, wanted="float32"):
        return wanted if path == "kernel" else None

    class Order:
        def of(self, path, x):
            return "F" if x.ndim == 2 else None

    for function in (dtype, functools.partial(dtype, wanted=jnp.float32)):
        made = tree.convert(given, "torch", dtype=function, order=Order().of)
        assert (made["kernel"].dtype, made["bias"].dtype) == (torch.float32, torch.float64)
        assert made["kernel"].stride() == (1, 2)
    for name in (float, np.float32, jnp.float32, {"float64": "float32"}):
        assert tree.convert(given, "numpy", dtype=name)["bias"].dtype == (
            np.float64 if name is float else np.float32
        )
    with pytest.raises(ab.ConversionError, match="bias: order='channels_last' is for arrays"):
        tree.convert(given, "torch", order="channels_last")


def test_arrays_that_are_wrapped_or_computed_later():
    import dask.array as da

    given = {
        "array": ab.from_dlpack(np.ones(2)),
        "later": da.ones(4, chunks=2),
        "scalar": np.float32(1),
    }
    made = tree.convert(given, "torch")
    assert isinstance(made["array"], torch.Tensor)
    assert type(made["later"]) is not torch.Tensor
    assert made["scalar"] is given["scalar"]
    assert [*tree.explain(given, "torch").routes] == ["array"]


def test_an_import_changes_nothing():
    """JAX sorts a defaultdict, and knows no attributes of an OrderedDict; both are Python's own."""
    ordered = collections.OrderedDict(b=np.ones(1), a=np.ones(1))
    ordered._metadata = {"version": 1}
    default = collections.defaultdict(list, {"b": np.ones(1), 1: np.ones(1)})
    made = tree.convert({"o": ordered, "d": default}, "torch")
    assert [*made["o"]] == ["b", "a"]
    assert made["o"]._metadata == {"version": 1}
    assert [*made["d"]] == ["b", 1]
    assert made["d"].default_factory is list

    class Optimizer(torch.optim.SGD):
        pass

    weight = torch.ones(1, requires_grad=True)
    optimizer = Optimizer([weight], 0.1, momentum=0.9)
    weight.sum().backward()
    optimizer.step()
    state = tree.convert(optimizer.state, "numpy")
    assert type(state) is collections.defaultdict
    assert isinstance(state[weight]["momentum_buffer"], np.ndarray)


def test_bad_containers():
    cycle = {"a": [1]}
    cycle["a"].append(cycle)
    for cls in OfTorch, OfJax:
        itself = cls(None)
        itself.inside = itself
        for endless in (cycle, itself, {"x": itself}):
            with pytest.raises(RecursionError, match=r"contains itself"):
                tree.convert(endless, "torch")
    assert functools.reduce(lambda x, _: [x], range(200), 1)  # the depth is as before

    class Raises(Registered):
        pass

    def unflatten(beside, inside):
        raise ValueError("not so")

    jax.tree_util.register_pytree_node(Raises, lambda x: ((x.inside,), None), unflatten)
    with pytest.raises(TypeError, match=r"a\[1\], of class .*Raises, cannot be rebuilt .*not so"):
        tree.convert({"a": [1, Raises(np.ones(1))]}, "torch")
