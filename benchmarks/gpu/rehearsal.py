"""A rehearsal without a GPU: the host's memory for the device's, and stand-ins for the calls that want a driver.

Every line of the benchmarks runs, so that a slip of the pen does not waste a GPU that is lent. Each name that
is replaced must be there, so that no misspelt one passes. What is measured means nothing, and what only a
device can do right (replaying a graph) comes out wrong.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import os
import sys
import threading
import time
import types
from typing import Any, ClassVar

#: Functions of the driver (CUDA driver API, 13.0), as they are called in its library.
HEADER = (
    "cuCtxGetCurrent cuDevicePrimaryCtxGetState cuMemGetInfo_v2 cuCtxPushCurrent_v2 cuMemAlloc_v2 cuMemcpyHtoD_v2 "
    "cuMemcpyDtoH_v2 cuMemFree_v2 cuCtxSynchronize"
).split()

WANTED = os.environ.get("ARRAYBRIDGE_REHEARSAL") == "1"


class Stream:
    """A stream on which everything has happened already."""

    def __init__(self, stream_ptr: int = 0, device: Any = None, **_: Any) -> None:
        self.cuda_stream = self.ptr = stream_ptr
        self.device = device

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def wait_stream(self, _: Any) -> None: ...
    def wait_event(self, _: Any) -> None: ...
    def synchronize(self) -> None: ...
    def use(self) -> Stream:
        return self

    def record_event(self, event: Any = None) -> Any:
        return event or Event()


class Event:
    """A time."""

    def __init__(self, enable_timing: bool = False, **_: Any) -> None:
        self.at = 0.0

    def record(self, _: Any = None) -> None:
        self.at = time.perf_counter()

    def elapsed_time(self, other: Event) -> float:
        return max(other.at - self.at, 1e-7) * 1e3

    def synchronize(self) -> None: ...
    def wait(self, _: Any = None) -> None: ...
    def query(self) -> bool:
        return True


class Graph:
    """The copies that arraybridge made while it was captured."""

    capturing: ClassVar[list[Graph]] = []

    def __init__(self, **_: Any) -> None:
        self.copies: list[tuple[Any, Any]] = []

    def replay(self) -> None:
        for to, of in self.copies:
            to[...] = of

    def reset(self) -> None: ...


class Context:
    def __init__(self, *_: Any, **__: Any) -> None: ...
    def __enter__(self) -> Context:
        return self

    def __exit__(self, *_: object) -> None: ...


class Capture(Context):
    def __init__(self, graph: Graph, *_: Any, **__: Any) -> None:
        self.graph = graph

    def __enter__(self) -> Context:
        Graph.capturing.append(self.graph)
        return self

    def __exit__(self, *_: object) -> None:
        Graph.capturing.pop()


def install() -> None:
    """Put the stand-ins in place, in this process."""
    import torch

    _torch(torch)
    _threads(torch)
    _cupy()
    _numba()
    _driver()
    _arraybridge()


def _driver() -> None:
    """A library of the driver that says yes to everything, for the benchmarks' own calls."""
    load = ctypes.CDLL

    class Yes:
        def __getattr__(self, name: str) -> Any:
            if name not in HEADER and not name.startswith("__"):
                raise AttributeError(f"{name} is not among the functions that benchmarks call")
            return self._answer if name != "cuDevicePrimaryCtxGetState" else self._active

        @staticmethod
        def _answer(*_: Any) -> int:
            return 0

        @staticmethod
        def _active(_: int, flags: Any, active: Any) -> int:
            active._obj.value = 1
            return 0

    ctypes.CDLL = lambda name, *rest: Yes() if name == "libcuda.so.1" else load(name, *rest)  # type: ignore


def _replace(owner: Any, **others: Any) -> None:
    for name, other in others.items():
        if not hasattr(owner, name):
            raise AttributeError(f"{owner} has no {name}: whoever calls it would fail")
        setattr(owner, name, other)


def _torch(torch: Any) -> None:
    properties = types.SimpleNamespace(
        name="rehearsal", multi_processor_count=2, L2_cache_size=1 << 20, total_memory=1 << 33
    )
    none: Any = lambda *_, **__: None  # noqa: E731
    stream = Stream()
    _replace(
        torch.cuda,
        is_available=lambda: True, device_count=lambda: 1, get_device_name=lambda *_: "rehearsal",
        get_device_properties=lambda *_: properties, synchronize=none, _sleep=none, empty_cache=none,
        mem_get_info=lambda *_: (1 << 33, 1 << 33), memory_allocated=lambda *_: 0, init=none,
        current_stream=lambda *_: stream, default_stream=lambda *_: stream, current_device=lambda: 0,
        set_device=none, get_device_capability=lambda *_: (9, 0), memory_reserved=lambda *_: 0,
        Stream=Stream, ExternalStream=Stream, Event=Event, CUDAGraph=Graph, stream=Context, graph=Capture,
        device=Context, max_memory_allocated=lambda *_: 0, reset_peak_memory_stats=none,
    )  # fmt: skip
    _replace(
        torch.Tensor, record_stream=none, pin_memory=lambda x, *_: x, is_pinned=lambda *_: True
    )
    mode(torch).__enter__()


