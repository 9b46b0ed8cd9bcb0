"""array-api-strict: NumPy's memory both ways, fewer dtypes, devices that stand for accelerators."""

from __future__ import annotations

import array_api_strict as xp
import numpy as np
import pytest

import arraybridge as ab
from tests.support.arrays import same
from tests.support.processes import python


class Subclass(np.ndarray):
    pass


def test_a_subclass_becomes_a_plain_array() -> None:
    for _ in range(2):  # it registers a fast path, which does not apply
        x = ab.convert(np.ones((2, 2)).view(Subclass), "array_api_strict")
        assert type(x._array) is np.ndarray


class TestDevices:
    """``device1`` and its kin, which are not the CPU although NumPy holds their memory."""

    place = (ab.DeviceType.EXT_DEV, 1)

    def test_transfer_to_one(self) -> None:
        array = np.arange(6.0).reshape(2, 3)[:, ::-2]
        x = ab.convert(array, "array_api_strict", device=self.place)
        assert x.device == xp.Device("device1")
        assert same(x._array, array)
        assert not np.shares_memory(x._array, array)

    def test_one_without_64_bits_refuses_them(self) -> None:
        index = xp.__array_namespace_info__().devices().index(xp.Device("no_float64"))
        with pytest.raises(ab.ConversionError, match="does not support dtype"):
            ab.convert(np.ones(3), "array_api_strict", device=f"ext_dev:{index}")
        x = ab.convert(np.ones(3, "f4"), "array_api_strict", device=f"ext_dev:{index}")
        assert x.device == xp.Device("no_float64")

    def test_one_that_does_not_exist(self) -> None:
        with pytest.raises(ab.ConversionError, match="no ext_dev:99"):
            ab.convert(np.ones(3), "array_api_strict", device="ext_dev:99")
        arrays = ab.namespace(ab.from_dlpack(xp.ones(3)))
        for device in ("cuda", "cuda:1", "ext_dev:0", "ext_dev:99", ab.Device(3)):
            for make in (arrays.zeros, arrays.asarray):
                with pytest.raises(ab.ConversionError, match=r"no .*: it has cpu and ext_dev:1 to"):
                    make(2, device=device)
        assert arrays.zeros(2, device=self.place).native.device == xp.Device("device1")


def test_an_older_standard_in_force_changes_nothing() -> None:
    """Its own ``__dlpack__`` refuses ``max_version`` then."""
    xp.set_array_api_strict_flags(api_version="2022.12")
    try:
        x = ab.convert(np.arange(3), "array_api_strict")
        assert same(ab.convert(x, "numpy"), np.arange(3))
        assert ab.convert(x, "torch").tolist() == [0, 1, 2]
    finally:
        xp.reset_array_api_strict_flags()


@pytest.mark.parametrize("flags", [{"enabled_extensions": []}, {"api_version": "2021.12"}], ids=str)
def test_flags_may_be_set_before_the_namespace_is_made(flags: dict[str, object]) -> None:
    code = """
import sys
import array_api_strict as strict
strict.set_array_api_strict_flags(**eval(sys.argv[1]))
import arraybridge as ab
x = ab.from_dlpack(strict.asarray([[4.0, 0.0], [0.0, 9.0]]))
xp = ab.namespace(x)
assert float(xp.sum(x)) == 13
strict.reset_array_api_strict_flags()
assert float(xp.linalg.det(x)) == 36
"""
    python(code, repr(flags), flags=("-W", "error", "-W", "ignore::UserWarning"))


def test_arrays_compute_and_the_library_refuses_what_it_refuses() -> None:
    x = ab.from_dlpack(xp.reshape(xp.arange(6.0), (2, 3)))
    arrays = ab.namespace(x)
    assert arrays.__name__ == "arraybridge.xp.array_api_strict"
    y = arrays.sum(2 * x[:, ::-1] + arrays.asarray([np.ones(3)]), axis=0)
    assert ab.convert(y, "numpy").tolist() == [16.0, 12.0, 8.0]
    x[0, :] = 1.0
    assert ab.convert(arrays.linalg.trace(x[:, :2] @ x[:, :2].T), "numpy") == 27
    with pytest.raises(TypeError):
        x + arrays.astype(x, arrays.int64)
    with xp.ArrayAPIStrictFlags(enabled_extensions=["fft"]), pytest.raises(RuntimeError):
        arrays.linalg.det(arrays.eye(2))


def test_devices_do_not_depend_on_flags() -> None:
    """The list of them is asked of a function that older versions of the standard lack."""
    with xp.ArrayAPIStrictFlags(api_version="2022.12"):
        x = xp.ones(2, device=xp.Device("device1"))
        assert str(ab.inspect(x).device) == "ext_dev:1"
        assert ab.convert(x, "numpy", device="cpu").tolist() == [1, 1]
