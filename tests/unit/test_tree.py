"""``ab.tree``: trees of arrays in another library, with their structure and what they share."""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import types
import typing

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import arraybridge as ab
from arraybridge import tree
from arraybridge.array.array_types import is_array
from arraybridge.containers import flatten

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
        | st.dictionaries(st.text(max_size=2), inner, max_size=3).map(types.MappingProxyType)
        | st.builds(Point, inner, inner)
        | st.builds(Batch, inner)
        | st.builds(OfJax, inner)
        | st.builds(OfTorch, inner)
    ),
    max_leaves=12,
)


def classes(x):
    """The classes of a tree's containers and leaves, nested as they are."""
    node = flatten(x, is_array, tree._ROWS)[1]
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
        "batch[1].label": "none", "[5].inside": 4, "['params.layer1']['kernel']": 6,
        "params.layer1[''][0]": 7,
    }  # fmt: skip
    assert tree.leaves(3) == {"": 3}


def test_other_mappings_are_leaves():
    class Stored(collections.abc.Mapping):  # as of h5py, zarr and xarray
        def __getitem__(self, key):
            raise AssertionError("it was read")

        __iter__ = __len__ = __getitem__

    stored = Stored()
    assert tree.convert([stored, {1}], "torch") == [stored, {1}]


def test_registered_later():
    class Late(Registered):
        pass

    late = Late(np.ones(1))
    assert tree.convert(late, "torch") is late
    jax.tree_util.register_pytree_node(
        Late, lambda x: ((x.inside,), None), lambda _, inside: Late(*inside)
    )
    assert isinstance(tree.convert(late, "torch").inside, torch.Tensor)


def test_modules_and_estimators():
    module = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    module[1].weight = module[0].weight
    state = tree.convert({"model": module}, "numpy")["model"]
    assert [*state] == [*module.state_dict()]
    assert type(state) is dict
    assert state["0.weight"] is state["1.weight"]
    assert np.shares_memory(state["0.weight"], module[0].weight.detach().numpy())
    assert tree.leaves(module).keys() == state.keys()
    state = tree.convert(module, "torch")
    assert state["0.weight"] is state["1.weight"]
    assert ab.unify(np.ones(1), [module])[2] == [module]

    x = np.random.default_rng(0).normal(size=(20, 3))
    fitted = make_pipeline(StandardScaler(), PCA(2)).fit(x)
    moved = tree.convert(fitted, "torch")
    assert type(moved) is type(fitted)
    assert isinstance(moved[1].components_, torch.Tensor)
    assert isinstance(fitted[1].components_, np.ndarray)
    back = tree.convert(moved, "numpy")
    assert np.array_equal(back.transform(x), fitted.transform(x))
    search = GridSearchCV(LogisticRegression(), {"C": [1.0, 2.0]}, cv=2)
    search.fit(x, np.array(["no", "yes"] * 10))
    best = tree.convert(search, "torch").best_estimator_
    assert isinstance(best.coef_, torch.Tensor)
    assert best.classes_.tolist() == ["no", "yes"]


@pytest.mark.parametrize("options", [{"copy": True}, {"dtype": "float64"}, {}])
@pytest.mark.parametrize("to", ["torch", "numpy"])
def test_sharing(to, options):
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    given = {"x": x, "again": x, "tied": x[:], "row": x[1], "turned": x.T, "other": x + 1}
    if to == "numpy":
        given = {name: torch.from_numpy(value) for name, value in given.items()}
        given["again"] = given["x"]
    made = tree.convert(given, to, **options)
    assert made["again"] is made["x"]
    assert ab.inspect(made["tied"]).pointer == ab.inspect(made["x"]).pointer
    for name, value in given.items():
        assert made[name].tolist() == value.tolist()
    made["row"][0] = 99
    assert made["x"][1, 0] == made["turned"][0, 1] == 99
    assert made["other"].tolist() == given["other"].tolist()
    report = tree.explain(given, to, **options)
    assert report.unshared == []
    assert report.nbytes == (
        2 * 12 * np.dtype(options.get("dtype", "f4")).itemsize if options else 0
    )


