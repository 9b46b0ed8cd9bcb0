"""A rehearsal without a GPU: the driver, and the CUDA device of PyTorch and CuPy, are emulated on the host.

arraybridge is the real one, with its calls of the driver and its launches: a stub of the driver answers them
(tests/support/stub_driver.py), with device memory in the host's and NumPy's copies for the kernels'. Each name of a
library that is replaced must be there, so that no misspelt one passes. What is measured means nothing, and all work
happens at once: what is out of order on a device is not noticed.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import sys
import threading
import time
import types
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from ctypes import POINTER, c_int, c_size_t, c_uint, c_uint64, c_void_p
from functools import partial
from typing import Any, ClassVar, NamedTuple
from unittest import SkipTest

import numpy as np

WANTED = os.environ.get("ARRAYBRIDGE_REHEARSAL") == "1"
BYTES = 1 << 32  # of device memory, and of pinned memory: unused parts take none

#: Functions of the driver that the benchmarks call themselves, and the types of their arguments.
FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "cuDevicePrimaryCtxGetState": (c_int, POINTER(c_uint), POINTER(c_int)),
    "cuMemGetInfo_v2": (POINTER(c_size_t), POINTER(c_size_t)),
    "cuMemAlloc_v2": (POINTER(c_uint64), c_size_t),
    "cuMemFree_v2": (c_uint64,),
    "cuMemcpyHtoD_v2": (c_uint64, c_void_p, c_size_t),
    "cuMemcpyDtoH_v2": (c_void_p, c_uint64, c_size_t),
    "cuCtxSynchronize": (),
}


class Memory:
    """A range of addresses in host memory; a block is free again once no array has it."""

    def __init__(self) -> None:
        self._all = np.empty(BYTES, np.uint8)
        self._next = -(-self._all.ctypes.data // 4096) * 4096
        self._free: dict[int, list[int]] = {}  # bytes -> addresses
        self.addresses = range(self._next, self._all.ctypes.data + BYTES)

    def block(self, nbytes: int) -> np.ndarray:
        """A block of the next power of two of bytes."""
        size = max(512, 1 << (nbytes - 1).bit_length())
        free = self._free.setdefault(size, [])
        if not free:
            if self._next + size > self.addresses.stop:
                raise MemoryError(f"a rehearsal has {BYTES:,} bytes of device memory")
            free.append(self._next)
            self._next += size
        owner = (ctypes.c_ubyte * size).from_address(free.pop())
        weakref.finalize(owner, free.append, ctypes.addressof(owner))
        return np.frombuffer(owner, np.uint8)


class Event:
    """A time."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.at = 0.0

    def record(self, _: Any = None) -> None:
        self.at = time.perf_counter()

    def elapsed_time(self, other: Event) -> float:
        return max(other.at - self.at, 1e-7) * 1e3

    def synchronize(self) -> None: ...
    def wait(self, _: Any = None) -> None: ...
    def query(self) -> bool:
        return True


class Stream:
    """A stream of the emulated device; each library, a subclass, has its current one in each thread."""

    made: ClassVar[Callable[[], int]]
    threads: ClassVar[threading.local]

    def __init_subclass__(cls) -> None:
        cls.threads = threading.local()

    def __init__(self, ptr: Any = None, *_: Any, stream_ptr: int | None = None, **__: Any) -> None:
        ptr = stream_ptr if stream_ptr is not None else ptr if type(ptr) is int else Stream.made()
        self.ptr = self.cuda_stream = ptr

    @classmethod
    def stack(cls) -> list[Stream]:
        """The streams that are current in this thread, the last one above the others."""
        if not hasattr(cls.threads, "stack"):
            cls.threads.stack = [cls(0)]
        return cls.threads.stack

    @classmethod
    def current(cls, *_: Any) -> Stream:
        return cls.stack()[-1]

    def __enter__(self) -> Stream:
        self.stack().append(self)
        return self

    use = __enter__

    def __exit__(self, *_: object) -> None:
        self.stack().pop()

    def record(self, event: Any = None) -> Any:
        event = event or Event()
        event.record()
        return event

    record_event = record

    def wait_stream(self, _: Any) -> None: ...
    def wait_event(self, _: Any) -> None: ...
    def synchronize(self) -> None: ...


class Graph:
    """The work that was captured."""

    def __init__(self, **_: Any) -> None:
        self.work: list[Callable[[], object]] = []

    def replay(self) -> None:
        for work in self.work:
            work()

    def reset(self) -> None:
        self.work.clear()


