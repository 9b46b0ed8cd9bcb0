"""Legacy capsules cannot say whether their memory may be written: it is read-only on every way."""

import datetime
import importlib

import numpy as np
import pytest

import arraybridge as ab
from arraybridge import dlpack
from tests.support.exporters import Exported, LegacyOnly, Owner
from tests.support.producers import Managed

jnp = pytest.importorskip("jax.numpy")


def ways():
    """Each way in which a legacy capsule arrives, with the memory behind it."""
    x = jnp.arange(4.0)
    y = np.arange(4.0, dtype="f4")
    owner = Owner()
    yield "a capsule of JAX", lambda: x.__dlpack__()
    yield "a capsule of NumPy", lambda: y.__dlpack__()
    yield "a producer", lambda: LegacyOnly(y)
    yield "an Array on a capsule", lambda: ab.from_dlpack(x.__dlpack__())
    yield "an Array on a producer", lambda: ab.from_dlpack(LegacyOnly(y))
    yield "a tensor of the core", lambda: dlpack.from_capsule(x.__dlpack__())
    yield "a tensor that was acquired", lambda: dlpack.acquire(LegacyOnly(y))
    yield "an exporter", lambda: Exported(owner.tensor, versioned=False)
    yield "a struct", lambda: Managed(versioned=False).capsule()


WAYS = pytest.mark.parametrize("make", [pytest.param(w, id=name) for name, w in ways()])


@WAYS
def test_nothing_is_written_to_it(make):
    with pytest.raises(ab.ConversionError, match="read-only"):
        ab.copyto(make(), np.zeros(ab.inspect(make()).shape, "f4"))


def test_who_knows_says_so():
    x = np.arange(3.0)
    tensor = dlpack.from_capsule(x.__dlpack__())
    tensor.readonly = False
    ab.convert(tensor, "numpy")[0] = 5
    assert x[0] == 5


@pytest.mark.parametrize("name", ["numpy", "torch", "jax", "array_api_strict"])
def test_asarray_takes_them_by_the_same_rule(name):
    pytest.importorskip(name)
    xp = importlib.import_module(f"arraybridge.xp.{name}")
    x = np.arange(4.0, dtype="f4")
    for asarray in (xp.asarray, xp.native.asarray):
        for capsule in (x.__dlpack__(), x.__dlpack__(max_version=(1, 0))):
            legacy = "versioned" not in repr(capsule)
            y = asarray(capsule)
            assert ab.inspect(y).shape == (4,)
            assert not legacy or ab.inspect(y).readonly or ab.inspect(y).pointer != x.ctypes.data
    assert ab.inspect(xp.asarray([x.__dlpack__(), x.__dlpack__()])).shape == (2, 4)
    with pytest.raises(TypeError, match="DLPack capsule"):
        xp.asarray(datetime.datetime_CAPI)
