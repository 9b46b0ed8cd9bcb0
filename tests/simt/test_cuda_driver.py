"""CUDA's driver through a stub: calls, their order and streams, and errors, each with a remedy."""

import os
import pickle
import sys
import threading
import weakref
from importlib import import_module
from time import sleep

import pytest

from arraybridge.kernels import cuda
from arraybridge.kernels.cuda import build, context, driver
from tests.support import stub_driver
from tests.support.processes import python
from tests.support.stub_driver import Call, Stub
from tests.support.threads import in_threads

DST, SRC = 0x7F_0000_0000, 0x7E_0000_0000
#: Transposed; contiguous.
TRANSPOSED = ((300, 400), (1600, 4), (4, 1200), 4)
FLAT = ((300, 400), (1600, 4), (1600, 4), 4)
QUIET = {"cuCtxGetCurrent", "cuGetErrorName", "cuGetErrorString", "cuPointerGetAttribute"}
PUSHED, POPPED = "cuCtxPushCurrent", "cuCtxPopCurrent"


def copied(stub: Stub, layout=TRANSPOSED, **how) -> list[str]:
    """Copy; return what was called, save questions."""
    stub.calls.clear()
    cuda.copy(DST, SRC, *layout, **how)
    return [name for name in stub.names if name not in QUIET]


def queue_of(call: Call) -> int:
    """The stream of a launch or a copy."""
    return call.arguments[8 if call.name == "cuLaunchKernel" else -1]


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
            *(PUSHED, "cuThreadExchangeStreamCaptureMode", "cuKernelGetFunction", "cuFuncLoad"),
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

    @pytest.mark.parametrize(
        ("layout", "most"),
        [
            (((3, 5000), (-5000, 1), (5000, 1), 1), None),  # rows turned round
            (((77, 90), (360, 4), (4, 308), 4), None),
            (((77, 90), (360, 4), (4, 308), 4), 5000),
        ],
        ids=["flipped", "transposed", "in parts"],
    )
    def test_offsets_and_arguments(self, stub, monkeypatch, layout, most):
        """Of each launch; `simt/test_kernels_cuda.py` runs what is planned."""
        plans = import_module("arraybridge.kernels.cuda.plan")
        monkeypatch.setattr(plans, "MAX_PIECES", most or plans.MAX_PIECES)
        plans.plan.cache_clear()
        seen = []
        stub.cuLaunchKernel = lambda *arguments: seen.append(stub.launched(*arguments))
        for dst, src in 2 * [(DST, SRC), (DST + 5 * layout[3], SRC + 3 * layout[3])]:
            seen.clear()
            cuda.copy(dst, src, *layout)
            expected = cuda.plans(*layout, dst, src)
            assert seen == [
                (
                    one._replace(dst_offset=0, src_offset=0),
                    dst + one.dst_offset,
                    src + one.src_offset,
                )
                for one in expected
            ]
            assert any((one.dst_offset, one.src_offset) != (0, 0) for one in expected) or not most
        told = cuda.describe(*layout)
        assert told.endswith(f", in {len(seen)} parts") == (len(seen) > 1)
        plans.plan.cache_clear()

    def test_a_part_that_fails(self, stub, monkeypatch):
        plans = import_module("arraybridge.kernels.cuda.plan")
        monkeypatch.setattr(plans, "MAX_PIECES", 5000)
        plans.plan.cache_clear()
        done = []

        def second_fails(*arguments):
            done.append(arguments)
            if len(done) == 2:
                raise stub_driver.Code(2)

        stub.cuLaunchKernel = second_fails
        with pytest.raises(cuda.CUDAMemoryError) as caught:
            cuda.copy(DST, SRC, (78, 90), (360, 4), (4, 312), 4)
        (note,) = caught.value.__notes__
        assert note.startswith("1 of the ")
        assert "partly written" in note
        plans.plan.cache_clear()