def install() -> Any:
    """Emulate a GPU in this process, from now on, and return it: a stub of the driver."""
    import torch

    gpu = _driver()
    Stream.made = gpu.stream
    _torch(torch, gpu)
    _cupy(gpu)
    _numba()
    return gpu


def _replace(owner: Any, **others: Any) -> None:
    for name, other in others.items():
        if not hasattr(owner, name):
            raise AttributeError(f"{owner} has no {name}: whoever calls it would fail")
        setattr(owner, name, other)


def _driver() -> Any:
    """Put the emulated driver in the place of its library."""
    from arraybridge import layout
    from arraybridge.kernels import cuda
    from arraybridge.kernels.cuda import build, driver
    from tests.support import stub_driver

    class GPU(stub_driver.Stub):
        """A device whose memory is the host's, and whose kernels are copies of NumPy's."""

        table = driver.FUNCTIONS | {
            name.partition("_v")[0]: (name, types) for name, types in FUNCTIONS.items()
        }

        def __init__(self) -> None:
            super().__init__((9, 0))
            self.memory, self.pinned_memory = Memory(), Memory()
            self.pointers[self.memory.addresses] = 0
            self.layouts: dict[Any, tuple[Any, ...]] = {}  # a launch -> a copy that it makes
            self.blocks: dict[int, np.ndarray] = {}
            self.graphs: list[Graph] = []  # that are captured

        def do(self, stream: int, work: Callable[[], object]) -> None:
            """Do it, or keep it for the graph that is captured."""
            if self._capture_of(stream) is None:
                work()
            else:
                self.graphs[-1].work.append(work)

        def cuLaunchKernel(self, function: int, *rest: Any) -> None:
            super().cuLaunchKernel(function, *rest)
            plan, dst, src = self.launched(function, *rest)
            shape, *strides, itemsize, to, of = self.layouts[plan]
            written, read = (
                np.asarray(layout.Memory(address, shape, steps, f"|V{itemsize}"))
                for address, steps in zip((dst - to, src - of), strides, strict=True)
            )
            self.do(rest[7], lambda: np.copyto(written, read))

        def cuMemcpyDtoDAsync(self, dst: int, src: int, nbytes: int, stream: int) -> None:
            super().cuMemcpyDtoDAsync(dst, src, nbytes, stream)
            self.do(stream, lambda: ctypes.memmove(dst, src, nbytes))

        def cuDevicePrimaryCtxGetState(self, device: int, flags: int, active: int) -> None:
            c_uint.from_address(flags).value, c_int.from_address(active).value = 0, 1

        def cuMemGetInfo(self, free: int, total: int) -> None:
            for address in (free, total):
                c_size_t.from_address(address).value = BYTES

        def cuMemAlloc(self, pointer: int, nbytes: int) -> None:
            block = self.memory.block(nbytes)
            self.blocks[block.ctypes.data] = block
            c_uint64.from_address(pointer).value = block.ctypes.data

        def cuMemFree(self, pointer: int) -> None:
            del self.blocks[pointer]

        def cuMemcpyHtoD(self, dst: int, src: int, nbytes: int) -> None:
            ctypes.memmove(dst, src, nbytes)

        cuMemcpyDtoH = cuMemcpyHtoD

        def cuCtxSynchronize(self) -> None: ...

    class Library:
        """What ``ctypes.CDLL`` would give."""

        def __getitem__(self, symbol: str) -> Any:
            address = gpu.lookup(symbol)
            if not address:  # of other libraries, which load the driver themselves
                raise OSError(
                    f"a rehearsal's driver serves arraybridge and the benchmarks: {symbol}"
                )
            types = gpu.table[symbol.partition("_v")[0]][1]
            function = ctypes.CFUNCTYPE(c_int, *types)(address)
            function.__name__ = symbol
            return function

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):  # of other libraries, which look functions up by themselves
                raise OSError("a rehearsal's driver serves arraybridge and the benchmarks alone")
            return self[name]

    def plans(shape: Any, dst: Any, src: Any, itemsize: int, *rest: Any, **named: Any) -> Any:
        """Note which copy a launch makes: all with the same plan are done alike."""
        made = plan(shape, dst, src, itemsize, *rest, **named)
        if len(made) == 1:
            launch = made[0]._replace(dst_offset=0, src_offset=0)
            starts = made[0].dst_offset, made[0].src_offset
            gpu.layouts[launch] = tuple(shape), tuple(dst), tuple(src), itemsize, *starts
        return made

    gpu, load, plan = GPU(), ctypes.CDLL, cuda.plans
    _replace(cuda, plans=plans, _missing=driver.problem)  # whatever compiler there is
    _replace(build, ptx=stub_driver.ptx)
    ctypes.CDLL = lambda name, *rest, **named: (  # type: ignore[misc, assignment]
        Library() if name == "libcuda.so.1" else load(name, *rest, **named)
    )
    return gpu


