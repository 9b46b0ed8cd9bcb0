"""An argument that a function returns is the caller's own array, whatever its layout and values."""

import random
import warnings

import numpy as np
import pytest

import arraybridge as ab
from tests.support.optional import optional
from tests.support.sources import values

torch = optional("torch")


def put(x, name, value):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy advises against some
        setattr(x, name, value)
    return x


def conj(v):
    return torch.from_numpy(v.astype("c16")).conj()


WRITABLE = {
    "contiguous": lambda v: v,
    "flipped": lambda v: v[::-1].copy()[::-1],
    "flipped twice": lambda v: v[::-1, ::-1].copy()[::-1, ::-1],
    "strided": lambda v: np.repeat(v, 2, 1)[:, ::2],
    "transposed": lambda v: v.T.copy().T,
    "swapped": lambda v: v.astype(">f8"),
    "Array": ab.from_dlpack,
    "Array, flipped": lambda v: ab.from_dlpack(v[::-1].copy()[::-1]),
    "torch": lambda v: torch.from_numpy(v),
    "torch, strided": lambda v: torch.from_numpy(v.T.copy()).T,
    "torch, conj": conj,
    "torch, neg": lambda v: conj(v * -1j).imag,
    "Array of torch, conj": lambda v: ab.from_dlpack(conj(v)),
}
NOT_WRITABLE = {
    "read-only": lambda v: (v, v.setflags(write=False))[0],
    "broadcast": lambda v: np.broadcast_arrays(v[:1], v)[0],
    "jax": lambda v: pytest.importorskip("jax.numpy").asarray(v.astype("f4")),
}
POSITIVE, MIXED = np.arange(1.0, 10).reshape(3, 3), np.arange(-4.0, 5).reshape(3, 3)


def passed_on(library, x):
    """Whether the function is called with the very array."""
    return isinstance(x.native if isinstance(x, ab.Array) else x, torch.Tensor) == (
        library == "torch"
    )


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("make", WRITABLE.values(), ids=WRITABLE)
def test_an_argument_without_elements_comes_back_itself(library, make):
    x = make(POSITIVE[:0].copy())
    assert ab.adapt(library)(lambda x: x)(x) is x


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_one_element_comes_back_itself_whatever_its_strides(library):
    """PyTorch takes no negative ones, and is given others."""
    x = POSITIVE[0].copy()[::-2][:1][None]
    assert x.strides == (0, -16)
    assert ab.adapt(library)(lambda x: x)(x) is x


@pytest.mark.parametrize("make", WRITABLE.values(), ids=WRITABLE)
@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("result", ["caller", "numpy", "torch", "function"])
def test_out(library, make, result):
    """The result is what was passed as out, unless another library was asked for."""
    add = {"numpy": np.add, "torch": torch.add}[library]
    for numbers in (POSITIVE, MIXED * 0):  # the second leaves zeros as they are
        x, out = make(numbers.copy()), make(numbers * 0)
        found = ab.adapt(library, result=result)(add)(x, x, out=out)
        np.testing.assert_array_equal(values(out), 2 * numbers)
        np.testing.assert_array_equal(values(found), 2 * numbers)
        kind = "torch" if isinstance(out, torch.Tensor) else "numpy"
        if result == "caller" or (result == kind and not isinstance(out, ab.Array)):
            assert found is out
        else:
            asked = library if result == "function" else result
            assert type(found) is {"numpy": np.ndarray, "torch": torch.Tensor}[asked]


@pytest.mark.parametrize("result", ["numpy", "torch", np])
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_the_library_of_the_results_without_any_array(library, result):
    make = {"numpy": np.arange, "torch": torch.arange}[library]
    kind = torch.Tensor if result == "torch" else np.ndarray
    assert type(ab.adapt(library, result=result)(make)(3)) is kind
    assert type(ab.adapt(library, result=result)(lambda n: {"a": [make(n)]})(n=3)["a"][0]) is kind
    assert type(next(ab.adapt(library, result=result)(yields)(make, 3))) is kind
    assert ab.adapt(library, result=result)(lambda: 3)() == 3


def yields(make, n):
    yield make(n)


