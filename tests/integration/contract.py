"""What holds for each library: a file `test_library_NAME.py` adds what is special to it.

Arrays are made, read and written by the library's own functions, which `tests.matrix` has. Every
pair of libraries is that matrix's; what is left of a view whose source loses its memory is in
`tests/properties/test_lifetimes.py`.
"""

from __future__ import annotations

import contextlib
import gc
import re
import sys
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import arraybridge as ab
from arraybridge.core.registry import library_named
from arraybridge.dlpack import Device, DeviceType
from tests.matrix.libraries import native, numbers
from tests.matrix.run import versions
from tests.support.arrays import NUMBERS, layouts, littered, same
from tests.support.probe import DTYPES, aligned, described, every_byte

SHAPE = (3, 4)
PINS = (Path(__file__).parents[2] / "requirements" / "pins.txt").read_text()


class LibraryContract:
    """Conversions from and to one library on the CPU."""

    name = ""

    @pytest.fixture(autouse=True)
    def _loaded(self) -> Iterator[None]:
        self.native = native(self.name)
        jax = sys.modules.get("jax")
        if jax is not None:
            jax.config.update("jax_enable_x64", False)  # `native` switches it on for the process
        with contextlib.nullcontext() if jax is None else jax.enable_x64(True):
            self.accepts = library_named(self.name).accepts
            yield

    def array(self) -> np.ndarray:
        """An array that the library can view, if it views any."""
        dtype = "float32" if "float32" in self.accepts.dtypes else "uint8"
        return aligned(numbers(dtype, SHAPE))

    def shares(self, x: Any, array: np.ndarray) -> bool:
        """Whether an array of the library has the memory of NumPy's."""
        return ab.inspect(x).pointer == array.ctypes.data

    def test_the_record_is_of_the_installed_version(self):
        installed = re.split(r"\+|\.post", versions([self.name])[self.name])[0]
        if f"=={installed}" not in PINS:
            pytest.skip("another version than the pinned one")
        assert self.accepts.tested == installed

    def test_only_tvm_numbers_cpus(self):
        route = ab.explain(self.array(), self.name, device="cpu:1")
        assert (route.kind == "refuse") == (self.name != "tvm_ffi")

    @pytest.mark.parametrize("dtype", NUMBERS)
    def test_each_dtype_there_and_back(self, dtype):
        array = numbers(dtype, SHAPE)
        if dtype not in self.accepts.dtypes:
            assert ab.explain(array, self.name).kind == "refuse"
            with pytest.raises(ab.ConversionError, match=f"no {dtype}"):
                ab.convert(array, self.name)
            return
        for _ in range(2):  # planned, then by the table
            x = ab.convert(array, self.name)
            info = ab.inspect(x)
            assert (info.library, info.shape, info.dtype_name) == (self.name, SHAPE, dtype)
            assert info.pointer in (self.native.pointer(x), info.pointer)
            assert same(self.native.values(x), array)
            assert same(ab.convert(x, "numpy"), array)

    @pytest.mark.parametrize("copy", [None, True, False])
    @pytest.mark.parametrize("layout", layouts())
    def test_each_layout_goes_as_explained(self, layout, copy):
        array = layouts()[layout]
        if self.name == "pillow":
            array = layouts("uint8")[layout]
        for _ in range(2):
            route = ab.explain(array, self.name, copy=copy)
            if route.kind == "refuse":
                with pytest.raises(ab.ConversionError):
                    ab.convert(array, self.name, copy=copy)
                continue
            assert copy is None or route.kind == ("copy" if copy else "view") or not array.size
            x = ab.convert(array, self.name, copy=copy)
            assert same(ab.convert(x, "numpy"), array)
            if array.size:
                assert self.shares(x, array) == (route.kind == "view")

    @pytest.mark.parametrize("to", ["numpy", "torch"])
    def test_its_arrays_go_as_explained(self, to):
        pytest.importorskip(to)
        values = self.array()
        x = self.native.make(values)
        for copy in (None, False, True, None):
            route = ab.explain(x, to, copy=copy)
            if route.kind == "refuse":
                with pytest.raises(ab.ConversionError):
                    ab.convert(x, to, copy=copy)
                continue
            found = ab.convert(x, to, copy=copy)
            assert same(np.asarray(found), values)
            shared = ab.inspect(found).pointer == ab.inspect(x).pointer
            assert shared == (route.kind == "view")
            if route.kind == "view":
                assert ab.inspect(found).readonly == ab.inspect(x).readonly

    def test_its_memory_outlives_its_array(self):
        values = self.array()
        for _ in range(3):
            view = ab.convert(self.native.make(values), "numpy")
            littered(values.nbytes)
            assert same(view, values)

    def test_a_view_of_an_array_holds_it_and_no_longer(self):
        for _ in range(3):
            array = self.array()
            if ab.explain(array, self.name, copy=False).kind == "refuse":
                return
            held = weakref.ref(array if array.base is None else array.base)  # the memory
            view = ab.convert(array, self.name, copy=False)
            expected = array.copy()
            del array
            littered(expected.nbytes)
            assert held() is not None
            assert same(ab.convert(view, "numpy"), expected)
            del view
            gc.collect()
            assert held() is None

    def test_read_only_memory_is_not_writable_there(self):
        array = self.array()
        array.flags.writeable = False
        for _ in range(2):
            x = ab.convert(array, self.name)
            assert not self.shares(x, array) or ab.inspect(x).readonly
            assert not ab.convert(x, "numpy").flags.writeable or not self.shares(x, array)
        if not (self.accepts.readonly or self.accepts.copies):
            with pytest.raises(ab.ConversionError, match="read-only"):
                ab.convert(array, self.name, copy=False)
            assert self.shares(ab.convert(array, self.name, alias_readonly=True), array)

    def test_arrays_over_its_own(self):
        values = self.array()
        x = self.native.make(values)
        array = ab.from_dlpack(x)
        assert array.native is x
        assert array.shape == SHAPE
        assert ab.convert(array, self.name) is ab.convert(x, self.name) is x
        assert same(ab.convert(array, "numpy"), values)
        assert same(ab.convert(array + array, "numpy"), values + values)

    def test_adapted_functions_take_and_give_its_arrays(self):
        values = self.array()
        doubled = ab.adapt("numpy")(lambda x: x + x)(self.native.make(values))
        assert ab.inspect(doubled).library == self.name
        assert same(ab.convert(doubled, "numpy"), values + values)