def _torch(torch: Any, gpu: Any) -> None:
    """PyTorch's device: CPU tensors whose storage is in device memory report the device."""
    name, none = "rehearsal", lambda *_, **__: None
    properties = types.SimpleNamespace(
        name=name, multi_processor_count=2, L2_cache_size=1 << 20, total_memory=BYTES
    )

    class TorchStream(Stream): ...

    @contextmanager
    def capture(graph: Graph, pool: Any = None, stream: Any = None, **_: Any) -> Iterator[None]:
        with stream or TorchStream() as stream, gpu.capture(stream.ptr):
            gpu.graphs.append(graph)
            try:
                yield
            finally:
                gpu.graphs.pop()

    _replace(
        torch.cuda,
        is_available=lambda: True, device_count=lambda: 1, get_device_name=lambda *_: name,
        get_device_properties=lambda *_: properties, synchronize=none, _sleep=none, empty_cache=none,
        mem_get_info=lambda *_: (BYTES, BYTES), memory_allocated=lambda *_: 0, init=none,
        current_stream=TorchStream.current, default_stream=lambda *_: TorchStream(0),
        current_device=lambda: 0, set_device=none, get_device_capability=lambda *_: (9, 0),
        memory_reserved=lambda *_: 0, Stream=TorchStream, ExternalStream=TorchStream, Event=Event,
        CUDAGraph=Graph, stream=lambda stream: stream or nullcontext(), graph=capture, device=nullcontext,
        max_memory_allocated=lambda *_: 0, reset_peak_memory_stats=none,
    )  # fmt: skip
    _replace(torch.Tensor, record_stream=none)
    torch.version.cuda = torch.version.cuda or "13.0"
    torch._C._cuda_getCurrentRawStream = lambda _: TorchStream.current().ptr
    from arraybridge.libraries.torch.exchange import LIBRARY

    for module in (torch, torch.utils.dlpack):
        _replace(module, from_dlpack=lambda x, **_: LIBRARY.wrap(_in_host_memory(x)))
    emulated = mode(torch, gpu)
    emulated().__enter__()
    run = threading.Thread.run

    def rehearsed(thread: threading.Thread) -> None:  # modes of torch are a thread's own
        with emulated():
            run(thread)

    threading.Thread.run = rehearsed  # type: ignore[method-assign]