STEPS = {
    "torch": [
        lambda x: x.mul_(2),
        lambda x: x.clamp_(min=0),
        lambda x: x.copy_(x.abs()),
        lambda x: torch.abs(x, out=x),
        lambda x: x.t_(),
        lambda x: x.unsqueeze_(0),
        lambda x: x.squeeze_(),
        lambda x: x.transpose_(0, -1),
        lambda x: x[..., :1].zero_(),
        lambda x: x.T.add_(1),
        lambda x: put(x, "data", x + 1),
        lambda x: put(x, "data", x[..., 1:]),
        lambda x: x.set_(x * 3),
        lambda x: x + 1,
        lambda x: x.detach().neg_(),
    ],
    "numpy": [
        lambda x: x.__imul__(2),
        lambda x: np.abs(x, out=x),
        lambda x: np.maximum(x, 0, out=x),
        lambda x: x.fill(3),
        lambda x: x.sort(),
        lambda x: put(x, "shape", (1, *x.shape)),
        lambda x: x.T.__iadd__(1),
        lambda x: x[..., :1].__isub__(5),
        lambda x: np.add(x, 1),
    ],
}
OF_ONE_BLOCK = {  # what these do depends on the strides
    "torch": [
        lambda x: x.resize_(x.shape[0], 1),
        lambda x: x.as_strided_((2, 3), (1, 2)),
        lambda x: x.view(-1).mul_(3),
    ],
    "numpy": [
        lambda x: put(x, "shape", (-1,)),
        lambda x: put(x, "strides", x.strides[::-1]),
        lambda x: x.ravel().fill(1),
    ],
}


def ran(function, x):
    """Return what a call returns, or the class of its error."""
    try:
        return function(x), None
    except Exception as error:
        return None, type(error)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_chains_of_steps(library, seed):
    """A random chain of operations on the argument does what it does to the library's own array."""
    draw = random.Random(f"{library} {seed}")
    numbers = np.array([draw.randint(-4, 4) for _ in range(9)], "f8").reshape(3, 3)
    returned = draw.choice([True, False])
    for name, make in (WRITABLE | NOT_WRITABLE).items():
        x = make(numbers.copy())
        if passed_on(library, x):
            continue
        steps = STEPS[library] + OF_ONE_BLOCK[library] * (name in ("contiguous", "Array", "torch"))
        steps = draw.choices(steps, k=draw.randint(1, 4))

        def function(x, steps=steps):
            for step in steps:
                step(x)
            return x if returned else None

        before = values(x)
        memory = before.astype(before.dtype.newbyteorder("="))
        own = torch.from_numpy(memory) if library == "torch" else memory[...]
        at, lay = ab.inspect(own).pointer, ab.inspect(own).strides
        expected, error = ran(function, own)
        result, refused = ran(ab.adapt(library)(function), x)
        locked = name in NOT_WRITABLE
        if refused is not None:
            assert refused is error or refused is ab.ConversionError or (locked and not error)
            continue
        assert error is None
        if not returned:
            assert result is None
        else:
            np.testing.assert_array_equal(
                values(result), values(expected), strict=name != "swapped"
            )
        if locked:
            assert result is not x
            np.testing.assert_array_equal(values(x), before)
            continue
        moved = ab.inspect(own).pointer != at
        same = tuple(own.shape) == memory.shape
        np.testing.assert_array_equal(values(x), values(own) if moved and same else memory)
        if returned and same and (moved or ab.inspect(own).strides == lay):
            assert result is x


def test_other_memory_between_yields():
    @ab.adapt("torch")
    def steps(x):
        for _ in range(3):
            y = yield x
            x.data = x + 1
            if y is not None:
                y.data = y * 2

    for make in (lambda: np.zeros(3), lambda: np.zeros(3)[::-1]):
        x, y, z = make(), np.ones(3), np.ones(3)[::-1]
        running = steps(x)
        assert next(running) is x
        for n, sent in enumerate((y, z), 1):
            assert running.send(sent) is x
            assert x.tolist() == [n] * 3
            assert sent.tolist() == [2] * 3
            assert len(running.gi_frame.f_locals["call"].arguments) == 2


@pytest.mark.parametrize("returned", [0, 1])
@pytest.mark.parametrize("replaced", [0, 1])
def test_other_memory_of_one_argument_of_two(replaced, returned):
    def function(*xs):
        put(xs[replaced], "data", xs[replaced] + 1)
        return xs[returned]

    for make in (lambda: np.zeros(3), lambda: np.zeros(3)[::-1]):
        xs = make(), np.zeros(3)
        assert ab.adapt("torch")(function)(*xs) is xs[returned]
        assert [x.tolist() for x in xs] == [[float(n == replaced)] * 3 for n in range(2)]