class ImporterContract:
    """The record against the library's own importer of a DLPack tensor."""

    door: Callable[[Any], Any]
    #: The dtypes that the importer is not asked for: it ends the process, or looks at none.
    unasked: frozenset[str] = frozenset()

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_it_takes_the_dtypes_of_the_record(self, dtype):
        if dtype in self.unasked:
            pytest.skip("not asked")
        tensor = every_byte(dtype)
        if dtype in self.accepts.dtypes - self.accepts.copied:
            info = ab.inspect(self.door(tensor))
            assert (info.dtype, info.pointer) == (tensor.dtype, tensor.data)
        else:
            with pytest.raises(Exception):  # noqa: B017, PT011 - the words are the library's
                ab.inspect(self.door(tensor))

    @pytest.mark.parametrize("layout", layouts())
    def test_it_takes_the_layouts_of_the_record(self, layout):
        array = layouts()[layout]
        if array.flags.c_contiguous:
            array = aligned(array)
        if ab.explain(array, self.name, copy=False).kind == "view":
            x = self.door(described(array))
            assert same(self.native.values(x), array)
            assert not array.size or self.shares(x, array)
        else:
            with pytest.raises(Exception):  # noqa: B017, PT011
                self.native.values(self.door(described(array)))

    def test_it_takes_the_ranks_of_the_record(self):
        most = self.accepts.ndim[1]
        array = aligned(np.ones((1,) * most, "f4"))
        assert self.native.shape(self.door(described(array))) == array.shape
        assert most == 64 or self.refuses(described(array[None]))

    def test_it_keeps_read_only_as_the_record_says(self):
        array = aligned(np.arange(3.0))
        x = self.door(described(array, readonly=True))
        assert ab.inspect(x).readonly == self.accepts.readonly

    @pytest.mark.parametrize("kind", ["ROCM", "METAL", "ONEAPI"])
    def test_it_takes_the_devices_of_the_record(self, kind):
        tensor = described(np.ones(3), device=Device(DeviceType[kind], 1))
        if DeviceType[kind] in self.accepts.devices:
            assert ab.inspect(self.door(tensor)).device == tensor.device
        else:
            assert self.refuses(tensor)

    def refuses(self, tensor: Any) -> bool:
        """Whether the importer refuses a tensor."""
        try:
            self.door(tensor)
        except Exception:
            return True
        return False
