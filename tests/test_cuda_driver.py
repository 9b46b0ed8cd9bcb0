"""CUDA's driver through a stub: which calls, in which order, on which stream, and errors."""

from __future__ import annotations

import os
import threading
from time import sleep

import pytest

from arraybridge.kernels import cuda
from arraybridge.kernels.cuda import launch
from arraybridge.machine_code import tabled

from .support import stub_driver
from .support.launches import DST, FLAT, POPPED, PUSHED, SRC, TRANSPOSED, copied, queue_of
from .support.processes import python


@pytest.fixture
def stub(tmp_path):
    """Two devices, nothing on disk, no compiler."""
    with stub_driver.emulated(tmp_path / "kernels", (9, 0), (8, 0)) as stub:
        yield stub


class TestCalls:
    def test_the_first_copy(self, stub):
        assert copied(stub, device=1) == [
            *("cuDriverGetVersion", "cuInit"),
            *("cuDeviceGet", "cuDeviceGetAttribute", "cuDeviceGetAttribute"),
            "cuDevicePrimaryCtxRetain",
            *(PUSHED, "cuThreadExchangeStreamCaptureMode"),
            *("cuLinkCreate", "cuLinkAddData", "cuLinkComplete", "cuLinkDestroy"),
            *("cuThreadExchangeStreamCaptureMode", POPPED),
            *(PUSHED, "cuThreadExchangeStreamCaptureMode"),
            *("cuLibraryLoadData", "cuLibraryGetKernel"),
            *("cuThreadExchangeStreamCaptureMode", POPPED),
            *(PUSHED, "cuThreadExchangeStreamCaptureMode", "cuKernelGetFunction"),
            *("cuThreadExchangeStreamCaptureMode", POPPED),
            # Whose memory it is.
            *(PUSHED, *["cuThreadExchangeStreamCaptureMode"] * 2, POPPED),
            *(PUSHED, "cuLaunchKernel", POPPED),
        ]
        assert stub.stack == []
        assert stub.retained == {1: 1}
        assert not stub.links

    def test_the_next_one(self, stub):
        copied(stub)
        assert copied(stub) == [PUSHED, "cuLaunchKernel", POPPED]
        stub.stack.append(stub.context(0))
        assert copied(stub) == ["cuLaunchKernel"]
        stub.stack.append(stub.context(1))
        assert copied(stub) == [PUSHED, "cuLaunchKernel", POPPED]
        assert stub.stack == [stub.context(0), stub.context(1)]

    def test_another_layout_of_the_same_kernel_is_not_loaded_again(self, stub):
        copied(stub)
        layout = ((400, 800), (3200, 4), (4, 1600), 4)
        assert copied(stub, layout) == [PUSHED, "cuLaunchKernel", POPPED]

    def test_one_library_serves_devices_of_a_capability(self, stub):
        stub.capabilities = ((9, 0),) * 3
        for device in range(3):
            copied(stub, device=device)
        assert len(stub.libraries) == 1
        assert [context for context, _ in stub.functions.values()] == [0x1000, 0x2000, 0x3000]

    def test_other_capabilities_have_their_own(self, stub):
        for device in range(2):
            copied(stub, device=device)
        sm90, sm80 = stub.libraries.values()
        assert b"sm_90" in sm90
        assert b"sm_80" in sm80

    def test_contiguous_is_the_drivers_copy(self, stub):
        copied(stub, FLAT)
        assert copied(stub, FLAT) == [PUSHED, "cuMemcpyDtoDAsync", POPPED]
        (call,) = stub.called("cuMemcpyDtoDAsync")
        assert call.arguments == (DST, SRC, 300 * 400 * 4, 1)
        assert copied(stub, FLAT, stream=stub.stream()) == [
            *(PUSHED, "cuStreamGetCtx", "cuMemcpyDtoDAsync", POPPED)
        ]

    def test_nothing_to_copy(self, stub):
        assert copied(stub, ((3, 0), (4, 4), (4, 4), 4)) == []
        cuda.copy(0, 0, (0,), (4,), (4,), 4)

    def test_offsets_and_arguments(self, stub):
        layout = ((3, 5000), (-5000, 1), (5000, 1), 1)  # rows turned round
        copied(stub, layout)
        seen = []
        stub.cuLaunchKernel = lambda *arguments: seen.append(stub.launched(*arguments))
        copied(stub, layout)
        (expected,) = cuda.plans(*layout, DST, SRC)
        assert (expected.dst_offset, expected.src_offset) == (-10000, 10000)
        plan = expected._replace(dst_offset=0, src_offset=0)
        assert seen == [(plan, DST - 10000, SRC + 10000)]


