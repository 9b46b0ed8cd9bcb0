"""CUDA streams through a stub of the driver: numbering, order, capture, and what is kept alive."""

from __future__ import annotations

import gc
import threading
import weakref

import pytest

from arraybridge.kernels import cuda
from arraybridge.kernels.cuda import context

from .support import stub_driver
from .support.launches import DST, FLAT, POPPED, PUSHED, SRC, TRANSPOSED, copied, queue_of
from .support.stub_driver import Call


@pytest.fixture
def stub(tmp_path):
    """Two devices, nothing on disk, no compiler."""
    with stub_driver.emulated(tmp_path / "kernels", (9, 0), (8, 0)) as stub:
        yield stub


class TestStreams:
    @pytest.mark.parametrize(("given", "used"), [(None, 1), (1, 1), (2, 2)])
    @pytest.mark.parametrize("layout", [TRANSPOSED, FLAT])
    @pytest.mark.parametrize("device", [0, 1])
    def test_numbers(self, stub, layout, given, used, device):
        copied(stub, layout, stream=given, device=device)
        (call,) = stub.called("cuLaunchKernel", "cuMemcpyDtoDAsync")
        assert queue_of(call) == used

    @pytest.mark.parametrize("layout", [TRANSPOSED, FLAT])
    @pytest.mark.parametrize("device", [0, 1])
    def test_handles(self, stub, layout, device):
        stream = stub.stream(device)
        copied(stub, layout, stream=stream, device=device)
        (call,) = stub.called("cuLaunchKernel", "cuMemcpyDtoDAsync")
        assert queue_of(call) == stream

    @pytest.mark.parametrize("wrong", [0, -1, -7])
    def test_what_is_no_stream(self, stub, wrong):
        with pytest.raises(ValueError, match=f"stream={wrong}"):
            cuda.copy(DST, SRC, *TRANSPOSED, stream=wrong)
        assert not stub.called("cuLaunchKernel")

    @pytest.mark.parametrize("layout", [TRANSPOSED, FLAT])
    def test_of_another_device(self, stub, layout):
        with pytest.raises(cuda.CUDAError, match="belong to one device") as caught:
            cuda.copy(DST, SRC, *layout, stream=stub.stream(1), device=0)
        assert caught.value.code == 400
        assert stub.stack == []
        assert not stub.called("cuMemcpyDtoDAsync")

    @pytest.mark.parametrize("layout", [TRANSPOSED, FLAT])
    def test_captured(self, stub, layout):
        stream = stub.stream()
        with stub.capture(stream):
            copied(stub, layout, stream=stream)  # compiled, loaded and launched
            (call,) = stub.called("cuLaunchKernel", "cuMemcpyDtoDAsync")
            assert queue_of(call) == stream
            assert context.capturing(context.device(0), stream)
        assert not context.capturing(context.device(0), stream)

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

    def test_default_streams(self, stub):
        context.order(0, 2, None)
        (event,) = stub.events
        assert stub.called("cuEventRecord", "cuStreamWaitEvent") == [
            Call("cuEventRecord", (event, 1)),
            Call("cuStreamWaitEvent", (2, event, 0)),
        ]

    def test_nothing_to_wait_for(self, stub):
        stream = stub.stream()
        context.order(0, stream, stream)
        context.order(0, 1, None)
        context.order(0, stream, -1)
        assert not stub.called("cuEventRecord")

    def test_two_devices(self, stub):
        one, two = stub.stream(0), stub.stream(1)
        context.order(1, two, one, of=0)
        assert list(stub.events.values()) == [stub.context(0)]
        pushed = [call.arguments[0] for call in stub.called(PUSHED)]
        assert pushed == [stub.context(0), stub.context(1)]
        assert stub.stack == []

    def test_a_stream_of_another_device(self, stub):
        with pytest.raises(cuda.CUDAError, match=r"cuEventRecord.*belong to one device"):
            context.order(0, 1, stub.stream(1))
        assert not stub.events
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
            pytest.raises(cuda.CUDAError, match="capture that too, or wait for it"),
        ):
            context.order(0, one, two)

    def test_threads_do_not_share_an_event(self, stub):
        one, two = stub.stream(), stub.stream()
        wait, taken = stub.cuStreamWaitEvent, []

        def slow(stream, event, flags):
            taken.append(event)
            wait(stream, event, flags)

        stub.cuStreamWaitEvent = slow
        threads = [threading.Thread(target=context.order, args=(0, two, one)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(taken) == 4


class Owner:
    pass


class TestHold:
    def test_until_the_stream_has_come_so_far(self, stub):
        stream = stub.stream()
        owner = Owner()
        alive = weakref.ref(owner)
        stub.fail["cuEventQuery"] = 600  # not ready
        context.hold(0, stream, owner)
        del owner
        context.order(0, 1, stream)
        gc.collect()
        assert alive() is not None
        del stub.fail["cuEventQuery"]
        context.order(0, 1, stream)
        gc.collect()
        assert alive() is None

    def test_events_are_bounded(self, stub):
        stub.fail["cuEventQuery"] = 600
        stream = stub.stream()
        owners = [Owner() for _ in range(1000)]
        alive = [weakref.ref(owner) for owner in owners]
        for owner in owners:
            context.hold(0, stream, owner)
        del owners, owner
        assert len(stub.events) == 64
        assert all(ref() is not None for ref in alive)
        last = stub.called("cuEventRecord")[-1]
        assert last.arguments == (list(stub.events)[-1], stream)
        del stub.fail["cuEventQuery"]
        context.order(0, 1, stream)
        gc.collect()
        assert not any(ref() is not None for ref in alive)
        assert len(stub.events) <= 16

    def test_a_stream_that_captures_does_nothing_yet(self, stub):
        stream = stub.stream()
        with stub.capture(stream):
            context.hold(0, stream, Owner())
        assert not stub.called("cuEventRecord")

    def test_threads_have_default_streams_of_their_own(self, stub):
        stub.fail["cuEventQuery"] = 600
        context.hold(0, 2, Owner())
        thread = threading.Thread(target=context.hold, args=(0, 2, Owner()))
        thread.start()
        thread.join()
        assert len(context._held) == 2
