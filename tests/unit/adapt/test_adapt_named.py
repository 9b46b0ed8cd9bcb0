"""adapt: the argument whose kind the results become, and the arguments called out."""

import jax
import numpy as np
import pytest

import arraybridge as ab
from tests.support.optional import optional

torch = optional("torch")


def pair():
    return np.arange(3.0, dtype=np.float32), torch.ones(3)


class Scale:
    @ab.adapt("numpy", result_like="y")
    def add(self, x, y):
        return x + y


class TestResultLike:
    @pytest.mark.parametrize("like", ["y", 1])
    def test_of_that_argument(self, like):
        add = ab.adapt("numpy", result_like=like)(lambda x, y: x + y)
        x, t = pair()
        assert isinstance(add(t, x), np.ndarray)
        for found in (add(x, t), add(x, y=t), add(y=t, x=x), Scale().add(x, t)):
            assert isinstance(found, torch.Tensor)
            assert found.tolist() == [1, 2, 3]

    @pytest.mark.parametrize(
        ("like", "function", "call"),
        [
            ("w", lambda x, *, w: x * w["w"], lambda f, x, t: f(x, w={"w": t})),
            ("y", lambda x, **others: x + others["y"], lambda f, x, t: f(x, y=t)),
            (2, lambda *xs: xs[0] + 1, lambda f, x, t: f(x, x, t)),
            ("x2", np.add, lambda f, x, t: f(x, t)),
        ],
        ids=["nested", "not named", "among any number", "builtin"],
    )
    def test_where_it_is(self, like, function, call):
        assert isinstance(
            call(ab.adapt("numpy", result_like=like)(function), *pair()), torch.Tensor
        )

    def test_builtins_of_pytorch(self):
        x, t = pair()
        assert isinstance(ab.adapt("torch", result_like=1)(torch.add)(t, x), np.ndarray)
        assert isinstance(ab.adapt("torch", result_like="other")(torch.add)(t, other=x), np.ndarray)

    def test_faces(self):
        add = ab.adapt("numpy", result_like="y")(lambda x, y: x + y)
        x, t = pair()
        result = add(x, ab.from_dlpack(t))
        assert isinstance(result, ab.Array)
        assert result.library == "torch"
        assert isinstance(add(x, jax.numpy.ones(3)), jax.Array)
        assert isinstance(add(t, x.__dlpack__(max_version=(1, 0))), np.ndarray)

    def test_the_same_array_twice(self):
        x, _ = pair()
        t = torch.ones(3)
        back = ab.adapt("numpy", result_like="y")(lambda x, y: y)
        assert back(t, t) is t
        assert back(x, t) is t

    def test_generators(self):
        @ab.adapt("numpy", result_like="y")
        def each(x, y):
            yield x
            yield x + y

        x, t = pair()
        first, second = each(x, t)
        assert first is x
        assert isinstance(second, torch.Tensor)

    def test_no_array_there(self):
        add = ab.adapt("numpy", result_like="y")(lambda x, y=None: x * 1)
        _, t = pair()
        with pytest.raises(TypeError, match="result_like='y', but that argument is not an array"):
            add(t)
        with pytest.raises(TypeError, match="result_like='y'"):
            add(t, 2.0)
        assert add(2.0, 3.0) == 2.0

    @pytest.mark.parametrize("like", ["z", "sel", 2, -1])
    def test_unknown(self, like):
        with pytest.raises(ValueError, match=f"has no argument {like!r}; its arguments are x, y"):
            ab.adapt("numpy", result_like=like)(lambda x, y: x + y)

    @pytest.mark.parametrize("result", ["function", "jax"])
    def test_both(self, result):
        with pytest.raises(ValueError, match="cannot be combined with result_like="):
            ab.adapt("numpy", result=result, result_like="x")


def read_only():
    x = np.zeros(3)
    x.flags.writeable = False
    return x


def test_names_in_messages():
    x = np.ones(3)[::-1]
    for function, name in ((torch.sum, "sum"), (np.add, "add"), (pair, "pair")):
        with pytest.raises(ab.ConversionError) as found:
            ab.adapt("torch", copy=False)(function)(x)
        assert found.value.__notes__ == [
            f"Raised for an argument of {name}, adapted by arraybridge."
        ]


