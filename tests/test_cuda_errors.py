"""What goes wrong in CUDA's driver, through a stub: named, with a remedy, nothing left behind."""

from __future__ import annotations

import pickle
import sys

import pytest

from arraybridge.kernels import cuda
from arraybridge.kernels.cuda import build, context, driver

from .support import stub_driver
from .support.launches import DST, POPPED, PUSHED, SRC, TRANSPOSED, copied
from .support.stub_driver import Stub


@pytest.fixture
def stub(tmp_path):
    """Two devices, nothing on disk, no compiler."""
    with stub_driver.emulated(tmp_path / "kernels", (9, 0), (8, 0)) as stub:
        yield stub


class TestErrors:
    @pytest.mark.parametrize(
        "call",
        [
            *("cuInit", "cuDeviceGet", "cuDeviceGetAttribute", "cuDevicePrimaryCtxRetain"),
            *("cuLinkCreate", "cuLinkAddData", "cuLinkComplete"),
            *("cuLibraryLoadData", "cuLibraryGetKernel", "cuKernelGetFunction"),
            *("cuCtxGetCurrent", PUSHED, "cuLaunchKernel", "cuThreadExchangeStreamCaptureMode"),
        ],
    )
    def test_each_is_named_and_nothing_is_left(self, stub, call):
        stub.fail[call] = 2
        with pytest.raises(cuda.CUDAMemoryError) as caught:
            copied(stub)
        error = caught.value
        assert isinstance(error, MemoryError)
        assert isinstance(error, cuda.CUDAError)
        assert (error.call, error.code) == (call, 2)
        assert f"{call}: CUDA_ERROR_OUT_OF_MEMORY (2), out of memory" in str(error)
        assert "free memory of the device" in str(error).lower()
        assert stub.stack == []
        assert not stub.links
        assert call in ("cuKernelGetFunction", "cuLaunchKernel") or not stub.libraries
        del stub.fail[call]
        assert "cuLaunchKernel" in copied(stub)  # it works again
        assert len(stub.libraries) == 1

    def test_a_failing_pop_does_not_hide_the_first_error(self, stub):
        stub.fail |= {"cuLinkCreate": 2, POPPED: 201}
        with pytest.raises(cuda.CUDAMemoryError, match="cuLinkCreate"):
            copied(stub)

    def test_numbers_where_the_driver_has_no_name(self, stub):
        stub.fail["cuLaunchKernel"] = 12345
        with pytest.raises(cuda.CUDAError, match=r"^cuLaunchKernel: error 12345$"):
            copied(stub)

    def test_by_number_where_names_fail_too(self, stub):
        stub.fail |= {"cuInit": 2, "cuGetErrorName": 1, "cuGetErrorString": 1}
        with pytest.raises(cuda.CUDAMemoryError, match=r"^cuInit: error 2\. "):
            copied(stub)

    def test_no_such_device(self, stub):
        for wrong in (2, -1):
            with pytest.raises(cuda.CUDAError, match=f"device {wrong}, devices here: 2") as caught:
                copied(stub, device=wrong)
            assert (caught.value.call, caught.value.code) == ("cuDeviceGet", 101)
        assert not stub.retained

    @pytest.mark.parametrize(
        ("code", "advice"),
        [
            (3, "forked child"),
            (35, "525"),
            (100, "CUDA_VISIBLE_DEVICES"),
            (222, "525"),
            (700, "compute-sanitizer"),
            (803, "restart"),
            (900, "pass the stream that captures"),
        ],
    )
    def test_advice(self, stub, code, advice):
        stub.fail["cuInit"] = code
        with pytest.raises(cuda.CUDAError, match=advice):
            copied(stub)

    def test_the_linkers_words(self, stub, monkeypatch):
        def complain(number, options, values, state):
            import ctypes

            log, _ = (ctypes.c_void_p * 2).from_address(values)
            ctypes.memmove(log, b"ptxas fatal: no\0", 16)
            Stub.cuLinkCreate(stub, number, options, values, state)

        stub.cuLinkCreate = complain
        stub.fail["cuLinkComplete"] = 218
        with pytest.raises(cuda.CUDAError, match="The linker said: ptxas fatal: no"):
            copied(stub)

    def test_they_can_be_pickled(self):
        error = driver.CUDAMemoryError("cuX: no", "cuX", 2)
        again = pickle.loads(pickle.dumps(error))
        assert (str(again), again.call, again.code) == ("cuX: no", "cuX", 2)
        assert type(again) is driver.CUDAMemoryError

    @pytest.mark.parametrize(
        ("wrong", "error", "message"),
        [
            ({"dst": 0}, ValueError, "NULL"),
            ({"src": 0}, ValueError, "NULL"),
            ({"itemsize": 0}, ValueError, "0 bytes"),
            ({"shape": (300, -400)}, ValueError, "extents"),
            ({"shape": (300,)}, ValueError, "one stride an axis"),
            ({"src_strides": (4, 2**64)}, OverflowError, "too (big|large)"),
            ({"dst": "x"}, TypeError, "unsupported operand|not all arguments"),
            ({"shape": [300, 400]}, TypeError, "unhashable"),
        ],
    )
    def test_bad_input(self, stub, wrong, error, message):
        shape, dst_strides, src_strides, itemsize = TRANSPOSED
        given = {
            "dst": DST,
            "src": SRC,
            "shape": shape,
            "dst_strides": dst_strides,
            "src_strides": src_strides,
            "itemsize": itemsize,
        }
        with pytest.raises(error, match=message):
            cuda.copy(**given | wrong)
        assert not stub.called("cuLaunchKernel")