class TestThreads:
    def test_that_copy_the_same_for_the_first_time(self, stub):
        at_once = threading.Barrier(4)
        errors = []

        def work():
            try:
                at_once.wait()
                cuda.copy(DST, SRC, *TRANSPOSED)
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors
        assert len(stub.called("cuLaunchKernel")) == 4
        assert len(stub.libraries) == len(stub.functions) == 1
        assert stub.retained == {0: 1}

    def test_that_launch_at_the_same_time_keep_their_addresses(self, stub):
        copied(stub)
        seen = []

        def launch(*arguments):
            sleep(0)  # another thread's turn
            seen.append((*stub.launched(*arguments)[1:], arguments[8]))

        stub.cuLaunchKernel = launch
        streams = [stub.stream() for _ in range(4)]

        def work(stream):
            for n in range(50):
                cuda.copy(DST + 16 * n, SRC + stream * 16, *TRANSPOSED, stream)

        threads = [threading.Thread(target=work, args=(stream,)) for stream in streams]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        expected = [(DST + 16 * n, SRC + s * 16, s) for s in streams for n in range(50)]
        assert sorted(seen) == sorted(expected)

    def test_layouts_that_are_forgotten_can_still_be_launched(self, stub, monkeypatch):
        monkeypatch.setattr(cuda, "KEPT", 2)
        for n in range(5):
            copied(stub, ((300, 400 + 4 * n), (1600 + 16 * n, 4), (4, 1200), 4))
        assert len(cuda._prepared) == 2

    @pytest.mark.parametrize("by", ["stored code", "llvmlite", "ctypes"])
    def test_every_way_to_launch_is_the_same(self, stub, monkeypatch, by):
        def no_code(functions):
            raise ImportError("no llvmlite")

        if by == "ctypes":
            monkeypatch.setattr(launch.launcher, "launcher", no_code)
        if by == "llvmlite":
            monkeypatch.setattr(tabled, "CODE", {})
        for layout in (TRANSPOSED, FLAT):
            copied(stub, layout)
            name = "cuLaunchKernel" if layout is TRANSPOSED else "cuMemcpyDtoDAsync"
            assert copied(stub, layout) == [PUSHED, name, POPPED]
            (call,) = stub.called(name)
            for code in (1, 700):
                stub.fail[name] = code
                with pytest.raises(cuda.CUDAError, match=name) as caught:
                    cuda.copy(DST, SRC, *layout)
                assert (caught.value.call, caught.value.code) == (name, code)
                del stub.fail[name]
            for failing in (PUSHED, "cuCtxGetCurrent"):
                stub.fail[failing] = 201
                with pytest.raises(cuda.CUDAError, match=failing):
                    cuda.copy(DST, SRC, *layout)
                del stub.fail[failing]
            assert stub.stack == []
            stub.fail[POPPED] = 201
            with pytest.raises(cuda.CUDAError, match=POPPED):
                cuda.copy(DST, SRC, *layout)
            del stub.fail[POPPED]
            stub.stack.clear()
            with pytest.raises(cuda.CUDAError) as caught:
                cuda.copy(DST, SRC, *layout, stream=stub.stream(1))
            assert caught.value.code == 400
            assert queue_of(call) == 1
        assert stub.stack == []
        kind = type(launch.enqueuer()).__name__
        assert kind == ("function" if by == "ctypes" else "builtin_function_or_method")

    @pytest.mark.parametrize(
        "wrong", [(), (1, 2, 3), (1, 2, 3, "4"), (1, None, 3, 4), (2**70,) * 4]
    )
    def test_the_builtin_refuses_what_is_no_number(self, stub, wrong):
        copied(stub)
        stub.calls.clear()
        with pytest.raises((TypeError, OverflowError)):
            launch.enqueuer()(*wrong)
        assert not stub.calls


FORKED = """
import os, sys
from arraybridge.kernels import cuda
from arraybridge.kernels.cuda import build, driver
from tests.support import stub_driver
build.ptx = stub_driver.ptx
stub = stub_driver.Stub()
driver.install(driver.Driver(stub.lookup))
args = 1 << 40, 1 << 41, (300, 400), (1600, 4), (4, 1200), 4
if sys.argv[1] == "used":
    cuda.copy(*args)
child = os.fork()
if not child:
    try:
        cuda.copy(*args)
        print("copied", flush=True)
    except cuda.CUDAError as error:
        print(error.code, "spawn" in str(error), str(cuda.unavailable())[:30], flush=True)
    os._exit(0)
os.waitpid(child, 0)
cuda.copy(*args)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.parametrize(
    ("before", "said"),
    [("used", "3 True cuInit: CUDA cannot be used in\n"), ("unused", "copied\n")],
)
def test_forked(before, said, tmp_path):
    env = {"ARRAYBRIDGE_CACHE_DIR": str(tmp_path)}
    flags = ("-W", "error", "-W", "ignore::DeprecationWarning")
    assert python(FORKED, before, env=env, flags=flags) == said


def test_planning_and_describing_touch_no_driver_and_no_compiler():
    python(
        """
import sys
from arraybridge.kernels import cuda
from arraybridge.kernels.cuda import driver
def none(): raise AssertionError("the driver was asked for")
driver._load = none
assert cuda.describe((300, 400), (1600, 4), (4, 1200), 4) == "cuda tile 4 bytes"
assert cuda.describe((300, 400), (1600, 4), (1600, 4), 4) == "cuda memcpy"
assert cuda.describe((0, 400), (1600, 4), (1600, 4), 4) == "nothing"
assert not {"numba", "llvmlite", "numba_cuda"} & set(sys.modules)
"""
    )
