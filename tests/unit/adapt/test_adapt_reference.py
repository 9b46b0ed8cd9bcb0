"""Adapted functions give what convert, the function and convert give; no call changes the next."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import pytest

import arraybridge as ab
from arraybridge.array.array_types import is_array
from arraybridge.pytree import mapped
from tests.support.optional import optional

torch = optional("torch")
pytestmark = pytest.mark.filterwarnings(
    *("ignore::UserWarning", "ignore::PendingDeprecationWarning"),
    *("ignore::DeprecationWarning", "ignore::RuntimeWarning"),
)


def numbers() -> np.ndarray[Any, Any]:
    return np.arange(12.0).reshape(3, 4)


def read_only() -> np.ndarray[Any, Any]:
    x = numbers()
    x.flags.writeable = False
    return x


def tensor() -> Any:
    return torch.arange(12.0).reshape(3, 4)


def resized() -> Any:
    x = tensor()
    x.untyped_storage().resize_(8)
    return x


class Derived(np.ndarray[Any, Any]):
    """A subclass, which may mean something else."""


ARRAYS: dict[str, Callable[[], Any]] = {
    "numpy": numbers,
    "reversed": lambda: numbers()[::-1],
    "transposed": lambda: numbers().T,
    "big-endian": lambda: numbers().astype(">f8"),
    "read-only": read_only,
    "unaligned": lambda: np.zeros(97, np.uint8)[1:].view("f8").reshape(3, 4),
    "empty": lambda: np.zeros((0, 3)),
    "one": lambda: np.array(2.0),
    "text": lambda: np.array(["a", "b"]),
    "subclass": lambda: numbers().view(Derived),
    "matrix": lambda: np.asmatrix(numbers()),
    "masked": lambda: np.ma.masked_greater(numbers(), 5),
    "torch": tensor,
    "torch, transposed": lambda: tensor().mT,
    "torch, expanded": lambda: torch.arange(4.0).expand(3, 4),
    "torch, one": lambda: torch.tensor(2.0),
    "torch, empty": lambda: torch.zeros(0, 3),
    "torch, bfloat16": lambda: tensor().to(torch.bfloat16),
    "torch, gradient": lambda: tensor().requires_grad_(),
    "torch, parameter": lambda: torch.nn.Parameter(tensor(), requires_grad=False),
    "torch, conj": lambda: torch.complex(tensor(), tensor()).conj(),
    "torch, neg": lambda: torch.complex(tensor(), tensor()).conj().imag,
    "torch, resized": resized,
    "torch, meta": lambda: torch.zeros(3, device="meta"),
    "torch, sparse": lambda: torch.eye(3).to_sparse(),
    "jax": lambda: jax.numpy.arange(12.0).reshape(3, 4),
}
ARRAYS |= {
    f"Array of {name}": lambda make=make: ab.from_dlpack(make())
    for name, make in ARRAYS.items()
    if name in ("numpy", "reversed", "read-only", "torch", "torch, transposed", "jax")
}


def failing(x: Any) -> Any:
    raise ZeroDivisionError("on purpose")


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "the argument": lambda x: x,
    "a new array": lambda x: x + 1,
    "a part": lambda x: x[1:],
    "reversed": lambda x: x[::-1] if isinstance(x, np.ndarray) else x.flip(0),
    "a number": lambda x: float(x.sum()),
    "NumPy's number": lambda x: np.float64(2),
    "text": lambda x: "text",
    "nothing": lambda x: None,
    "a tuple": lambda x: (x, x * 2),
    "a dict": lambda x: {"a": x},
    "an array of its own": lambda x: np.ones(3) if isinstance(x, np.ndarray) else torch.ones(3),
    "another library's": lambda x: jax.numpy.ones(3),
    "objects": lambda x: np.array([{}]),
    "an error": failing,
}


def seen(x: Any) -> Any:
    """What there is to compare of an array, or of anything else."""
    if isinstance(x, tuple):
        return tuple(map(seen, x))
    if isinstance(x, dict):
        return {key: seen(item) for key, item in x.items()}
    try:
        info = ab.inspect(x)
    except (TypeError, BufferError):
        return type(x), repr(x)
    try:
        elements: Any = np.asarray(ab.convert(x, "numpy", device="cpu"), copy=True)
        elements = elements.tolist() if elements.dtype == object else elements.tobytes()
    except (TypeError, BufferError, ImportError) as error:
        elements = str(error)
    return type(x), elements, info.shape, info.dtype, info.readonly


def reference(function: Callable[..., Any], library: str, *xs: Any) -> Any:
    """What an adapted function that writes nothing gives, in a few lines of `unify`."""
    model = next((x for x in xs if is_array(x)), None)
    _, *natives = ab.unify(*xs, like=library)

    def back(x: Any) -> Any:
        for given, native in zip(xs, natives, strict=True):
            if x is native and (x is given or stands_for(given, native)):
                return given
        return ab.unify(x, like=model)[1] if is_array(x) else x

    return mapped(back, function(*natives), is_array)


def outcome(call: Callable[..., Any], *xs: Any) -> Any:
    """What a call gives, and which arguments that is."""
    try:
        result = call(*xs)
    except Exception as error:
        return type(error), str(error).replace("result_dtype=", "dtype=")
    parts = result if type(result) is tuple else (result,)
    return seen(result), [[x is part for x in xs] for part in parts]


def stands_for(given: Any, native: Any) -> bool:
    """Whether what is written to what the function saw is written to the caller's array."""
    a, b = ab.inspect(given), ab.inspect(native)
    return not a.size or a.pointer == b.pointer or not a.readonly