def test_casts_of_results_are_the_functions():
    wide = ab.adapt("numpy", dtype="float32")(lambda x: x.astype("f8"))
    with pytest.raises(ab.ConversionError, match="jax has no float64") as found:
        wide(jax.numpy.ones(3))
    assert found.value.__notes__[-1].endswith("cast them in the function.")


ADD = {"numpy": np.add, "torch": torch.add}
numpys = ab.adapt("numpy")(np.add)


def torchs(*args, **kwargs):
    return ab.adapt("torch")(torch.add)(*args, **kwargs)


FROZEN, SHAPE = r"as out \(read-only\): omit out=", r"the shape \(3,\), but the array .* has \(6,\)"
three, of_jax = np.ones(3), ab.adapt("jax")(lambda x, y, out=None: x + y)
private = ab.adapt("numpy", copy=True)(np.add)
NOT_WRITTEN = {  # a call with an array of NumPy and one of PyTorch, and what is said of `out`
    "a view of JAX": (lambda x, t: numpys(t, t, out=jax.numpy.zeros(3)), FROZEN),
    "one in a tuple": (lambda x, t: numpys(t, t, out=(jax.numpy.zeros(3),)), FROZEN),
    "a function of JAX": (lambda x, t: of_jax(x, t, out=x), "arrays of jax cannot be written"),
    "a private copy": (lambda x, t: private(t, t, out=t), "copy=True gives the function a copy"),
    "another shape": (lambda x, t: torchs(three, three, out=np.zeros(6)), SHAPE),
    "another shape, a copy": (lambda x, t: torchs(three, three, out=np.zeros(6)[::-1]), SHAPE),
    "another dtype": (lambda x, t: numpys(t, x, out=t.to(torch.int32)), "Cannot cast"),
}


class TestOut:
    def test_several(self):
        whole, rest = torch.zeros(3), np.zeros(3, ">f4")
        x, t = pair()
        found = ab.adapt("numpy")(np.divmod)(x, t, out=(whole, rest))
        assert found[0] is whole
        assert found[1] is rest
        assert whole.tolist() == [0, 1, 2]
        values, places = np.zeros((2, 3))[::-1, 0], np.zeros(4, np.int64)[::-2]
        ab.adapt("torch")(torch.max)(np.array([[1.0, 3.0], [4.0, 2.0]]), 1, out=(values, places))
        assert values.tolist() == [3, 4]
        assert places.tolist() == [1, 0]

    @pytest.mark.parametrize("positional", [False, True])
    def test_read_only(self, positional):
        called = []

        def add(x, y, out=None):
            called.append(1)
            return torch.add(x, y, out=out)

        x = np.ones(3)
        adapted = ab.adapt("torch")(add)
        for out in (read_only(), jax.numpy.zeros(3), np.broadcast_to(0.0, 3)):
            with pytest.raises(ab.ConversionError, match="add cannot write to the"):
                adapted(x, x, out) if positional else adapted(x, x, out=out)
        assert not called

    @pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
    @pytest.mark.parametrize(("call", "match"), NOT_WRITTEN.values(), ids=NOT_WRITTEN)
    def test_what_is_not_written(self, call, match):
        with pytest.raises((ab.ConversionError, TypeError), match=match):
            call(*pair())

    @pytest.mark.parametrize(("library", "add"), ADD.items())
    def test_casts(self, library, add):
        x, t = pair()
        wide = np.zeros(3)
        assert ab.adapt(library, dtype="float64")(add)(x, t, out=wide) is wide
        assert wide.tolist() == [1, 2, 3]
        for out in (x, t):
            with pytest.raises(ab.ConversionError, match=r"dtype= gives the function a copy of f"):
                ab.adapt(library, dtype="float64")(add)(x, t, out=out)

    def test_an_argument_of_another_meaning(self):
        """A model's output is not NumPy's ``out``."""
        loss = ab.adapt("torch")(lambda out, target: ((out - target) ** 2).sum())
        assert float(loss(read_only(), np.ones(3))) == 3
        assert float(loss(out=read_only(), target=np.ones(3))) == 3
