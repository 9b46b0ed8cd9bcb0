"""adapt: arrays in the result become the caller's, and an argument that is returned is itself."""

from __future__ import annotations

import random
import warnings

import jax
import numpy as np
import pyarrow
import pytest
import scipy.ndimage
import scipy.special
import scipy.stats

import arraybridge as ab
from arraybridge.adapting import call
from tests.support.optional import optional
from tests.unit.adapt.test_adapt_arguments import CALLERS

torch = optional("torch")


class TestKind:
    @pytest.mark.parametrize(
        ("function", "options"),
        [
            (scipy.ndimage.gaussian_filter, {"sigma": 1.0}),
            (scipy.special.erf, {}),
            (np.add, {"x2": 1}),
        ],
    )
    @pytest.mark.parametrize("name", [name for name in CALLERS if name not in ("conj", "pyarrow")])
    def test_functions_of_others(self, name, function, options):
        given = CALLERS[name]()
        expected = function(ab.convert(CALLERS[name](), "numpy"), *options.values())
        result = ab.adapt("numpy")(function)(given, *options.values())
        nobodys = name in ("DLPack only", "capsule")
        assert type(result) is (np.ndarray if nobodys else type(given))
        np.testing.assert_array_equal(ab.convert(result, "numpy"), expected)

    def test_the_first_array(self):
        x, t, j = np.ones(2), torch.ones(2), jax.numpy.ones(2)
        new = ab.adapt("numpy")(lambda *_, **__: np.zeros(2, "f4"))
        assert type(new(t, x)) is torch.Tensor
        assert type(new(x, t)) is np.ndarray
        assert type(new(1, [None, {"a": j}], k=t)) is type(j)
        assert type(new(k=t)) is torch.Tensor
        assert type(new(ab.from_dlpack(t), x)) is type(ab.from_dlpack(t))
        assert type(new()) is np.ndarray

    def test_result(self):
        x, t = np.ones(2), torch.ones(2)
        assert type(ab.adapt("numpy", result="function")(np.negative)(t)) is np.ndarray
        assert type(ab.adapt("numpy", result="jax")(np.float32)(t)) is type(jax.numpy.ones(1))
        assert type(ab.adapt("numpy", result=torch)(np.negative)(x)) is torch.Tensor
        assert ab.adapt("numpy", result="torch")(lambda x: x)(t) is t
        assert type(ab.adapt("numpy", result="function")(lambda x: x)(t)) is np.ndarray
        assert type(ab.adapt("torch", result="numpy")(torch.arange)(3)) is np.ndarray

    def test_scalars_of_numpy(self):
        """They are arrays where ``result=`` asks for those of a library, and else stay."""
        both = lambda x: {"sum": np.sum(x), "n": len(x), "name": np.str_("a")}  # noqa: E731
        found = ab.adapt("numpy", result="torch")(both)(np.ones(3, "f4"))
        assert found["sum"].dtype == torch.float32
        assert (found["sum"].shape, found["sum"].item()) == ((), 3)
        assert (found["n"], type(found["name"])) == (3, np.str_)
        assert type(ab.adapt("numpy", result="jax")(np.max)(torch.ones(2))) is type(
            jax.numpy.ones(1)
        )
        for result in ("caller", "function", "numpy"):
            found = ab.adapt("numpy", result=result)(np.sum)(torch.ones(3))
            assert type(found) is np.float32

    def test_gradients_and_tracers_of_the_own_library(self):
        t = torch.ones(3, requires_grad=True)
        product = ab.adapt("torch")(lambda a, b: (a * b).sum())
        product(t, np.ones(3, "f4")).backward()
        product(ab.from_dlpack(t), 1.0).native.backward()
        assert t.grad.tolist() == [2, 2, 2]
        total = ab.adapt("jax")(lambda a, b: (a + b).sum())
        assert jax.jit(lambda a: total(a, np.ones(3, "f4")))(jax.numpy.ones(3)) == 6
        assert jax.grad(lambda a: total(a, 1.0))(jax.numpy.ones(3)).tolist() == [1, 1, 1]


def conj(v):
    return torch.from_numpy(v.astype("c16")).conj()


def put(x, name, value):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy advises against some
        setattr(x, name, value)
    return x


ARRAYS = {
    "contiguous": lambda v: v,
    "flipped": lambda v: v[::-1],
    "strided": lambda v: np.repeat(v, 2, 1)[:, ::2],
    "transposed": lambda v: v.T.copy().T,
    "swapped": lambda v: v.astype(">f8"),
    "empty": lambda v: v[:0],
    "empty, swapped": lambda v: v.astype(">f8")[:0],
    "empty, bits": lambda v: pyarrow.array([], pyarrow.bool_()),
    "read-only": lambda v: (v, v.setflags(write=False))[0],
    "Array": ab.from_dlpack,
    "torch": lambda v: torch.from_numpy(v),
    "torch, strided": lambda v: torch.from_numpy(v.T.copy()).T,
    "torch, conj": conj,
    "torch, empty conj": lambda v: conj(v)[:0],
    "Array of torch": lambda v: ab.from_dlpack(torch.from_numpy(v)),
    "jax": lambda v: jax.numpy.asarray(v.astype("f4")),
}