@pytest.mark.parametrize(
    ("library", "name"),
    [
        (library, name)
        for library in ("numpy", "torch")
        for name, make in ARRAYS.items()
        if library == "numpy" or make is not resized  # PyTorch would read what is not there
    ],
)
def test_adapt(library: str, name: str) -> None:
    make = ARRAYS[name]
    for what, function in FUNCTIONS.items():
        call = ab.adapt(library)(function)
        expected = outcome(lambda x, function=function: reference(function, library, x), make())
        for _ in range(2):  # what is known of the types is remembered
            assert outcome(call, make()) == expected, what


@pytest.mark.parametrize("name", ARRAYS)
def test_several_arguments(name: str) -> None:
    def pairs() -> Iterator[tuple[Any, ...]]:
        x = ARRAYS[name]()
        yield x, x, 2.0
        for other in ("numpy", "torch", "Array of torch", "jax", "reversed"):
            yield ARRAYS[name](), ARRAYS[other](), None
            yield 1, ARRAYS[other](), ARRAYS[name]()

    def identical(*xs: Any) -> str:
        return str([[x is y for x in xs] for y in xs])

    for function in (identical, lambda *xs: xs, lambda *xs: xs[1], lambda *xs: xs[0]):
        call = ab.adapt("numpy")(function)
        for xs, again in zip(pairs(), pairs(), strict=True):
            expected = outcome(lambda *xs: reference(function, "numpy", *xs), *again)  # noqa: B023
            assert outcome(call, *xs) == expected


def test_arguments_that_change_meanwhile() -> None:
    """What is returned is no longer the argument that it was a view of."""
    other = torch.zeros(3, 4)

    def exchanged(x: Any) -> Any:
        given.set_(other)
        return x

    given = tensor()
    result = ab.adapt(exchanged)(given)
    assert result is not given
    assert torch.equal(result, tensor())
    given = tensor()
    assert ab.adapt(lambda x: (given.t_(), x)[1])(given) is not given


def test_methods_and_keywords() -> None:
    class Model:
        scale = 2

        @ab.adapt
        def times(self, x: Any, *, plus: float = 0, out: Any = None) -> Any:
            assert type(self) is Model
            assert type(x) is np.ndarray
            return np.add(x * self.scale, plus, out=out)

    x = tensor()
    for _ in range(2):
        assert torch.equal(Model().times(x), x * 2)
        assert torch.equal(Model().times(x, plus=1.0), x * 2 + 1)
        out = torch.zeros(3, 4)
        assert Model().times(x, out=out) is out
        assert torch.equal(out, x * 2)


def test_a_frame_of_the_function_is_next_to_the_adapters() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        ab.adapt(failing)(tensor())
    assert [entry.name for entry in caught.traceback][-2:] == ["adapted", "failing"]


def test_libraries_that_are_registered_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their arrays are no longer those of the library that they were."""
    from arraybridge.core import registry
    from arraybridge.libraries.numpy.exchange import NumPy

    class Other(NumPy):
        name = "other"

        def owns(self, array_type: type) -> bool:
            return array_type is np.ndarray

    call = ab.adapt("torch")(lambda x: type(x).__name__)
    x = numbers()
    assert call(x) == call(x) == "Tensor"
    registry.register(Other())
    try:
        result = ab.adapt("torch")(lambda x: x + 1)(x)
        assert type(result) is np.ndarray
        assert registry.library_of_type(np.ndarray).name == "other"
        assert call(x) == "Tensor"
    finally:
        registry.unregister("other")
    assert call(x) == "Tensor"
