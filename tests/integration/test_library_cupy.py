"""CuPy. What needs no device is tested wherever CuPy is installed, the rest on one."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

cupy = pytest.importorskip("cupy", exc_type=ImportError)

import arraybridge as ab  # noqa: E402
from arraybridge import dlpack  # noqa: E402
from arraybridge.libraries.cupy.exchange import LIBRARY  # noqa: E402
from arraybridge.libraries.numpy.exchange import LIBRARY as NUMPY  # noqa: E402
from tests.support.arrays import NUMBERS, layouts  # noqa: E402


def relabelled(array: np.ndarray) -> dlpack.ManagedTensor:
    """Host memory under a device's name: enough for what only reads descriptions."""
    tensor = NUMPY.export(array)
    tensor.device = ab.Device(ab.DeviceType.CUDA)
    return tensor


@pytest.mark.parametrize("layout", layouts())
def test_a_view_of_every_layout(layout: str) -> None:
    tensor = relabelled(layouts()[layout])
    x = LIBRARY.wrap(tensor)
    assert type(x) is cupy.ndarray
    info = ab.inspect(x)
    assert (info.library, info.shape, info.dtype) == ("cupy", tensor.shape, tensor.dtype)
    if info.size:
        assert (info.strides, info.pointer) == (tensor.strides, tensor.pointer)


@pytest.mark.parametrize("dtype", [*NUMBERS, "bfloat16"])
def test_the_record_is_its_set_of_dtypes(dtype: str) -> None:
    if dtype not in LIBRARY.accepts.dtypes:
        pytest.skip(f"{dtype} came with CuPy 14")
    if dtype == "bfloat16":
        dtype = pytest.importorskip("ml_dtypes").bfloat16
    array = np.arange(6).astype(dtype)
    x = LIBRARY.wrap(relabelled(array))
    assert x.dtype == array.dtype
    assert ab.inspect(x).dtype == ab.inspect(array).dtype


def test_the_owner_lives_as_long_as_the_array() -> None:
    array = np.arange(8.0)
    owner = weakref.ref(array)
    x = LIBRARY.wrap(relabelled(array))
    part = x[2:]
    del array, x
    gc.collect()
    assert owner() is not None
    del part
    gc.collect()
    assert owner() is None