@functools.cache
def mode(torch: Any) -> Any:
    """A mode of torch in which "cuda" is the host, wherever a device is named."""

    class Host(torch.overrides.TorchFunctionMode):
        def __torch_function__(
            self, function: Any, _: Any, arguments: Any = (), named: Any = None
        ) -> Any:
            if function is torch.Tensor.cuda:
                return arguments[0].clone()
            named = {k: self.host(v) for k, v in (named or {}).items()}
            return function(*map(self.host, arguments), **named)

        @staticmethod
        def host(value: Any) -> Any:
            if isinstance(value, str) and value.startswith("cuda"):
                return "cpu"
            if isinstance(value, torch.device) and value.type == "cuda":
                return torch.device("cpu")
            return value

    return Host()


def _threads(torch: Any) -> None:
    """Modes of torch are a thread's own."""
    run = threading.Thread.run

    def rehearsed(thread: threading.Thread) -> None:
        with type(mode(torch))():
            run(thread)

    threading.Thread.run = rehearsed  # type: ignore[method-assign]


def _cupy() -> None:
    """NumPy for CuPy, with the names alone that CuPy has."""
    import numpy as np

    try:
        real = importlib.import_module("cupy")
    except ImportError:
        real = None
    fake = types.ModuleType("cupy")
    fake.__spec__ = importlib.machinery.ModuleSpec("cupy", None)
    for name in "ascontiguousarray asarray array empty zeros arange ndarray copyto full add broadcast_to".split():
        setattr(fake, name, getattr(np, name))
    fake.asnumpy = np.array
    fake.from_dlpack = np.from_dlpack
    fake.array_equal = np.array_equal
    fake.may_share_memory = np.may_share_memory
    fake.__version__ = getattr(real, "__version__", "14.2.0")
    pool = types.SimpleNamespace(free_all_blocks=lambda: None, used_bytes=lambda: 0)
    fake.get_default_memory_pool = lambda: pool
    fake.cuda = types.ModuleType("cupy.cuda")
    runtime = types.SimpleNamespace(
        deviceSynchronize=lambda: None, getDeviceCount=lambda: 1, is_hip=False
    )
    Stream.null = Stream.ptds = Stream()
    parts: dict[str, Any] = {
        "Stream": lambda *_, **__: Stream(), "ExternalStream": Stream, "Device": Context, "runtime": runtime,
        "get_current_stream": lambda *_: Stream.null,
    }  # fmt: skip
    for name, part in parts.items():
        setattr(fake.cuda, name, part)
    fake.cuda.Stream.null = fake.cuda.Stream.ptds = Stream.null
    for module, stand_in in ((real, fake), (getattr(real, "cuda", None), fake.cuda)):
        for name in vars(stand_in) if module is not None else ():
            if not name.startswith("__") and not hasattr(module, name):
                raise AttributeError(f"CuPy has no {name}: whoever calls it would fail")
    sys.modules["cupy"], sys.modules["cupy.cuda"] = fake, fake.cuda


def _numba() -> None:
    import numpy as np

    try:
        cuda = importlib.import_module("numba.cuda")
    except ImportError:
        return
    _replace(cuda, to_device=np.array, as_cuda_array=lambda x: x.numpy(), device_array=np.empty)


def _arraybridge() -> None:
    """CUDA's devices and CuPy's arrays become the host's; the kernels for CUDA, the CPU's."""
    import arraybridge as ab
    from arraybridge.kernels import cpu, cuda

    parsed = ab.Device.parse

    def parse(device: Any) -> Any:
        if isinstance(device, str) and device.startswith("cuda"):
            if device not in ("cuda", "cuda:0"):
                raise ab.ConversionError(f"there is no {device}: rehearsed")
            device = "cpu"
        return parsed(device)

    def on_host(function: Any) -> Any:
        @functools.wraps(function)
        def rehearsed(x: Any, library: Any = None, **options: Any) -> Any:
            library = "numpy" if library in ("cupy", "numba") else library
            if isinstance(options.get("device"), str):
                options["device"] = str(parse(options["device"]))
            return kept(x, function(x, library, **options))

        return rehearsed

    def explained(x: Any, library: Any = None, **options: Any) -> Any:
        route = explain(x, library, **options)
        return types.SimpleNamespace(
            kind="transfer" if options.get("device") else route.kind,
            device=route.device,
            nbytes=route.nbytes or ab.inspect(x).nbytes,
            kernel=f"cuda tile {route.kernel}",
        )

    explain = on_host(ab.explain)

    def kept(x: Any, made: Any) -> Any:
        for graph in Graph.capturing:
            graph.copies.append((made, x))
        return made

    def contiguous(x: Any, **options: Any) -> Any:
        return kept(x, compact(x, **options))

    compact = ab.contiguous

    _replace(ab.Device, parse=staticmethod(parse))
    _replace(ab, convert=on_host(ab.convert), explain=explained, contiguous=contiguous)
    copied = cpu.copy

    def copy(*layout: Any) -> None:
        *rest, _stream, _device = (*layout, None, None)[:8]
        copied(*rest[:6])

    _replace(cuda, copy=copy, unavailable=lambda: None)
