"""What an adapted function writes is seen by the caller, or is an error that says so."""

from __future__ import annotations

import jax.numpy as jnp
import numba
import numpy as np
import pytest

import arraybridge as ab
from tests.support.optional import optional
from tests.support.places import Speaker

torch = optional("torch")


def frozen(x):
    x.flags.writeable = False
    return x


COPIED = {  # (the library of the function, an argument of which it can only have a copy)
    "conj": ("numpy", lambda: torch.tensor([1 + 2j, 3 + 4j]).conj()),
    "conj Array": ("numpy", lambda: ab.from_dlpack(torch.tensor([1 + 2j, 3 + 4j]).conj())),
    "reversed": ("torch", lambda: np.arange(6.0)[::-1]),
    "reversed Array": ("torch", lambda: ab.from_dlpack(np.arange(6.0)[::-1])),
    "reversed, DLPack only": ("torch", lambda: Speaker(np.arange(6.0)[::-1])),
    "swapped": ("torch", lambda: np.arange(3).astype(">f8")),
    "fields": ("torch", lambda: np.zeros(3, [("a", "f4"), ("b", "i1")])["a"]),
    "read-only": ("torch", lambda: frozen(np.ones(3))),
    "broadcast": ("torch", lambda: np.broadcast_to(np.ones(1), 3)),
    "jax": ("torch", lambda: pytest.importorskip("jax.numpy").ones(3)),
    "pyarrow": ("torch", lambda: pytest.importorskip("pyarrow").array([1.0, 2.0])),
}


def in_place(x):
    x *= 2
    return x


def a_part(x):
    x[1] *= 2


def by_out(x):
    (np.add if isinstance(x, np.ndarray) else torch.add)(x, x, out=x)


def nested(d):
    in_place(d["x"][0])


WRITES = {
    "in place": (in_place, lambda call, x: call(x)),
    "a part": (a_part, lambda call, x: call(x)),
    "out": (by_out, lambda call, x: call(x)),
    "nested": (nested, lambda call, x: call({"x": [x]})),
}


@pytest.mark.parametrize(("function", "run"), WRITES.values(), ids=WRITES)
@pytest.mark.parametrize(("library", "make"), COPIED.values(), ids=COPIED)
def test_a_write_to_a_copy_is_an_error(library, make, function, run):
    x = make()
    before = ab.convert(x.array if isinstance(x, Speaker) else x, "numpy", copy=True)
    error, match = {
        "numpy": (ValueError, "read-only"),
        "torch": (ab.ConversionError, "wrote to the copy of an argument"),
    }[library]
    with pytest.raises(error, match=match) as caught:
        run(ab.adapt(library)(function), x)
    if library == "numpy":
        assert "got a read-only copy of an argument" in caught.value.__notes__[0]
    after = x.array if isinstance(x, Speaker) else x
    np.testing.assert_array_equal(ab.convert(after, "numpy"), before)


@pytest.mark.parametrize(("function", "run"), WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_a_write_to_a_view_reaches_the_caller(library, function, run):
    makes = [
        lambda: np.arange(1.0, 4),
        lambda: np.arange(1.0, 7)[::2],
        lambda: torch.arange(1.0, 4),
        lambda: ab.from_dlpack(torch.arange(1.0, 4)),
        lambda: Speaker(np.arange(1.0, 4)),
    ]
    for make in makes:
        x = make()
        own = x.array if isinstance(x, Speaker) else x
        before = ab.convert(own, "numpy", copy=True)
        run(ab.adapt(library)(function), x)
        assert not np.array_equal(ab.convert(own, "numpy"), before)


def test_casts_are_copies():
    x = np.arange(3.0)
    for library, error in (("torch", ab.ConversionError), ("numpy", ValueError)):
        with pytest.raises(error):
            ab.adapt(library, dtype="float32")(in_place)(x)
    assert ab.adapt("torch", dtype="float64")(in_place)(x) is x
    assert x.tolist() == [0, 2, 4]


@pytest.mark.parametrize("view", [lambda x: x, lambda x: x[::-1][::-1]], ids=["whole", "view"])
def test_returned_copies_are_writable(view):
    x = np.arange(3.0)
    copy, repeated = ab.adapt("numpy", dtype="float32")(
        lambda x: (view(x), np.broadcast_to(x, (2, 3)))
    )(x)
    copy += 1
    assert copy.tolist() == [1, 2, 3]
    assert not repeated.flags.writeable
    assert x.tolist() == [0, 1, 2]


def test_an_empty_argument_that_is_returned_was_cast():
    assert ab.adapt("torch", dtype="float32")(lambda x: x)(np.ones(0)).dtype == np.float32


def test_numba():
    @ab.adapt("numpy")
    @numba.njit
    def fill(x, value):
        x[:] = value
        return x

    t = torch.zeros(3)
    assert fill(t, 2.0) is t
    assert t.tolist() == [2, 2, 2]
    with pytest.raises(numba.TypingError, match=r"(?i)readonly|read-only"):
        fill(torch.ones(2, dtype=torch.complex64).conj(), 2.0)


@pytest.mark.heavy
def test_paddle():
    pytest.importorskip("paddle")
    x = np.arange(3.0)[::-1]
    with pytest.raises(ab.ConversionError, match="wrote to the copy"):
        ab.adapt("paddle")(lambda x: x.add_(x))(x)


def test_what_ignores_the_read_only_flag():
    """A limit that docs/adapting.md states: if NumPy checks the flag, its sentence can go."""
    frozen = np.zeros(2)
    frozen.flags.writeable = False
    np.add.at(frozen, 0, 1)
    assert frozen[0] == 1
    x = jnp.zeros(2)

    @ab.adapt("numpy")
    def counted(x):
        np.add.at(x := x.copy(), 0, 1)
        return x

    assert counted(x).tolist() == [1, 0]
    assert x.tolist() == [0, 0]
