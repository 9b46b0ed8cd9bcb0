"""What a consumer gets from an Array: by the quick ways what the slow ones give, errors too."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import arraybridge as ab
from arraybridge.dlpack import DataType, Device

from .support.doors import outcome
from .support.optional import optional
from .test_doors import numpys, tensors

torch = optional("torch")

QUIET = pytest.mark.filterwarnings(
    "ignore::PendingDeprecationWarning", "ignore:.*complex32", "ignore:ComplexHalf"
)


def arrays():
    """Arrays over everything odd that one can be made of, and what they are made of."""
    jax = pytest.importorskip("jax")
    strict = pytest.importorskip("array_api_strict")
    jnp = jax.numpy
    deleted = ab.from_dlpack(jnp.ones(5) + 1)
    deleted.native.delete()
    jaxes = [
        ("jax", jnp.ones(3)),
        ("jax bfloat16", jnp.ones(3, "bfloat16")),
        ("jax 0-d", jnp.ones(())),
        ("jax empty", jnp.ones((0, 3))),
        ("jax transposed", jax.jit(lambda x: x.T)(jnp.ones((3, 4)))),
        ("strict", strict.asarray([1.0])),
        ("strict field", strict.asarray(np.zeros(3, [("a", "D"), ("b", "f8")])["a"])),
    ]
    for name, x in [*numpys(), *tensors(), *jaxes]:
        try:
            yield name, ab.from_dlpack(x)
        except (ab.ConversionError, TypeError):
            continue
    yield "jax deleted", deleted
    yield "bare", ab.from_dlpack(np.ones(3).__dlpack__())
    yield "of Arrow", ab.from_dlpack(pytest.importorskip("pyarrow").array([1, 2]))


@QUIET
@pytest.mark.parametrize("copy", [None, False, True])
def test_as_numpy_is_what_convert_gives(copy):
    for name, x in arrays():
        try:
            pointer = x.info.pointer
        except ab.ConversionError:
            pointer = None
        planned = outcome(lambda x=x: ab.convert(x, "numpy", copy=copy), pointer)
        for _ in range(2):
            given = outcome(lambda x=x: x.__array__(copy=copy), pointer)
            assert given == planned, name
        if planned[0] != "refuse":
            assert outcome(lambda x=x: np.asarray(x, copy=copy), pointer) == planned, name


def test_a_copy_that_is_no_boolean():
    for x in (ab.from_dlpack(np.ones(3)), ab.from_dlpack(torch.ones(3))):
        with pytest.raises(ValueError, match="copy"):
            x.__array__(copy="no")


def test_numpys_own_array_is_given():
    x = np.arange(3.0)
    given = np.asarray(ab.from_dlpack(x))
    if sys.version_info < (3, 12):
        assert given is x
    else:  # NumPy asks for the buffer first
        assert given.ctypes.data == x.ctypes.data


def test_dtypes_and_devices_say_what_they_are():
    assert DataType("bfloat16").__dlpack_data_type__() == (4, 16, 1)
    assert Device("cuda:1").__dlpack_device__() == (2, 1)
    said = (*DataType("float32x4").__dlpack_data_type__(), *Device("cpu").__dlpack_device__())
    assert {type(part) for part in said} == {int}
    device = pytest.importorskip("tvm_ffi").device("cuda", 1)
    assert (device.dlpack_device_type(), device.index) == Device("cuda:1").__dlpack_device__()