def mode(torch: Any, gpu: Any) -> Any:
    """A mode of torch in which "cuda" is the emulated device, wherever a device is named."""
    Tensor, place = torch.Tensor, torch.device("cuda", 0)

    def within(x: Any, memory: Memory) -> bool:
        try:
            return isinstance(x, Tensor) and x.untyped_storage().data_ptr() in memory.addresses
        except (RuntimeError, NotImplementedError):  # of a tensor without memory
            return False

    def on_device(x: Any) -> bool:
        return within(x, gpu.memory) or (isinstance(x, list | tuple) and any(map(on_device, x)))

    def put(x: Any, memory: Memory) -> Any:
        """The same tensor, strides and all, in a block of another memory."""
        if not isinstance(x, Tensor):
            return type(x)(put(each, memory) for each in x) if isinstance(x, list | tuple) else x
        if within(x, memory):
            return x
        storage = x.untyped_storage()
        block = torch.from_numpy(memory.block(storage.nbytes()))
        made = torch.empty(0, dtype=x.dtype)
        made.set_(block.untyped_storage(), x.storage_offset(), x.size(), x.stride())
        if x.requires_grad and not x.is_leaf:
            return made.copy_(x)
        ctypes.memmove(block.data_ptr(), storage.data_ptr(), storage.nbytes())
        return made.requires_grad_(x.requires_grad)

    def exported(x: Any, **named: Any) -> Any:
        capsule = x.__dlpack__(max_version=named.get("max_version"))
        return _on_device(capsule) if on_device(x) else capsule

    answers: dict[Any, Callable[..., Any]] = {
        Tensor.device.__get__: lambda x: place if on_device(x) else x.device,
        Tensor.is_cuda.__get__: on_device,
        Tensor.is_cpu.__get__: lambda x: x.is_cpu and not on_device(x),
        Tensor.__dlpack__: exported,
        Tensor.__dlpack_device__: lambda x: (2, 0) if on_device(x) else x.__dlpack_device__(),
        Tensor.is_pinned: lambda x, *_: within(x, gpu.pinned_memory),
        Tensor.pin_memory: lambda x, *_: put(x.clone(), gpu.pinned_memory),
        torch.device: torch.device,
    }
    ways = {Tensor.cuda: True, Tensor.cpu: False, Tensor.to: None}

    def named_by(value: Any) -> bool | None:
        """Whether a value names the device; None where it names none."""
        value = value.type if isinstance(value, torch.device) else value
        names = isinstance(value, str) and value.startswith(("cuda", "cpu"))
        return value.startswith("cuda") if names else None

    class Emulated(torch.overrides.TorchFunctionMode):
        def __torch_function__(
            self, function: Any, _: Any, arguments: Any = (), named: Any = None
        ) -> Any:
            named = named or {}
            if function in answers:
                return answers[function](*arguments, **named)
            given = (*arguments, *named.values())
            there = any(map(on_device, given))
            if function is Tensor.numpy and there:
                raise TypeError("can't convert cuda:0 device type tensor to numpy")
            wanted = {ways.get(function), *map(named_by, given)} - {None}
            if wanted:
                moved, there = there not in wanted, True in wanted
                if moved and function in ways:
                    arguments = (arguments[0].clone(), *arguments[1:])
            function = Tensor.cpu if function is Tensor.cuda else function
            arguments, named = (
                ["cpu" if named_by(value) else value for value in arguments],
                {key: "cpu" if named_by(value) else value for key, value in named.items()},
            )
            try:
                made = function(*arguments, **named)
            except RuntimeError as error:
                if "allocate memory" not in str(error):
                    raise
                raise torch.OutOfMemoryError(str(error)) from error
            placed = put(made, gpu.memory) if there else made
            if there and gpu.graphs and isinstance(made, Tensor):
                work = partial(function, *arguments, **named)
                if placed is not made:
                    gpu.graphs[-1].work.append(lambda: placed.copy_(work()))
                elif arguments and made is arguments[0]:  # changed where it is
                    gpu.graphs[-1].work.append(work)
            return placed

    return Emulated


def _in_host_memory(x: Any) -> Any:
    """The tensor of a capsule or a producer; its address shows whether it is on the device."""
    from arraybridge import dlpack

    tensor = dlpack.from_capsule(x if dlpack.is_capsule(x) else x.__dlpack__(max_version=(1, 0)))
    tensor.device = dlpack.CPU
    return tensor


def _on_device(capsule: Any) -> Any:
    from arraybridge import dlpack

    tensor = dlpack.from_capsule(capsule)
    tensor.device = dlpack.Device(2, 0)
    return dlpack.to_capsule(tensor, move=True)


class UnownedMemory(NamedTuple):
    """As CuPy's."""

    ptr: int
    size: int
    owner: object
    device_id: int = 0


class MemoryPointer:
    """As CuPy's."""

    device_id = 0

    def __init__(self, mem: UnownedMemory, offset: int) -> None:
        self.mem, self.ptr = mem, mem.ptr + offset

    def __add__(self, offset: int) -> MemoryPointer:
        return MemoryPointer(self.mem, self.ptr + offset - self.mem.ptr)