class TestReturnedArguments:
    @pytest.mark.parametrize("library", ["numpy", "torch"])
    @pytest.mark.parametrize("name", ARRAYS)
    def test_a_view_comes_back_itself(self, library, name):
        x = ARRAYS[name](np.arange(9.0).reshape(3, 3))
        box, alone = ab.adapt(library)(lambda x, also: ([x], also))(x, also=x)
        copied = name in ("swapped", "torch, conj") or (
            library == "torch" and name in ("flipped", "read-only", "jax")
        )
        own = isinstance(x, torch.Tensor) == (library == "torch") and not isinstance(x, ab.Array)
        assert (box[0] is x) == (alone is x) == (own or not copied)
        np.testing.assert_array_equal(ab.convert(alone, "numpy"), ab.convert(x, "numpy"))

    @pytest.mark.parametrize("seed", range(12))
    @pytest.mark.parametrize("library", ["numpy", "torch"])
    @pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
    def test_chains_of_steps(self, library, seed):
        """What the function makes of its argument in place is the result, or an error."""
        draw = random.Random(f"{library} {seed}")
        numbers = np.array([draw.randint(-4, 4) for _ in range(9)], "f8").reshape(3, 3)
        for make in ARRAYS.values():
            x, y = make(numbers.copy()), make(numbers.copy())
            if isinstance(getattr(x, "native", x), torch.Tensor) == (library == "torch"):
                continue  # the function gets the very array
            steps = draw.choices(STEPS[library], k=draw.randint(1, 3))

            def function(x, steps=steps):
                for step in steps:
                    step(x)
                return x

            own = ab.convert(y, library)
            expected, error = ran(function, own)
            result, refused = ran(ab.adapt(library)(function), x)
            if refused is not None:
                assert refused in (error, ab.ConversionError, ValueError)
                continue
            assert error is None
            np.testing.assert_array_equal(ab.convert(result, "numpy"), np.asarray(expected))
            same = ab.inspect(own).shape == ab.inspect(x).shape
            assert result is not x or same


STEPS = {
    "torch": [
        lambda x: x.mul_(2),
        lambda x: torch.abs(x, out=x),
        lambda x: x.t_(),
        lambda x: x.unsqueeze_(0),
        lambda x: x.squeeze_(),
        lambda x: x[..., :1].zero_(),
        lambda x: put(x, "data", x + 1),
        lambda x: put(x, "data", x[..., 1:]),
        lambda x: x.set_(x * 3),
        lambda x: x + 1,
    ],
    "numpy": [
        lambda x: x.__imul__(2),
        lambda x: np.abs(x, out=x),
        lambda x: x.sort(),
        lambda x: put(x, "shape", (1, *x.shape)),
        lambda x: put(x, "shape", x.shape[::-1]),
        lambda x: put(x, "strides", x.strides[::-1]),
        lambda x: x[..., :1].__isub__(5),
        lambda x: np.add(x, 1),
    ],
}


def ran(function, x):
    """Return what a call returns, or the class of its error."""
    try:
        return function(x), None
    except Exception as error:
        return None, type(error)


def test_same_memory(monkeypatch):
    """The C function agrees with the descriptions, or leaves it to them."""
    square, line = np.arange(9.0).reshape(3, 3), np.arange(6, dtype=np.int32)
    shared, number = torch.from_numpy(square), torch.ones(4, dtype=torch.complex64)
    first, none = np.lib.stride_tricks.as_strided(square[:1], strides=(8, 8)), square[:0]
    several = [square, square.copy(), square.T, square[:1], square[:1].T, first, square[::-1]]
    several += [square[::2], square.view(np.int64), square.view(">f8"), line, line.view("f4")]
    several += [shared, shared.T, shared[:1], shared._neg_view(), shared.view(torch.int64)]
    several += [number, number.conj(), number.numpy(), jax.numpy.ones(3)]
    several += [none, none.view(np.int64), shared[:0], torch.empty(0, 3, dtype=torch.float64)]
    quick = [[call.same_memory(x, y) for x in several] for y in several]
    monkeypatch.setattr(call, "C", None)
    assert quick == [[call.same_memory(x, y) for x in several] for y in several]
    assert [n for n, same in enumerate(quick[0]) if same] == [0, 12]
    assert [sum(row) for row in quick] == [
        *(2, 1, 2, 3, 1, 3, 1, 1, 2, 1, 1, 1, 2, 2, 3, 1, 2, 2, 1, 2, 1),
        *(3, 1, 3, 3),
    ]