class TestThreads:
    def test_that_copy_the_same_for_the_first_time(self, stub):
        at_once = threading.Barrier(4)

        def work(_):
            at_once.wait()
            cuda.copy(DST, SRC, *TRANSPOSED)

        in_threads(work, range(4))
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

        in_threads(work, streams)
        expected = [(DST + 16 * n, SRC + s * 16, s) for s in streams for n in range(50)]
        assert sorted(seen) == sorted(expected)

    def test_layouts_that_are_forgotten_can_still_be_launched(self, stub, monkeypatch):
        monkeypatch.setattr(cuda, "MAX_CACHED_LAUNCHES", 2)
        for n in range(5):
            copied(stub, ((300, 400 + 4 * n), (1600 + 16 * n, 4), (4, 1200), 4))
        assert len(cuda._prepared) == 2

    def test_calls_that_fail(self, stub):
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
            assert queue_of(call) == 1


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


class TestErrors:
    @pytest.mark.parametrize(
        "call",
        [
            *("cuInit", "cuDeviceGet", "cuDeviceGetAttribute", "cuDevicePrimaryCtxRetain"),
            *("cuLinkCreate", "cuLinkAddData", "cuLinkComplete"),
            *("cuLibraryLoadData", "cuLibraryGetKernel", "cuKernelGetFunction", "cuFuncLoad"),
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
        loaded = call in ("cuKernelGetFunction", "cuFuncLoad", "cuLaunchKernel")
        assert loaded or not stub.libraries
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
            with pytest.raises(
                cuda.CUDAError, match=f"device {wrong}, this machine has 2"
            ) as caught:
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
        with pytest.raises(cuda.CUDAError, match="The linker's log: ptxas fatal: no"):
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
            ({"itemsize": -4}, ValueError, "at least one byte"),
            ({"shape": (300, -400)}, ValueError, "extents"),
            ({"shape": (1 << 40, 1 << 40)}, ValueError, "no device has as much"),
            ({"shape": (300,)}, ValueError, "one stride per axis"),
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
        given |= wrong
        with pytest.raises(error, match=message):
            cuda.copy(**given)
        assert not stub.called("cuLaunchKernel")
        if {"dst", "src", "src_strides"} & wrong.keys():
            return
        del given["dst"], given["src"]
        with pytest.raises(error, match=message):
            cuda.describe(**given)


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
            pytest.raises(cuda.CUDAError, match=r"cuLibraryLoadData: .*too old to have this"),
        ):
            copied(stub)

    def test_none(self, monkeypatch):
        monkeypatch.setattr(driver, "_NAMES", {sys.platform: ("libno-such-driver.so.1",)})
        driver.install(None)
        assert "no NVIDIA driver was found (libno-such-driver.so.1" in str(cuda.unavailable())
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
            with pytest.raises(ValueError, match=f"{DST:#x} is on CUDA device 1"):
                copied(stub, device=0)
            assert not stub.called("cuLaunchKernel")
        stub.pointers[range(DST, DST + 2**21)] = 0
        copied(stub, device=0)
        asked = len(stub.called("cuPointerGetAttribute"))
        assert "cuPointerGetAttribute" not in copied(stub, device=0)
        assert len(stub.called("cuPointerGetAttribute")) < asked

    def test_memory_that_is_another_device_s_by_now(self, stub):
        """As an expandable segment of PyTorch's, or what another process shares, may be."""
        here = range(DST, DST + 2**21)
        stub.pointers |= {here: 0, range(SRC, SRC + 2**21): 0}
        copied(stub, device=0)
        stub.pointers |= {here: 1, range(SRC, SRC + 2**21): 1}
        assert "cuLaunchKernel" in copied(stub, device=1)  # whoever says so rightly is served
        with pytest.raises(ValueError, match=f"{DST:#x} is on CUDA device 1"):
            copied(stub, device=0)

    @pytest.mark.parametrize("kind", ["managed", "unknown"])
    def test_memory_that_several_can_have(self, stub, kind):
        if kind == "managed":
            stub.pointers[range(DST, DST + 2**21)] = 1
            stub.managed.add(range(DST, DST + 2**21))
        assert "cuLaunchKernel" in copied(stub, device=0)

    def test_what_is_known_of_memory(self, stub):
        stub.pointers[range(4096, 8192)] = 1
        assert context.memory_of(5000) == (1, False, True)
        stub.managed.add(range(4096, 8192))
        assert context.memory_of(5000) == (1, True, False)
        assert context.memory_of(9000) is None  # malloc's, which Grace Hopper and Jetson reach
        stub.fail["cuPointerGetAttribute"] = 700
        with pytest.raises(cuda.CUDAError, match="cuPointerGetAttribute"):
            context.memory_of(5000)


class TestStreams:
    @pytest.mark.parametrize(("given", "used"), [(None, 1), (1, 1), (2, 2), ("handle", "handle")])
    @pytest.mark.parametrize("layout", [TRANSPOSED, FLAT])
    @pytest.mark.parametrize("device", [0, 1])
    def test_the_one_that_is_told(self, stub, layout, given, used, device):
        handles = {"handle": stub.stream(device)}
        copied(stub, layout, stream=handles.get(given, given), device=device)
        (call,) = stub.called("cuLaunchKernel", "cuMemcpyDtoDAsync")
        assert queue_of(call) == handles.get(used, used)

    @pytest.mark.parametrize("wrong", [0, -1, -7])
    def test_what_is_no_stream(self, stub, wrong):
        with pytest.raises(ValueError, match=f"stream={wrong}"):
            cuda.copy(DST, SRC, *TRANSPOSED, stream=wrong)
        assert not stub.called("cuLaunchKernel")

    @pytest.mark.parametrize("layout", [TRANSPOSED, FLAT])
    def test_of_another_device(self, stub, layout):
        for _ in range(2):  # the first call, and one that is prepared
            with pytest.raises(cuda.CUDAError, match="must be on one device") as caught:
                cuda.copy(DST, SRC, *layout, stream=stub.stream(1), device=0)
            assert caught.value.code == 400
            assert stub.stack == []
            assert not stub.called("cuMemcpyDtoDAsync")
            copied(stub, TRANSPOSED)

    @pytest.mark.parametrize("layout", [TRANSPOSED, FLAT])
    def test_captured(self, stub, layout):
        stream = stub.stream()
        with stub.capture(stream):
            copied(stub, layout, stream=stream)  # compiled, loaded and launched
            (call,) = stub.called("cuLaunchKernel", "cuMemcpyDtoDAsync")
            assert queue_of(call) == stream
            assert context.capturing(context.device(0), stream)
        assert not context.capturing(context.device(0), stream)

    @pytest.mark.parametrize("missing", [(), ("cuFuncLoad",)], ids=["12.4", "12.0"])
    def test_code_is_loaded_before_the_launch_that_a_graph_captures(
        self, missing, monkeypatch, tmp_path
    ):
        monkeypatch.setenv("ARRAYBRIDGE_CACHE_DIR", str(tmp_path))
        monkeypatch.setattr(build, "ptx", stub_driver.ptx)
        with stub_driver.installed(Stub((9, 0), (9, 0), missing=missing)) as stub:
            for device in (0, 1):  # each has a copy of its own
                stream = stub.stream(device)
                for asked in (1, 0):
                    with stub.capture(stream):
                        copied(stub, stream=stream, device=device)
                    assert len(stub.called("cuFuncLoad")) == (0 if missing else asked)
            assert len(stub.libraries) == 1

    def test_the_mode_of_the_thread_is_put_back(self, stub):
        copied(stub)
        assert stub._mode() == stub_driver.GLOBAL
        stub.fail["cuLibraryLoadData"] = 2
        with pytest.raises(cuda.CUDAMemoryError):
            copied(stub, device=1)
        assert stub._mode() == stub_driver.GLOBAL
        assert stub.stack == []

    def test_the_legacy_stream_under_capture(self, stub):
        with stub.capture(stub.stream()), pytest.raises(cuda.CUDAError, match="pass the stream"):
            cuda.copy(DST, SRC, *TRANSPOSED)


class TestOrder:
    def test_an_event_and_a_wait(self, stub):
        one, two = stub.stream(), stub.stream()
        for _ in range(3):
            context.order(0, two, one)
        made, *_ = stub.called("cuEventCreate")
        assert made.arguments[1] == 2  # CU_EVENT_DISABLE_TIMING
        assert len(stub.called("cuEventCreate")) == len(stub.events) == 1
        (event,) = stub.events
        assert stub.called("cuEventRecord", "cuStreamWaitEvent") == 3 * [
            Call("cuEventRecord", (event, one)),
            Call("cuStreamWaitEvent", (two, event, 0)),
        ]
        assert stub.stack == []

    def test_in_the_context_that_is_current(self, stub):
        stub.stack.append(stub.context(1))
        context.order(1, stub.stream(1), stub.stream(1))
        assert not stub.called(PUSHED, POPPED)
        context.order(0, stub.stream(0), stub.stream(0))
        assert len(stub.called(PUSHED, POPPED)) == 2
        assert stub.stack == [stub.context(1)]

    def test_two_devices(self, stub):
        one, two = stub.stream(0), stub.stream(1)
        context.order(1, two, one, of=0)
        assert list(stub.events.values()) == [stub.context(0)]
        pushed = [call.arguments[0] for call in stub.called(PUSHED)]
        assert pushed == [stub.context(0), stub.context(1)]
        assert stub.stack == []

    def test_a_stream_that_is_gone(self, stub):
        one = stub.stream()
        with pytest.raises(cuda.CUDAError, match="cuStreamWaitEvent"):
            context.order(0, 99, one)
        assert stub.stack == []
        assert len(stub.events) == 1
        context.order(0, stub.stream(), one)
        assert len(stub.events) == 1

    def test_an_edge_of_a_graph(self, stub):
        one, two = stub.stream(), stub.stream()
        with stub.capture(one) as joined:
            context.order(0, two, one)
            assert joined == {one, two}

    def test_what_a_graph_cannot_wait_for(self, stub):
        one, two = stub.stream(), stub.stream()
        with (
            stub.capture(one),
            pytest.raises(cuda.CUDAError, match="capture that work too, or wait for it"),
        ):
            context.order(0, one, two)

    def test_threads_do_not_share_an_event(self, stub):
        one, two = stub.stream(), stub.stream()
        wait, taken = stub.cuStreamWaitEvent, []

        def slow(stream, event, flags):
            taken.append(event)
            wait(stream, event, flags)

        stub.cuStreamWaitEvent = slow
        in_threads(lambda _: context.order(0, two, one), range(4))
        assert len(taken) == 4


class Owner:
    pass


def raise_not_ready():
    raise stub_driver.Code(600)


class TestHold:
    def test_each_until_its_own_event(self, stub):
        late, query = set(), stub.cuEventQuery
        stub.cuEventQuery = lambda event: raise_not_ready() if event in late else query(event)
        stream, other = stub.stream(), stub.stream()
        owners, alive = [Owner() for _ in range(100)], []
        for owner in owners:
            context.hold(0, other if len(alive) % 2 else stream, owner)
            alive.append(weakref.ref(owner))
            late.add(stub.called("cuEventRecord")[-1].arguments[0])
        del owners, owner
        assert all(ref() is not None for ref in alive)
        late -= set(sorted(late)[1:60:2])  # of the one stream, whose events happen in order
        context.order(0, 1, stream)
        assert [ref() is None for ref in alive] == [n % 2 == 1 and n < 60 for n in range(100)]
        late.clear()
        context.order(0, 1, stream)
        assert not any(ref() is not None for ref in alive)
        assert not context._held
        assert len(stub.events) <= 16

    def test_a_stream_that_captures_does_nothing_yet(self, stub):
        stream = stub.stream()
        with stub.capture(stream):
            context.hold(0, stream, Owner())
        assert not stub.called("cuEventRecord")
