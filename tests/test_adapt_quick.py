"""The quick way through adapt and unify: what it gives is what the slow one gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import pytest

import arraybridge as ab
from arraybridge import adaptation, namespaces
from arraybridge.array import crossing
from arraybridge.layout import in_bytes
from arraybridge.protocols.objects import as_source

from .support.optional import optional

torch = optional("torch")


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


def shaped(x: Any) -> Any:
    """Reshape in place, so that it is not what was given."""
    if isinstance(x, np.ndarray):
        x.shape = (-1,)
        return x
    return x.unsqueeze_(0)


def moved(x: Any) -> Any:
    """Give NumPy's view another memory."""
    if isinstance(x, np.ndarray) and x.dtype.kind == "f":
        x.__setstate__((1, x.shape, x.dtype, False, bytes(x.nbytes)))
    return x


def written(x: Any) -> Any:
    x[...] = 3
    return x


def failing(x: Any) -> Any:
    raise ZeroDivisionError("on purpose")


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "the argument": lambda x: x,
    "a new array": lambda x: x + 1,
    "a part": lambda x: x[1:],
    "reversed": lambda x: x[::-1] if isinstance(x, np.ndarray) else x.flip(0),
    "reshaped": shaped,
    "moved": moved,
    "written": written,
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


def told(error: BaseException) -> str:
    return "\n".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", [])])


def seen(x: Any) -> Any:
    """What there is to compare of an array, or of anything else."""
    if isinstance(x, tuple):
        return tuple(map(seen, x))
    if isinstance(x, dict):
        return {key: seen(item) for key, item in x.items()}
    try:
        info = ab.inspect(x)
    except (TypeError, BufferError) as error:
        return type(x), repr(x), str(error).partition(" at ")[0]
    try:
        elements: Any = np.asarray(ab.convert(x, "numpy", device="cpu"), copy=True)
        elements = elements.tolist() if elements.dtype == object else elements.tobytes()
    except (TypeError, BufferError, ImportError) as error:
        elements = str(error)
    return (type(x), elements, info._replace(data=0))


def outcome(call: Callable[..., Any], *xs: Any) -> Any:
    """What a call gives, which arguments that is, and what it leaves of them."""
    try:
        result = call(*xs)
    except Exception as error:
        return told(error), [*map(seen, xs)]
    parts = result if type(result) is tuple else (result,)
    same = [[x is part for x in xs] for part in parts]
    return seen(result), same, [shares(x, part) for x in xs for part in parts], [*map(seen, xs)]


def shares(x: Any, y: Any) -> Any:
    try:
        return ab.inspect(x).pointer == ab.inspect(y).pointer
    except (TypeError, BufferError):
        return None


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[..., Any]], Any]:
    """Run something without the quick ways."""

    def run(work: Callable[..., Any]) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(adaptation, "views", lambda *_: None)
            patch.setattr(namespaces, "_unified", lambda _: None)
            return work()

    return run


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::PendingDeprecationWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("library", "name"),
    [
        (library, name)
        for library in ("numpy", "torch")
        for name, make in ARRAYS.items()
        if library == "numpy" or make is not resized  # PyTorch would read what is not there
    ],
)
def test_adapt(library: str, name: str, slow: Any) -> None:
    make = ARRAYS[name]
    for what, function in FUNCTIONS.items():
        call = ab.adapt(library)(function)
        expected = slow(lambda call=call: outcome(call, make()))
        for _ in range(2):  # the second one has found its doors
            assert outcome(call, make()) == expected, what


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::PendingDeprecationWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ARRAYS)
def test_several_arguments(name: str, slow: Any) -> None:
    def pairs() -> Iterator[tuple[Any, ...]]:
        x = ARRAYS[name]()
        yield x, x, 2.0
        for other in ("numpy", "torch", "Array of torch", "jax", "reversed"):
            yield ARRAYS[name](), ARRAYS[other](), None
            yield 1, ARRAYS[other](), ARRAYS[name]()
            yield ARRAYS[name](), [ARRAYS[other]()], object

    def identical(*xs: Any) -> str:
        return str([[x is y for x in xs] for y in xs])

    calls = [
        ab.unify,
        ab.adapt("numpy")(identical),
        *(ab.adapt("numpy")(f) for f in (lambda *xs: xs, lambda *xs: xs[1], lambda *xs: xs[0])),
    ]
    for call in calls:
        expected = slow(lambda call=call: [outcome(call, *xs) for xs in pairs()])
        assert [outcome(call, *xs) for xs in pairs()] == expected


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
@pytest.mark.parametrize(
    "name", [name for name in ARRAYS if name != "torch, sparse"]
)  # which has no address
def test_the_memory_is_the_described(name: str) -> None:
    x, library = as_source(ARRAYS[name]())
    memory = library.memory(x)
    if memory is None:
        assert "torch" not in name or name == "torch, meta"
        return
    info = library.describe(x)
    address, shape, strides = memory
    assert (address, shape) == (info.pointer, info.shape)
    if strides is None:
        assert info.c_contiguous
    else:
        assert strides == in_bytes(info.strides, info.itemsize)


def test_it_is_the_quick_way() -> None:
    """Of what the tests above compare, unless they compare nothing."""
    terms = crossing.Terms(lambda x: x)
    for name in ("torch", "torch, transposed", "Array of torch", "jax", "numpy"):
        x = ARRAYS[name]()
        ab.adapt(lambda x: x)(x)
        found = crossing.views(terms, (x,), {"axis": 0})
        assert found is not None, name
        assert type(found[0][0]) is np.ndarray, name
        assert namespaces._unified((x, 1.0, ARRAYS["torch"]())) is not None


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
    from arraybridge.dispatch import registry
    from arraybridge.libraries.numpy.exchange import NumPy

    class Other(NumPy):
        name = "other"
        doors = {}  # noqa: RUF012

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
