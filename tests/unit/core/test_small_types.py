"""Data types of ml_dtypes, and a second uint64: converted if both libraries have them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import arraybridge as ab
from tests.support.optional import optional

ml_dtypes = pytest.importorskip("ml_dtypes")
jax = optional("jax")
jnp = optional("jax.numpy")
torch = pytest.importorskip("torch")

NAMES = sorted(
    name
    for name, kind in vars(ml_dtypes).items()
    if isinstance(kind, type) and issubclass(kind, np.generic)
)
TORCH = {x for x in vars(torch).values() if isinstance(x, torch.dtype) and x.is_floating_point}
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of half-precision complex numbers
    HALF = torch.zeros(2, 3, dtype=torch.complex32)
PACKED = ("float4_e2m1fn", "int2", "int4", "uint2", "uint4")


def of(name: str) -> np.ndarray:
    """Make a matrix that is not symmetric."""
    few = [[1, 2, 1], [1, 1, 2]] if name == "float8_e8m0fnu" else [[1, 0, 1], [1, 1, 0]]
    return np.array(few).astype(getattr(ml_dtypes, name))


def in_jax(name: str) -> object:
    try:
        x = jnp.asarray(of(name))
        x.block_until_ready()
    except (TypeError, jax.errors.JaxRuntimeError) as error:  # no such type in JAX, or in XLA
        pytest.skip(f"JAX has no {name} here: {str(error).splitlines()[0]}")
    if name.startswith("float6"):  # XLA has them since JAX 0.12, and DLPack 1.3 has other codes
        pytest.skip(f"JAX does not export {name}")
    assert x.dtype == of(name).dtype
    return x


@pytest.mark.parametrize("name", NAMES)
def test_jax_and_numpy(name: str) -> None:
    there, here = in_jax(name), of(name)
    for make, source, to, expected in (
        (ab.convert, there, "numpy", here),
        (ab.convert, ab.from_dlpack(there), "numpy", here),
        (ab.convert, here.T, "jax", there.T),
        (lambda x, to: ab.asarray(x, like=to), here, "jax", there),
    ):
        for _ in range(2):
            route = ab.explain(source, to)
            made = make(source, to)
            assert route.kind in ("view", "copy")
            assert made.dtype == here.dtype
            assert made.shape == expected.shape
            assert (np.asarray(made) == np.asarray(expected)).all()


@pytest.mark.parametrize("name", PACKED)
def test_what_jax_packs(name: str) -> None:
    x, here = in_jax(name), of(name)
    held = ab.from_dlpack(x)
    route = ab.explain(x, "numpy")
    assert (route.kind, route.why) == ("copy", "its elements are packed, several to a byte")
    made = ab.convert(x, "numpy", copy=True)
    assert made.flags.writeable
    with pytest.raises(ab.ConversionError, match=r"copy=False, but its elements are packed"):
        ab.convert(x, "numpy", copy=False)
    told = ab.inspect(held.__dlpack__(max_version=(1, 0)))
    assert (told.dtype_name, told.shape) == (name, (2, 3))
    ab.copyto(made, x[::-1])
    assert (made == here[::-1]).all()
    wide = ab.convert(x, "torch", dtype="float32", casting="unsafe")
    assert wide.tolist() == here.astype("f4").tolist()
    assert ab.convert(here.astype("f4"), "jax", dtype=name, casting="unsafe").dtype == here.dtype


@pytest.mark.parametrize("name", NAMES)
def test_torch_and_numpy(name: str) -> None:
    kind, here = getattr(torch, name, None), of(name)
    if kind is None:
        with pytest.raises(ab.ConversionError, match="has no"):
            ab.convert(here, "torch")
        return
    if name == "complex32" or kind not in TORCH:  # PyTorch has the name, and no arithmetic on it
        zeros = torch.zeros(2, 3 * kind.itemsize, dtype=torch.uint8)
        there = zeros.view(kind) if name != "complex32" else HALF
        with pytest.raises(ab.ConversionError, match="has no") as told:
            ab.convert(there, "numpy")
        assert ab.explain(there, "numpy").why == str(told.value)
        if name != "complex32":
            assert str(told.value).endswith("pass its bytes, x.view(torch.uint8)")
            assert ab.convert(there.view(torch.uint8), "numpy").shape == zeros.shape
        return
    made = ab.convert(torch.zeros(2, 3, dtype=kind), "numpy")
    assert made.dtype == here.dtype
    assert ab.convert(here, "torch").dtype is kind
    assert ab.convert(ab.convert(here, "torch"), "numpy").tobytes() == here.tobytes()


@pytest.mark.parametrize("keywords", [{}, {"copy": True}, {"order": "C"}])
def test_unsigned_long_long_is_uint64_for_pytorch(keywords):
    for x in (np.arange(4, dtype=np.ulonglong), np.arange(4, dtype=np.ulonglong)[::-1]):
        assert ab.convert(x, "torch", **keywords).tolist() == x.tolist()
    assert ab.convert(x[::-1], "torch", copy=False).data_ptr() == x[::-1].ctypes.data
