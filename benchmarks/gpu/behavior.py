"""What is right or wrong and only a device can tell: graphs, streams, contexts, threads.

Each check returns what it saw, and raises where that is wrong.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from ctypes import byref, c_int, c_size_t, c_uint, c_void_p
from typing import Any

from .ours import kernels_needed

#: Layouts of a float32 or byte array that reach several kernels: their views, by name.
VIEWS: dict[str, Callable[[Any], Any]] = {
    "tile": lambda t: t.rand(1024, 768, device="cuda").t(),
    "plain": lambda t: t.rand(1023, 769, device="cuda").t(),
    "rows": lambda t: t.rand(512, 1024, device="cuda")[::2],
    "shift": lambda t: t.rand(512, 1027, device="cuda")[:, 1:1024],
    "split": lambda t: t.randint(0, 255, (512, 512, 3), dtype=t.uint8, device="cuda").permute(
        2, 0, 1
    ),
    "heads": lambda t: t.rand(4, 128, 8, 64, device="cuda").transpose(1, 2),
    "six axes": lambda t: t.rand(3, 5, 7, 9, 11, 13, device="cuda").permute(4, 2, 5, 0, 3, 1),
    "broadcast": lambda t: t.rand(1024, 1, device="cuda").expand(1024, 512),
    "a step": lambda t: t.rand(512, 1024, device="cuda")[:, ::2],
}
SLOW = 20_000_000  # cycles: 10 ms or so


def same(found: Any, wanted: Any, what: str) -> None:
    import torch

    if not torch.equal(found, wanted):
        wrong = int((found != wanted).sum())
        raise AssertionError(f"{what}: {wrong} of {wanted.numel()} elements are wrong")


def captured(name: str) -> str:
    """A copy in a CUDA graph, replayed with other numbers in the same memory."""
    import torch

    import arraybridge as ab

    view = VIEWS[name](torch)
    ab.contiguous(view)  # warm: torch asks for that, too
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        made = ab.contiguous(view)
    for turn in range(3):
        if 0 not in view.stride():
            view.copy_((torch.rand(view.shape, device="cuda") * 250).to(view.dtype))
        made.fill_(7)
        graph.replay()
        torch.cuda.synchronize()
        same(made, view.contiguous(), f"replay {turn}")
    return "captured, replayed three times with other numbers"


def captured_cold() -> str:
    """The first use of a kernel comes while a graph is captured: it is loaded then."""
    import torch

    import arraybridge as ab

    view = torch.rand(640, 320, 2, dtype=torch.float64, device="cuda").permute(2, 1, 0)
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        made = ab.contiguous(view)
    made.zero_()
    graph.replay()
    torch.cuda.synchronize()
    same(made, view.contiguous(), "the replay")
    return "a kernel that was not loaded was captured"


def captured_converting() -> str:
    """torch to CuPy and back inside a capture, on torch's stream."""
    import cupy
    import torch

    import arraybridge as ab

    view = torch.rand(256, 512, device="cuda").t()
    ab.convert(ab.convert(view, "cupy", copy=True), "torch")
    torch.cuda.synchronize()
    graph, side = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    with torch.cuda.graph(graph, stream=side), cupy.cuda.ExternalStream(side.cuda_stream):
        made = ab.convert(view, "torch", copy=True)
        shared = ab.convert(made, "cupy")
    graph.replay()
    torch.cuda.synchronize()
    same(made, view.contiguous(), "the replay")
    return f"a copy and a view were captured; CuPy's view is {type(shared).__name__}"


def two_streams() -> str:
    """The source is made slowly on one stream; the copy on another waits where that is asked for."""
    import torch

    import arraybridge as ab

    one, other = torch.cuda.Stream(), torch.cuda.Stream()
    for name, view_of in VIEWS.items():
        view = view_of(torch)
        if 0 in view.stride():
            continue  # of which not every element can be written
        wanted = view.contiguous()
        late = torch.empty_strided(
            view.shape, view.stride(), dtype=view.dtype, device="cuda"
        ).fill_(77)
        torch.cuda.synchronize()
        with torch.cuda.stream(one):
            torch.cuda._sleep(SLOW)
            late.copy_(wanted)
        other.wait_stream(one)
        with torch.cuda.stream(other):
            made = ab.contiguous(late)
        other.synchronize()
        same(made, wanted, name)
    return f"{len(VIEWS) - 1} layouts, the source written 10 ms late on another stream"