def _cupy(gpu: Any) -> None:
    """NumPy for CuPy, in device memory, with only the names that CuPy has."""
    from arraybridge.libraries.numpy.exchange import LIBRARY

    try:
        real = importlib.import_module("cupy")
    except ImportError:
        real = None

    class CuPyStream(Stream): ...

    class Device(nullcontext):
        id = 0

    class ndarray(np.lib.mixins.NDArrayOperatorsMixin):
        """A NumPy array in device memory; its results are there, too."""

        __module__ = "cupy"
        device = Device()

        def __init__(self, shape: Any, dtype: Any = float, memptr: Any = None, *rest: Any) -> None:
            if memptr is None:
                block = gpu.memory.block(int(np.prod(shape)) * np.dtype(dtype).itemsize)
                memptr = MemoryPointer(UnownedMemory(block.ctypes.data, block.size, block), 0)
            raw = (ctypes.c_ubyte * max(memptr.mem.size, 1)).from_address(memptr.mem.ptr)
            raw.owner = memptr.mem.owner  # type: ignore[attr-defined]
            self.host = np.ndarray(shape, dtype, raw, memptr.ptr - memptr.mem.ptr, *rest)

        @property
        def data(self) -> MemoryPointer:
            low, high = np.lib.array_utils.byte_bounds(self.host)
            memory = UnownedMemory(low, high - low, self.host)
            return MemoryPointer(memory, self.host.ctypes.data - low)

        def get(self) -> np.ndarray:
            return self.host.copy()

        def __dlpack__(self, **_: Any) -> Any:
            return _on_device(self.host.__dlpack__(max_version=(1, 0)))

        def __dlpack_device__(self) -> tuple[int, int]:
            return 2, 0

        def __getitem__(self, key: Any) -> Any:
            return there(self.host[key])

        def __setitem__(self, key: Any, value: Any) -> None:
            self.host[key] = here(value)

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            found = getattr(self.host, name)
            return on_device(found) if callable(found) else there(found)

        def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
            return on_device(getattr(ufunc, method))(*inputs, **named)

    def here(x: Any) -> Any:
        return tuple(map(here, x)) if isinstance(x, tuple) else getattr(x, "host", x)

    def there(x: Any) -> Any:
        """CuPy's array for NumPy's, copied if it is not in device memory."""
        if not isinstance(x, np.ndarray):
            return x
        if x.ctypes.data not in gpu.memory.addresses:
            made = ndarray(x.shape, x.dtype)
            made.host[...] = x
        else:
            made = ndarray.__new__(ndarray)
            made.host = x
        return made

    def on_device(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *arguments, **named: there(
            function(*map(here, arguments), **{k: here(v) for k, v in named.items()})
        )

    def absent(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise SkipTest(f"cupy.cuda.{name} is not emulated")

    def known(name: str) -> bool:
        return real is None or hasattr(real, name)

    def other(name: str) -> Any:
        """All other names of CuPy are NumPy's."""
        if name.startswith("__") or not known(name):
            raise AttributeError(f"CuPy has no {name}")
        found = getattr(np, name)
        return found if isinstance(found, type) or not callable(found) else on_device(found)

    CuPyStream.null, CuPyStream.ptds = CuPyStream(0), CuPyStream(2)  # type: ignore[attr-defined]
    pool = types.SimpleNamespace(free_all_blocks=lambda: None, used_bytes=lambda: 0)
    runtime = types.SimpleNamespace(
        deviceSynchronize=lambda: None, getDeviceCount=lambda: 1, is_hip=False, CUDARuntimeError=RuntimeError,
    )  # fmt: skip
    modules: dict[str, dict[str, Any]] = {
        "cupy": {
            "asnumpy": lambda x, order="C": np.array(x.host, order=order), "ndarray": ndarray,
            "get_default_memory_pool": lambda: pool, "__getattr__": other, "__all__": [n for n in np.__all__ if n[0] != "_" and known(n)],
            "from_dlpack": lambda x: there(LIBRARY.wrap(_in_host_memory(x))),
            "__version__": getattr(real, "__version__", "14.2.0"),
        },
        "cupy.cuda": {
            "Stream": CuPyStream, "ExternalStream": CuPyStream, "Device": lambda *_: Device(), "runtime": runtime,
            "get_current_stream": CuPyStream.current, "UnownedMemory": UnownedMemory,
            "MemoryPointer": MemoryPointer, "memory": types.SimpleNamespace(OutOfMemoryError=MemoryError), "__getattr__": absent,
        },
        "cupy.cuda.device": {"Device": Device},
    }  # fmt: skip
    for name, members in modules.items():
        module = sys.modules.get(name)
        for member in members if module is not None else ():
            if not member.startswith("__") and not hasattr(module, member):
                raise AttributeError(f"{name} has no {member}: whoever calls it would fail")
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__spec__ = importlib.machinery.ModuleSpec(name, None)
        vars(sys.modules[name]).update(members)
    sys.modules |= {"cupy.linalg": np.linalg, "cupy.fft": np.fft}
    sys.modules["cupy"].cuda = sys.modules["cupy.cuda"]  # type: ignore[attr-defined]


def _numba() -> None:
    """Numba's own calls of the driver are not emulated: what needs its arrays is skipped."""
    try:
        cuda = importlib.import_module("numba.cuda")
    except ImportError:
        return

    def skip(*_: Any, **__: Any) -> Any:
        raise SkipTest("Numba's device is not emulated")

    gpus = type("Skipped", (), {"__getitem__": skip})()
    _replace(cuda, gpus=gpus, to_device=skip, as_cuda_array=skip, device_array=skip)
