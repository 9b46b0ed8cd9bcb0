"""dpnp on its OpenCL CPU device: a real DLPack device that is not the CPU."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from hypothesis import given, settings

from tests.support import coexist

coexist.prepare()  # names the OpenCL driver, before dpnp is loaded
dpnp = pytest.importorskip("dpnp", exc_type=ImportError)
dpctl = pytest.importorskip("dpctl")
if not dpctl.get_num_devices():
    pytest.skip("no SYCL device", allow_module_level=True)

import arraybridge as ab  # noqa: E402
from arraybridge import dlpack  # noqa: E402
from arraybridge.layout import span  # noqa: E402
from arraybridge.libraries.dpnp.exchange import LIBRARY  # noqa: E402
from tests.support.arrays import NUMBERS, same  # noqa: E402
from tests.support.strategies import strided_arrays  # noqa: E402

pytestmark = pytest.mark.heavy

INDICES = {
    "whole": np.s_[:],
    "stepped": np.s_[::2, ::3],
    "offset": np.s_[1:, 2:5],
    "negative": np.s_[1:, ::-2],
    "both negative": np.s_[::-1, ::-1],
    "zero-size": np.s_[:0],
    "0-d": np.s_[2, 3],
}


def block() -> dpnp.ndarray:
    return dpnp.arange(24, dtype="f4").reshape(4, 6)


def test_nothing_crosses_unasked() -> None:
    with pytest.raises(ab.ConversionError, match="pass device='oneapi:0'"):
        ab.convert(np.ones(3), "dpnp")
    with pytest.raises(ab.ConversionError, match="pass device='cpu'"):
        ab.convert(dpnp.ones(3), "numpy")
    with pytest.raises(ab.ConversionError, match="copy=False"):
        ab.convert(dpnp.ones(3), "numpy", device="cpu", copy=False)


@given(strided_arrays(["f4", "c16", "u1"], unaligned=False, readonly=False, max_dims=4))
@settings(max_examples=100, deadline=None)
def test_any_strides_on_the_device(array: np.ndarray) -> None:
    """The same strides over a block on the device, wrapped and exported again."""
    low, high = span(array.shape, array.strides, array.itemsize)
    size = max((high - low) // array.itemsize, 1)
    block = dpnp.arange(size, dtype="f4").astype(array.dtype)
    layout = dlpack.ManagedTensor.adopt(
        ab.inspect(block).pointer - low,
        array.shape,
        ab.inspect(array).dtype,
        owner=block,
        device=ab.Device(14),
        strides=ab.inspect(array).strides,
    )
    x = ab.convert(layout, "dpnp", copy=False)
    host = np.arange(size).astype(array.dtype)
    expected = np.ndarray(array.shape, array.dtype, host, -low, array.strides)
    assert same(np.asarray(x.asnumpy()), expected)
    assert same(ab.convert(LIBRARY.export(x), "dpnp").asnumpy() + 0, expected + 0)


@pytest.mark.parametrize("dtype", [*NUMBERS, "bfloat16"])
def test_the_record_is_its_set_of_dtypes(dtype: str) -> None:
    if dtype == "bfloat16":
        array = np.arange(5).astype(pytest.importorskip("ml_dtypes").bfloat16)
        with pytest.raises(ab.ConversionError, match="dpnp has no bfloat16"):
            ab.convert(array, "dpnp", device="oneapi:0")
    else:
        array = np.arange(5).astype(dtype)
        x = ab.convert(array, "dpnp", device="oneapi:0")
        assert x.dtype == array.dtype
        assert same(ab.convert(x, "numpy", device="cpu"), array)
        core = LIBRARY.export(x)
        assert core.dtype.name == dtype
        assert LIBRARY.wrap(core).dtype == array.dtype


@pytest.mark.parametrize("name", INDICES)
def test_a_view_through_the_core(name: str) -> None:
    """What dpnp's own importer refuses (negative strides) or misreads (an offset) is right."""
    x = block()[INDICES[name]]
    core = LIBRARY.export(x)
    assert core.device == (14, 0)
    y = ab.convert(core, "dpnp", copy=False)
    assert same(np.asarray(y.asnumpy()), np.asarray(x.asnumpy()))
    y[...] = 7
    assert np.all(x.asnumpy() == 7)


