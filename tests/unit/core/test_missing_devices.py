"""Devices that are not here: ``cuda:999``, and CUDA without a driver."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import arraybridge as ab
from arraybridge import dlpack
from arraybridge.core.registry import library_named
from arraybridge.kernels.cuda import driver
from tests.support.optional import needs

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


@pytest.mark.parametrize(("name", "kind"), LIBRARIES)
def test_every_caller_refuses_a_device_that_is_not_here(name: str, kind: str) -> None:
    own = library_named(name)
    place = ab.Device.parse(f"{kind}:{BEYOND}")
    calls: list[Callable[[], Any]] = [
        lambda: ab.convert(X, name, device=str(place)),
        lambda: ab.convert(X, name, device=place, copy=True),
        lambda: ab.convert(X, name, device=tuple(place), dtype="float64"),
        lambda: ab.convert(X, name, device=place, order="F"),
        lambda: ab.asarray(X, like=name, device=place),
        lambda: ab.asarray([1.0, 2.0], like=name, device=place),
        lambda: ab.adapt(name, device=place)(lambda x: x)(X),
        lambda: ab.convert(ab.from_pointer(64, (3,), "float32", device=place), name),
    ]
    if own.computing.native_namespace() is not None:
        calls.append(lambda: ab.unify(X, like=name, device=place))
    for call in calls:
        with pytest.raises(ab.ConversionError, match=r"here|has|cannot address"):
            call()
    route = ab.explain(X, name, device=place)
    with pytest.raises(ab.ConversionError, match=re.escape(route.why)):
        ab.convert(X, name, device=place)


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
    "interface": ByInterface,
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
    "from_dlpack": lambda x: ab.from_dlpack(x, copy=True),
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
