"""Devices that a library is built for and that are not here: CUDA without a driver, ``cuda:999``.

What ``pip install torch`` gives on Linux is a build for CUDA, on whatever machine. Builds for the
CPU refuse the same calls in other words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import arraybridge as ab
from arraybridge import dlpack
from arraybridge.cli import main
from arraybridge.core.planner import absent_device
from arraybridge.core.registry import library_named
from arraybridge.kernels import cuda
from arraybridge.kernels.cuda import driver, transfer
from tests.support.optional import needs

NOT_HERE = r"finds no|has no"
BEYOND = 999  # no machine has as many
X = np.arange(6.0, dtype="float32").reshape(2, 3)


def param(name: str, kind: str, *marks: Any) -> Any:
    return pytest.param(name, kind, id=name, marks=[needs(name), *marks])


LIBRARIES = [
    param("torch", "cuda"),
    param("cupy", "cuda"),
    param("jax", "cuda"),
    param("numpy", "cuda"),
    param("array_api_strict", "ext_dev"),
    *(param(name, "cuda", pytest.mark.heavy) for name in ("paddle", "tensorflow", "warp")),
    param("dpnp", "oneapi", pytest.mark.heavy),
]


def places(kind: str) -> list[Any]:
    """The same device by its name, its pair and the object."""
    place = ab.Device.parse(f"{kind}:{BEYOND}")
    return [str(place), (int(place.type), BEYOND), place]


@pytest.mark.parametrize(("name", "kind"), LIBRARIES)
def test_every_caller_refuses_a_device_that_is_not_here(name: str, kind: str) -> None:
    own = library_named(name)
    for place in places(kind):
        calls: dict[str, Callable[[], Any]] = {
            "convert": lambda place=place: ab.convert(X, name, device=place),
            "copied": lambda place=place: ab.convert(X, name, device=place, copy=True),
            "cast": lambda place=place: ab.convert(X, name, device=place, dtype="float64"),
            "ordered": lambda place=place: ab.convert(X, name, device=place, order="F"),
            "asarray": lambda place=place: ab.asarray(X, like=name, device=place),
            "numbers": lambda place=place: ab.asarray([1.0, 2.0], like=name, device=place),
            "unify": lambda place=place: ab.unify(X, like=name, device=place),
            "adapt": lambda place=place: ab.adapt(name, device=place)(lambda x: x)(X),
            "memory": lambda place=place: ab.convert(
                ab.from_pointer(64, (3,), "float32", device=place), name
            ),
        }
        if own.native_namespace() is None:
            del calls["unify"]
        for what, call in calls.items():
            with pytest.raises(ab.ConversionError) as caught:
                call()
            assert re.search("here|has|cannot address", str(caught.value)), what
            if what == "convert":
                route = ab.explain(X, name, device=place)
                assert (route.kind, route.why) == ("refuse", str(caught.value))


MADE = {
    "asarray": lambda xp, **at: xp.asarray([1.0, 2.0], **at),
    "asarray of NumPy's": lambda xp, **at: xp.asarray(X, **at),
    "from_dlpack": lambda xp, **at: xp.from_dlpack(X, **at),
    "arange": lambda xp, **at: xp.arange(3, **at),
    "empty": lambda xp, **at: xp.empty((2,), **at),
    "empty_like": lambda xp, **at: xp.empty_like(xp.ones(2), **at),
    "eye": lambda xp, **at: xp.eye(2, **at),
    "full": lambda xp, **at: xp.full((2,), 1.0, **at),
    "full_like": lambda xp, **at: xp.full_like(xp.ones(2), 1.0, **at),
    "linspace": lambda xp, **at: xp.linspace(0, 1, 3, **at),
    "ones": lambda xp, **at: xp.ones((2,), **at),
    "ones_like": lambda xp, **at: xp.ones_like(xp.ones(2), **at),
    "zeros": lambda xp, **at: xp.zeros((2,), **at),
    "zeros_like": lambda xp, **at: xp.zeros_like(xp.ones(2), **at),
    "fft.fftfreq": lambda xp, **at: xp.fft.fftfreq(4, **at),
}


@pytest.mark.parametrize("function", MADE)
@pytest.mark.parametrize("name", [pytest.param(n, marks=needs(n)) for n in ("torch", "cupy")])
def test_the_namespaces_refuse_it(name: str, function: str) -> None:
    over_arrays = import_module(f"arraybridge.xp.{name}")
    native = import_module(f"arraybridge.libraries.{name}.namespace").native
    device = ab.Device.parse(f"cuda:{BEYOND}")
    with pytest.raises(ab.ConversionError, match=NOT_HERE):
        MADE[function](over_arrays, device=device)
    # A device as the library itself writes it, to both of its namespaces.
    if name == "torch":
        own = import_module("torch").device("cuda", 99)
        for xp in (over_arrays, native):
            with pytest.raises(ab.ConversionError, match=NOT_HERE):
                MADE[function](xp, device=own)


def test_an_array_moves_to_no_device_that_is_not_here() -> None:
    torch = pytest.importorskip("torch")
    xp = import_module("arraybridge.xp.torch")
    x = xp.ones(3)
    for place in (f"cuda:{BEYOND}", (2, BEYOND), torch.device("cuda", 99)):
        with pytest.raises(ab.ConversionError, match=NOT_HERE):
            x.to_device(place)
    assert x.to_device("cpu") is x
    assert xp.__array_namespace_info__().devices()  # without a warning


def test_a_call_that_fails_for_another_reason_keeps_its_error() -> None:
    torch = pytest.importorskip("torch")
    native = ab.namespace(torch.ones(1))
    with pytest.raises(RuntimeError, match="negative") as caught:
        native.zeros((-1,), device="cpu")
    assert not isinstance(caught.value, ab.ConversionError)


def without_a_driver(name: str) -> bool:
    """Whether a library is built for CUDA and finds no device, by its own word."""
    if name == "torch":
        torch = pytest.importorskip("torch")
        return bool(torch.version.cuda) and not torch.cuda.is_available()
    runtime = pytest.importorskip("cupy", exc_type=ImportError).cuda.runtime
    try:
        return bool(runtime.getDeviceCount() == 0)
    except runtime.CUDARuntimeError:
        return True


@pytest.mark.parametrize("name", ["torch", "cupy"])
def test_a_build_for_cuda_without_a_driver(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    if not without_a_driver(name):
        pytest.skip(f"{name} has a CUDA device, or is not built for any")
    told = "finds no usable cuda device here: it needs an NVIDIA GPU and a driver"
    for place in ("cuda", "cuda:0", "cuda:7", (2, 0)):
        route = ab.explain(X, name, device=place)
        assert route.kind == "refuse"
        assert told in route.why
        with pytest.raises(ab.ConversionError, match=told):
            ab.convert(X, name, device=place)
    assert main(["explain", "numpy", name, "--device", "cuda"]) == 1
    assert "no usable cuda device" in " ".join(capsys.readouterr().out.split())
    memory = ab.from_pointer(64, (3,), "float32", device="cuda")
    assert told in str(ab.explain(memory, name))
    with pytest.raises(ab.ConversionError, match=told):
        ab.convert(memory, name)
    # Nothing else computes there, and the one that would says why it does not.
    for call in (lambda: memory + 1, lambda: ab.namespace(memory), lambda: memory.to(name)):
        with pytest.raises(ab.ConversionError, match=told):
            call()


def test_cupy_without_a_driver_makes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    if not without_a_driver("cupy"):
        pytest.skip("there is a CUDA device")
    xp = import_module("arraybridge.xp.cupy")
    for name, make in MADE.items():
        if not name.endswith(("_like", "dlpack")):
            with pytest.raises(ab.ConversionError, match="no usable cuda device"):
                make(xp)
    assert xp.__array_namespace_info__().devices() == ()
    assert main(["info", "cupy"]) == 0
    with pytest.raises(SystemExit) as ended:
        main(["explain", "cupy", "numpy"])
    assert ended.value.code == 2
    assert "no usable cuda device" in " ".join(capsys.readouterr().err.split())


def test_what_is_said_of_one_of_several() -> None:
    device = ab.Device.parse("cuda:7")
    assert absent_device("PyTorch", device, 8) is None
    assert absent_device("PyTorch", device, 1) == "PyTorch finds no cuda:7 here, only cuda:0"
    assert absent_device("PyTorch", device, 4) == (
        "PyTorch finds no cuda:7 here, only cuda:0 to cuda:3"
    )
    assert "driver" in str(absent_device("PyTorch", device, 0))
    assert str(absent_device("X", ab.Device.parse("metal"), 0)).startswith(
        "X finds no usable metal device here; without one"
    )


class OnADevice:
    """An array of no known library in the memory of a CUDA device, which is none."""

    def __init__(self, kind: int) -> None:
        self.kind = kind

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.kind, 0

    def __dlpack__(self, **_: object) -> object:
        kind = dlpack.DataType.named("float32")
        device = ab.Device(self.kind)
        tensor = dlpack.ManagedTensor.adopt(
            64, (2, 3), kind, owner=self, device=device, strides=(1, 2)
        )
        return dlpack.to_capsule(tensor)


class ByInterface:
    """The same, by the CUDA array interface."""

    def __init__(self, kind: int) -> None:
        fields = {"shape": (2, 3), "typestr": "<f4", "data": (64, False), "version": 3}
        self.__cuda_array_interface__ = fields | {"strides": (4, 8), "stream": 77}


SOURCES = {
    "DLPack": OnADevice,
    "capsule": lambda kind: OnADevice(kind).__dlpack__(),
    "interface": ByInterface,
    "Array": lambda kind: ab.from_dlpack(OnADevice(kind)),
    "Array of the interface": lambda kind: ab.from_dlpack(ByInterface(kind)),
    "pointer": lambda kind: ab.from_pointer(
        64, (2, 3), "f4", device=ab.Device(kind), strides=(1, 2)
    ),
}
CALLS = {
    "copy": lambda x: ab.convert(x, "torch", copy=True),
    "cast": lambda x: ab.convert(x, "numpy", dtype="f8"),
    "fetch": lambda x: ab.convert(x, "numpy", device="cpu"),
    "contiguous": ab.contiguous,
    "copyto": lambda x: ab.copyto(x, ab.from_dlpack(OnADevice(2))),
    "from_dlpack, copy": lambda x: ab.from_dlpack(x, copy=True),
    "from_dlpack, device": lambda x: ab.from_dlpack(x, device="cpu"),
    "__dlpack__": lambda x: ab.from_dlpack(x).__dlpack__(copy=True, max_version=(1, 0)),
    "to the CPU": lambda x: ab.from_dlpack(x).__dlpack__(dl_device=(1, 0), max_version=(1, 0)),
    "unify": lambda x: ab.unify(x, X),
    "adapt": lambda x: ab.adapt("numpy", device="cpu")(np.sum)(x),
}


@pytest.fixture
def no_driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No driver, wherever this runs."""
    monkeypatch.setattr(driver, "_NAMES", ("no-such-driver",))
    driver.install(None)
    yield
    driver.install(None)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("call", CALLS)
def test_memory_of_a_device_without_a_driver(source: str, call: str, no_driver: None) -> None:
    """Nobody reads it, and who is asked to says what is missing, in words of our own."""
    x = SOURCES[source](2)
    with pytest.raises((ab.ConversionError, ImportError)) as caught:
        CALLS[call](x)
    assert re.search(
        "no NVIDIA driver|no usable cuda device|no installed library computes on cuda:0"
        "|cannot address|in the library that made",
        str(caught.value),
    ), caught.value


def test_the_kernels_without_a_driver(no_driver: None) -> None:
    block = np.zeros(16, "f4")
    at = block.ctypes.data
    for call in (
        lambda: cuda.copy(at, at + 32, (2, 3), (12, 4), (4, 8), 4),
        lambda: cuda.compact(at, at + 32, (2, 3), (1, 2), 4),
        lambda: transfer.upload(at, at + 32, (2, 3), (12, 4), 4, None, 0),
        lambda: transfer.fetch(at, at + 32, 24, None, 0),
        lambda: transfer.move(at, at + 32, 24, (None, None), (0, 1)),
    ):
        with pytest.raises(cuda.CUDAError, match="no NVIDIA driver"):
            call()
    assert "no NVIDIA driver" in str(cuda.unavailable())