def freed_early() -> str:
    """A source is freed as soon as its copy is queued, and its memory poisoned on the same stream."""
    import torch

    import arraybridge as ab

    for stream in (torch.cuda.current_stream(), torch.cuda.Stream()):
        with torch.cuda.stream(stream):
            for _ in range(20):
                x = torch.rand(1024, 1024, device="cuda")
                wanted = x.t().clone(memory_format=torch.contiguous_format)
                torch.cuda._sleep(SLOW // 20)
                made = ab.contiguous(x.t())
                address = x.data_ptr()
                del x
                poison = torch.full((1024, 1024), float("nan"), device="cuda")
                reused = poison.data_ptr() == address
                same(made, wanted, "the copy of freed memory")
    return f"40 copies, the memory of the last reused at once: {reused}"


def freed_for_another_stream() -> str:
    """CuPy reads torch's memory on its own stream, after torch's tensor is gone and its memory poisoned."""
    import cupy
    import torch

    import arraybridge as ab

    side = cupy.cuda.Stream(non_blocking=True)
    for _ in range(10):
        x = torch.rand(2048, 1024, device="cuda")
        wanted = x.t().clone(memory_format=torch.contiguous_format)
        torch.cuda._sleep(SLOW // 20)
        x.add_(1)
        with side:
            made = ab.convert(x.t(), "cupy", copy=True)
        del x
        torch.full((2048, 1024), float("nan"), device="cuda")
        side.synchronize()
        back = ab.convert(made, "torch")
        same(back, wanted + 1, "CuPy's copy of torch's freed memory")
    return (
        "10 copies by CuPy on a stream that does not block, the source freed and poisoned by torch"
    )


def per_thread() -> str:
    """The per-thread default stream, 2 in the standard's numbering, in two threads."""
    import torch

    from arraybridge.kernels import cuda

    failures: list[str] = []

    def work(seed: int) -> None:
        try:
            torch.manual_seed(seed)
            side = torch.cuda.ExternalStream(2)
            x = torch.rand(512, 256, device="cuda")
            torch.cuda.synchronize()
            with torch.cuda.stream(side):
                y = torch.empty(256, 512, device="cuda")
                for _ in range(50):
                    cuda.copy(y.data_ptr(), x.data_ptr(), (256, 512), (2048, 4), (4, 1024), 4, 2, 0)
                side.synchronize()
            same(y, x.t().contiguous(), f"thread {seed}")
        except Exception as error:
            failures.append(f"{type(error).__name__}: {error}")

    _together([lambda seed=seed: work(seed) for seed in range(2)])
    if failures:
        raise AssertionError("; ".join(failures))
    return "two threads, 50 copies each"


def threads() -> str:
    """Eight threads, each with a stream of its own, layouts that none has seen."""
    import torch

    import arraybridge as ab

    failures: list[str] = []

    def work(number: int) -> None:
        try:
            side = torch.cuda.Stream()
            with torch.cuda.stream(side):
                for turn in range(40):
                    view = torch.rand(200 + number, 100 + turn, device="cuda").t()
                    made = ab.contiguous(view)
                    same(made, view.contiguous(), f"thread {number}, copy {turn}")
        except Exception as error:
            failures.append(f"{type(error).__name__}: {error}")

    _together([lambda number=number: work(number) for number in range(8)])
    if failures:
        raise AssertionError("; ".join(failures[:3]))
    return "eight threads on streams of their own, 320 new layouts"


def _together(works: list[Callable[[], None]]) -> None:
    running = [threading.Thread(target=work, daemon=True) for work in works]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join(30)
        if thread.is_alive():
            raise AssertionError("a thread does not come to its end")


def contexts() -> str:
    """No context is made or left current, nor memory taken for one."""
    import torch

    import arraybridge as ab
    from arraybridge.kernels import cuda

    calls = _Calls()
    x = torch.rand(300, 200, device="cuda").t()
    wanted = x.contiguous()
    torch.cuda.synchronize()
    before, free = calls.current(), calls.free()
    made = ab.contiguous(x)
    torch.cuda.synchronize()
    after, left = calls.current(), calls.free()
    active, flags = calls.primary()
    if before != after or active != 1:
        raise AssertionError(
            f"the current context was {before:#x} and is {after:#x}; primary: {active}"
        )
    if free - left > 64 << 20:
        raise AssertionError(
            f"free memory went down by {(free - left) / 2**20:.0f} MiB: as for a context"
        )
    same(made, wanted, "the copy")
    to, of, shape = made.data_ptr(), x.data_ptr(), tuple(x.shape)
    seen: list[int] = []

    def elsewhere() -> None:  # no context is current in a new thread, and torch is not called there
        seen.append(calls.current())
        cuda.copy(to, of, shape, (1200, 4), (4, 800), 4, 1, 0)
        seen.append(calls.current())

    _together([elsewhere])
    if len(seen) != 2 or seen[0] != seen[1]:
        raise AssertionError(f"in a new thread the current context was, then is {seen}")
    return (
        f"current before and after: {before:#x}; in a new thread {seen[0]:#x} and {seen[1]:#x}; the primary "
        f"context's flags are {flags:#x}; free memory went down by {(free - left) / 2**20:.1f} MiB"
    )


class _Calls:
    """A few of the driver's functions that arraybridge has no use for."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libcuda.so.1")

    def _call(self, name: str, *arguments: Any) -> None:
        code = getattr(self._library, name)(*arguments)
        if code:
            raise RuntimeError(f"{name} gave {code}")

    def current(self) -> int:
        context = c_void_p()
        self._call("cuCtxGetCurrent", byref(context))
        return context.value or 0

    def primary(self) -> tuple[int, int]:
        active, flags = c_int(), c_uint()
        self._call("cuDevicePrimaryCtxGetState", 0, byref(flags), byref(active))
        return active.value, flags.value

    def free(self) -> int:
        free, total = c_size_t(), c_size_t()
        self._call("cuMemGetInfo_v2", byref(free), byref(total))
        return free.value


CHECKS: dict[str, Callable[[], str]] = {
    "no new context": contexts,
    "two streams, poisoned": two_streams,
    "memory freed early": freed_early,
    "memory freed while another stream reads": freed_for_another_stream,
    "per-thread default stream": per_thread,
    "several threads": threads,
    **{f"graph: {name}": (lambda name=name: captured(name)) for name in VIEWS},
    "graph: a kernel not loaded before": captured_cold,
    "graph: conversions": captured_converting,
}


def run(record: Any) -> None:
    for name, check in CHECKS.items():
        record.attempt(name, made_sure, check, needs=1)


def made_sure(check: Callable[[], str]) -> dict[str, str]:
    kernels_needed()
    return {"right": check()}