class TestDriver:
    def test_too_old(self, stub):
        stub.version = 11080
        cuda._forget()
        assert "too old: it has CUDA 11.8" in str(cuda.unavailable())
        with pytest.raises(cuda.CUDAError, match="too old") as caught:
            copied(stub)
        assert caught.value.code == 35
        assert not stub.called("cuInit")

    def test_a_function_that_is_missing(self, monkeypatch, tmp_path):
        monkeypatch.setenv("ARRAYBRIDGE_CACHE_DIR", str(tmp_path))
        monkeypatch.setattr(build, "ptx", stub_driver.ptx)
        with (
            stub_driver.installed(Stub(missing=("cuLibraryLoadData",))) as stub,
            pytest.raises(cuda.CUDAError, match=r"cuLibraryLoadData: .*no such function"),
        ):
            copied(stub)

    def test_none(self, monkeypatch):
        monkeypatch.setattr(driver, "_NAMES", {sys.platform: ("libno-such-driver.so.1",)})
        driver.install(None)
        assert "no NVIDIA driver (libno-such-driver.so.1" in str(cuda.unavailable())
        with pytest.raises(cuda.CUDAError, match="install NVIDIA's driver") as caught:
            cuda.copy(DST, SRC, *TRANSPOSED)
        assert caught.value.code is None
        driver.install(None)

    def test_turned_off(self, stub, monkeypatch):
        cuda._forget()
        monkeypatch.setenv("ARRAYBRIDGE_NO_KERNELS", "1")
        assert cuda.unavailable() == "ARRAYBRIDGE_NO_KERNELS is set"
        cuda._forget()

    def test_no_numba(self, stub, monkeypatch):
        import importlib.util

        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
        cuda._forget()
        assert "pip install numba-cuda" in str(cuda.unavailable())
        cuda._forget()

    def test_what_there_is(self, stub):
        pytest.importorskip("numba_cuda")
        assert cuda.unavailable() is None
        assert set(stub.names) <= {"cuDriverGetVersion"}

    def test_every_function_is_there(self, stub):
        for name in driver.FUNCTIONS:
            assert driver.installed().address(name)
        with pytest.raises(AttributeError):
            _ = driver.installed().cuNoSuchThing

    def test_memory_of_another_device(self, stub):
        stub.pointers |= {range(DST, DST + 2**21): 1, range(SRC, SRC + 2**21): 0}
        for _ in range(2):
            with pytest.raises(ValueError, match=f"{DST:#x} is CUDA device 1's"):
                copied(stub, device=0)
            assert not stub.called("cuLaunchKernel")
        stub.pointers[range(DST, DST + 2**21)] = 0
        copied(stub, device=0)
        asked = len(stub.called("cuPointerGetAttribute"))
        assert "cuPointerGetAttribute" not in copied(stub, device=0)
        assert len(stub.called("cuPointerGetAttribute")) < asked

    @pytest.mark.parametrize("kind", ["managed", "unknown"])
    def test_memory_that_several_can_have(self, stub, kind):
        if kind == "managed":
            stub.pointers[range(DST, DST + 2**21)] = 1
            stub.managed.add(range(DST, DST + 2**21))
        assert "cuLaunchKernel" in copied(stub, device=0)

    def test_device_of(self, stub):
        stub.pointers[range(4096, 8192)] = 1
        assert context.device_of(5000) == 1
        with pytest.raises(cuda.CUDAError, match="cuPointerGetAttribute"):
            context.device_of(9000)