def test_what_no_longer_shares():
    x = np.arange(6, dtype=np.float32)
    given = {"x": x, "back": x[::-1], "odd": x[1::2], "even": x[::2], "wide": np.ones((90, 9))}
    wide = given.pop("wide")  # whose last column is no part of the others
    given |= {"left": wide[:, :2], "right": wide[:, 1:3], "last": wide[:, 8:]}
    assert tree.explain(given, "torch").unshared == ["x", "back", "odd", "even"]
    copied = tree.explain(given, "torch", copy=True)
    assert copied.unshared == ["x", "back", "odd", "even", "left", "right"]
    made = tree.convert(given, "torch", copy=True)
    made["x"][1] = 99
    assert made["odd"][0] == 99
    assert made["back"][4] == 1
    assert tree.explain(given, "jax", dtype="float32").unshared == [*given][:-1]
    assert "x, back, odd and 3 more: memory no longer shared\n" in str(copied)
    x[1::2] = 0.5  # between the elements of all of these
    given = {"a": x[:4:2], "b": x[2:6:2], "c": x[:6:2]}
    assert tree.convert(given, "torch", dtype="int32", casting="same_value")["b"].tolist() == [2, 4]


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


def test_all_refusals_at_once_before_anything_is_copied():
    deleted = jnp.ones(3)
    deleted.delete()
    capsule = object()
    given = {
        "params": [torch.ones(2, requires_grad=True), np.ones(3), np.array("text"), deleted],
        "more": {str(i): np.zeros(1, "M8[s]") for i in range(20)},
        "capsule": capsule,
    }
    with ab.audit() as audit, pytest.raises(ab.ConversionError) as caught:
        tree.convert(given, "jax", dtype="float32", casting="unsafe")
    assert not audit.records
    message = str(caught.value)
    assert message.startswith("23 arrays cannot be converted to jax, so nothing was converted:\n")
    assert "params[0]: gradients are tracked" in message
    assert "params[3]: the JAX array has no memory" in message
    assert message.endswith("and 13 more")


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
    report = tree.explain(given, "torch")
    assert (report.views, report.deferred) == (["array"], ["later"])


def test_bad_containers():
    cycle = {"a": [1]}
    cycle["a"].append(cycle)
    itself = OfTorch(None)
    itself.inside = itself
    for endless in (cycle, itself):
        with pytest.raises(RecursionError, match="contain themselves"):
            tree.convert(endless, "torch")

    class Kinds(list, enum.Enum):
        ONE = [np.ones(1)]  # noqa: RUF012

    with pytest.raises(TypeError, match=r"cannot be rebuilt .*copy.copy returns the same object"):
        tree.convert(Kinds.ONE, "torch")
    assert isinstance(Kinds.ONE[0], np.ndarray)

    class Raises(Registered):
        pass

    def unflatten(beside, inside):
        raise ValueError("not so")

    jax.tree_util.register_pytree_node(Raises, lambda x: ((x.inside,), None), unflatten)
    with pytest.raises(TypeError, match=r"a\[1\], of class .*Raises, cannot be rebuilt .*not so"):
        tree.convert({"a": [1, Raises(np.ones(1))]}, "torch")

    class Hides(dict):
        def values(self):
            return [*super().values()][:1]

    with pytest.raises(TypeError, match=r"the tree, of class .*Hides, cannot be rebuilt"):
        tree.convert(Hides(a=np.ones(1), b=2), "torch")


def test_a_leaf_that_dies_meanwhile(monkeypatch):
    x, y = jnp.ones(3), jnp.ones(4)
    plan = tree._Conversion.plan
    monkeypatch.setattr(tree._Conversion, "plan", lambda self: (plan(self), y.delete())[0])
    with pytest.raises(ab.ConversionError, match=r"has no memory(.|\n)*at 'b' in the tree"):
        tree.convert({"a": x, "b": y}, "torch")


@pytest.mark.parametrize("given", [{"a": {"b": np.ones(1)}}, torch.nn.Linear(1, 1), PCA()])
def test_convert_says_what_takes_trees(given):
    with pytest.raises(TypeError, match=r"arraybridge.tree.convert\(x, library\)"):
        ab.convert(given, "torch")