def test_its_own_importer_still_miscounts_negative_strides() -> None:
    """Once this fails, the detour by a flat span can go."""

    class Producer:
        def __dlpack_device__(self):
            return 14, 0

        def __dlpack__(self, **_):
            return dlpack.to_capsule(LIBRARY.export(block()[1:, ::-2]))

    with pytest.raises(ValueError, match="can not accommodate"):
        dpnp.from_dlpack(Producer())


def test_description_is_what_the_capsule_says() -> None:
    for index in INDICES.values():
        x = block()[index]
        info, core = ab.inspect(x), LIBRARY.export(x)
        assert info.pointer == core.pointer
        assert (info.shape, info.dtype, info.device) == (core.shape, core.dtype, core.device)
        assert info.size == 0 or info.strides == core.strides


def test_readonly_stays_readonly() -> None:
    x = block()
    x.flags.writable = False
    assert ab.inspect(x).readonly
    y = ab.convert(LIBRARY.export(x), "dpnp")
    assert not y.flags.writable


def test_the_owner_lives_on() -> None:
    x = dpnp.arange(1 << 18)
    core = LIBRARY.export(x[::-1])
    y = ab.convert(core, "dpnp")
    del x, core
    gc.collect()
    reuse = [dpnp.zeros(1 << 18) for _ in range(4)]
    assert int(y[0]) == (1 << 18) - 1
    assert int(y.sum()) == sum(range(1 << 18))
    del reuse


def test_copies_stay_on_the_device() -> None:
    x = block()
    assert ab.convert(x, "dpnp") is x
    y = ab.convert(x.T, "dpnp", copy=True)
    assert ab.inspect(y).device == (14, 0)
    assert ab.inspect(y).c_contiguous
    assert same(y.asnumpy(), np.ascontiguousarray(x.asnumpy().T))
    assert ab.inspect(ab.contiguous(x[:, ::-1])).c_contiguous


@pytest.mark.parametrize("target", ["torch", "jax"])
def test_by_way_of_the_host_to_others(target: str) -> None:
    pytest.importorskip(target)
    x = block()[:, ::-2]
    with pytest.raises(ab.ConversionError, match="device='cpu'"):
        ab.convert(x, target)
    y = ab.convert(x, target, device="cpu")
    assert same(np.asarray(y), x.asnumpy())
    z = ab.convert(y, "dpnp", device="oneapi:0")
    assert same(z.asnumpy(), x.asnumpy())


def test_tvm_ffi_carries_it_there_and_back() -> None:
    pytest.importorskip("tvm_ffi")
    x = block()[:, ::-2]
    y = ab.convert(x, "tvm_ffi")
    assert ab.inspect(y).device == (14, 0)
    z = ab.convert(y, "dpnp")
    z[0, 0] = 99
    assert float(x[0, 0]) == 99
    array = np.arange(3.0)
    moved = ab.convert(ab.convert(array, "tvm_ffi"), "dpnp", device="oneapi:0")
    assert same(moved.asnumpy(), array)


def test_a_part_of_a_device_can_only_be_copied_from() -> None:
    part = dpctl.SyclDevice("0").create_sub_devices(partition=1)[0]
    x = dpnp.ones(3, sycl_queue=dpctl.SyclQueue(part))
    with pytest.raises(ab.ConversionError, match=r"x\.to_device"):
        LIBRARY.export(x)
    assert ab.convert(x, "numpy", device="cpu").tolist() == [1.0, 1.0, 1.0]


def test_a_device_that_is_not_there() -> None:
    with pytest.raises(ab.ConversionError, match="oneapi:77"):
        ab.convert(np.ones(3), "dpnp", device="oneapi:77")
