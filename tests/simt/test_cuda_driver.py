"""CUDA's driver through a stub: calls, their order and streams, and errors, each with a remedy."""

import threading
import weakref
from time import sleep

import pytest

from arraybridge.kernels import cuda
from arraybridge.kernels.cuda import context, driver
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
    return [call.name for call in stub.calls if call.name not in QUIET]


def queue_of(call: Call) -> int:
    """The stream of a launch or a copy."""
    return call.arguments[8 if call.name == "cuLaunchKernel" else -1]


@pytest.fixture
def stub(tmp_path):
    """Two devices, nothing on disk, no compiler."""
    with stub_driver.machine(tmp_path / "kernels", Stub((9, 0), (8, 0))) as stub:
        yield stub


class TestCalls:
    def test_the_next_one(self, stub):
        copied(stub)
        assert copied(stub) == [PUSHED, "cuLaunchKernel", POPPED]
        stub.stack.append(stub.context(0))
        assert copied(stub) == ["cuLaunchKernel"]
        stub.stack.append(stub.context(1))
        assert copied(stub) == [PUSHED, "cuLaunchKernel", POPPED]
        assert stub.stack == [stub.context(0), stub.context(1)]

    def test_contiguous_is_the_drivers_copy(self, stub):
        copied(stub, FLAT)
        assert copied(stub, FLAT) == [PUSHED, "cuMemcpyDtoDAsync", POPPED]
        (call,) = stub.called("cuMemcpyDtoDAsync")
        assert call.arguments == (DST, SRC, 300 * 400 * 4, 1)


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


@pytest.mark.parametrize(
    ("before", "said"),
    [("used", "3 True cuInit: CUDA cannot be used in\n"), ("unused", "copied\n")],
)
def test_forked(before, said, tmp_path):
    env = {"ARRAYBRIDGE_CACHE_DIR": str(tmp_path)}
    flags = ("-W", "error", "-W", "ignore::DeprecationWarning")
    assert python(FORKED, before, env=env, flags=flags) == said


class TestErrors:
    @pytest.mark.parametrize(
        "call",
        [
            *("cuDevicePrimaryCtxRetain", "cuLinkComplete", "cuLibraryGetKernel", "cuFuncLoad"),
            *(PUSHED, "cuLaunchKernel"),
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
        assert call in ("cuFuncLoad", "cuLaunchKernel") or not stub.libraries
        del stub.fail[call]
        assert "cuLaunchKernel" in copied(stub)  # it works again
        assert len(stub.libraries) == 1

    def test_no_such_device(self, stub):
        with pytest.raises(cuda.CUDAError, match=r"cuDeviceGet: .*(?i:nvidia-smi)") as caught:
            copied(stub, device=2)
        assert caught.value.code == 101
        assert not stub.retained

    def test_no_driver(self, monkeypatch):
        monkeypatch.setattr(driver, "_NAMES", ("libno-such-driver.so.1",))
        driver.install(None)
        assert "no NVIDIA driver was found (libno-such-driver.so.1" in str(cuda.unavailable())
        with pytest.raises(cuda.CUDAError, match="install NVIDIA's driver") as caught:
            cuda.copy(DST, SRC, *TRANSPOSED)
        assert caught.value.code is None
        driver.install(None)


class TestStreams:
    @pytest.mark.parametrize("layout", [TRANSPOSED, FLAT])
    def test_the_one_that_is_told(self, stub, layout):
        for device in (0, 1):
            handle = stub.stream(device)
            for given, used in ((None, 1), (1, 1), (2, 2), (handle, handle)):
                copied(stub, layout, stream=given, device=device)
                (call,) = stub.called("cuLaunchKernel", "cuMemcpyDtoDAsync")
                assert queue_of(call) == used

    def test_of_another_device(self, stub):
        for _ in range(2):  # the first call, and one that is prepared
            with pytest.raises(cuda.CUDAError, match="must be on one device"):
                cuda.copy(DST, SRC, *TRANSPOSED, stream=stub.stream(1), device=0)
            assert stub.stack == []
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
        context.hold(0, stream, Owner())
        assert len(stub.events) <= 101  # which are used again

    def test_a_handle_that_is_another_streams_by_now(self, stub):
        late, query = set(), stub.cuEventQuery
        stub.cuEventQuery = lambda event: raise_not_ready() if event in late else query(event)
        stream, owners = stub.stream(), [Owner(), Owner()]
        alive = [weakref.ref(owner) for owner in owners]
        context.hold(0, stream, owners.pop())
        late.add(stub.called("cuEventRecord")[-1].arguments[0])
        stub.destroy(stream)
        context.hold(0, stub.stream(handle=stream), owners.pop())
        context.order(0, 1, 2)
        assert alive[1]() is not None  # its work is not done, whatever its handle means now
        late.clear()
        context.order(0, 1, 2)
        assert [ref() for ref in alive] == [None, None]
