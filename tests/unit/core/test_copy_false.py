"""copy=False where a copy is needed: a BufferError and a ValueError, as the standard has it."""

from __future__ import annotations

import array_api_strict as strict
import jax.numpy as jnp
import numpy as np
import pytest

import arraybridge as ab
import arraybridge.xp.array_api_strict
import arraybridge.xp.jax
import arraybridge.xp.numpy

torch = pytest.importorskip("torch")
import arraybridge.xp.torch  # noqa: E402

NAMES = ("numpy", "torch", "jax", "array_api_strict")
X = np.arange(6, dtype="f4").reshape(2, 3)
FIELD = np.zeros(3, [("a", "i1"), ("b", "f4")])["b"]
FOREIGN = X.astype(">f4")
READ_ONLY = X.copy()
READ_ONLY.flags.writeable = False
NEGATED = torch._neg_view(torch.ones(3))
CONJUGATED = torch.ones(3, dtype=torch.complex64).conj()


def own(name, x=X):
    return getattr(ab.xp, name).asarray(x.tolist())


CALLS = {
    "convert, read-only": lambda: ab.convert(READ_ONLY, "torch", copy=False),
    "convert, reversed": lambda: ab.convert(X[::-1], "torch", copy=False),
    "convert, byte order": lambda: ab.convert(FOREIGN, "jax", copy=False),
    "convert, negated": lambda: ab.convert(NEGATED, "numpy", copy=False),
    "convert, conjugated": lambda: ab.convert(CONJUGATED, "numpy", copy=False),
    "convert, a field": lambda: ab.convert(FIELD, "torch", copy=False),
    "convert, immutable": lambda: ab.convert(jnp.ones(3), "torch", copy=False),
    "convert, bytes": lambda: ab.convert(b"abc", "torch", copy=False),
    "convert, a capsule": lambda: ab.convert(
        READ_ONLY.__dlpack__(max_version=(1, 0)), "torch", copy=False
    ),
    "convert, dtype=": lambda: ab.convert(X, "torch", copy=False, dtype="float64"),
    "convert, order=": lambda: ab.convert(X, "torch", copy=False, order="F"),
    "convert, an Array": lambda: ab.convert(ab.from_dlpack(READ_ONLY), "torch", copy=False),
    "to": lambda: ab.from_dlpack(READ_ONLY).to("torch", copy=False),
    "asarray": lambda: ab.asarray(READ_ONLY, like="torch", copy=False),
    "asarray, dtype=": lambda: ab.asarray(X, like="torch", copy=False, dtype="float64"),
    "__dlpack__, legacy": lambda: ab.from_dlpack(READ_ONLY).__dlpack__(copy=False),
    "__dlpack__, byte order": lambda: ab.from_dlpack(FOREIGN).__dlpack__(
        max_version=(1, 0), copy=False
    ),
    "__dlpack__, negated": lambda: ab.from_dlpack(NEGATED).__dlpack__(copy=False),
    "__array__, dtype": lambda: ab.from_dlpack(X).__array__("i4", copy=False),
    "__array__": lambda: ab.from_dlpack(NEGATED).__array__(copy=False),
    "numpy.asarray": lambda: np.asarray(ab.from_dlpack(X), "i4", copy=False),
    **{
        f"{name}.reshape": lambda name=name: getattr(ab.xp, name).reshape(
            own(name).T, (6,), copy=False
        )
        for name in NAMES
    },
    "reshape, native JAX": lambda: ab.namespace(jnp.ones(1)).reshape(
        jnp.ones(6), (2, 3), copy=False
    ),
    **{
        f"from_dlpack, native {name}, {what}": lambda name=name, x=x: ab.namespace(
            own(name).native
        ).from_dlpack(x, copy=False)
        for name in ("numpy", "array_api_strict")
        for what, x in {
            "negated": NEGATED,
            "conjugated": CONJUGATED,
            "byte order": FOREIGN,
        }.items()
    },
    "reshape, native": lambda: ab.namespace(strict.ones(1)).reshape(
        strict.asarray(X.copy()).T, (6,), copy=False
    ),
    **{
        f"{name}.asarray, {what}": lambda name=name, x=x: getattr(ab.xp, name).asarray(
            x, copy=False
        )
        for name in NAMES
        for what, x in {
            "numbers": [1.0, 2.0],
            "byte order": FOREIGN,
            "negated": NEGATED,
            "conjugated": CONJUGATED,
        }.items()
        if not (name == "torch" and "ated" in what)
    },
    **{
        f"{name}.asarray, dtype=": lambda name=name: getattr(ab.xp, name).asarray(
            own(name), dtype=getattr(ab.xp, name).int32, copy=False
        )
        for name in NAMES
    },
    **{
        f"{name}.from_dlpack": lambda name=name: getattr(ab.xp, name).from_dlpack(
            ab.from_dlpack(X[::-1] if name == "torch" else NEGATED), copy=False
        )
        for name in NAMES
    },
}


@pytest.mark.parametrize("name", CALLS)
def test_the_error_is_what_the_standard_names(name: str) -> None:
    with pytest.raises(ab.ConversionError) as told:
        CALLS[name]()
    assert isinstance(told.value, BufferError)
    assert isinstance(told.value, ValueError)
    assert str(told.value).startswith("copy=False, but ")
    for word in ("byteorder", "fraction", "neg ", "conj "):  # of TensorInfo.pending
        assert word not in str(told.value)


def test_pieces_are_told_in_words() -> None:
    pa = pytest.importorskip("pyarrow")
    with pytest.raises(ab.ConversionError, match="its elements are in several chunks"):
        ab.convert(pa.chunked_array([[1.0], [2.0]]), "numpy", copy=False)
    with pytest.raises(ab.ConversionError, match="its booleans are packed eight to a byte"):
        ab.convert(pa.array([True, False]), "numpy", copy=False)
    arro3 = pytest.importorskip("arro3.core")
    pieces = arro3.ChunkedArray.from_arrow(pa.chunked_array([[1.0], [2.0]]))
    with pytest.raises(ab.ConversionError, match="its elements are in several chunks"):
        ab.from_dlpack(pieces, copy=False)


@pytest.mark.parametrize("name", ["numpy", "array_api_strict"])
def test_native_imports_show_the_elements(name: str) -> None:
    from_dlpack = ab.namespace(own(name).native).from_dlpack
    for x, elements in ((NEGATED, [-1, -1, -1]), (CONJUGATED, [1, 1, 1]), (FOREIGN, X)):
        result = from_dlpack(x)
        np.testing.assert_array_equal(np.asarray(ab.convert(result, "numpy")), elements)
    for x in (np.array(["a"]), np.array([None])):
        with pytest.raises((TypeError, BufferError)):
            from_dlpack(x)


def test_a_reshape_of_jax_that_changes_nothing_is_no_copy() -> None:
    xp, x = ab.namespace(jnp.ones(1)), jnp.ones(6)
    assert xp.reshape(x, (-1,), copy=False) is x
    assert ab.xp.jax.reshape(ab.from_dlpack(x), (6,), copy=False).shape == (6,)
