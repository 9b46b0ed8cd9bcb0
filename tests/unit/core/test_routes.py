"""What `explain` says is what `convert` does, on every route off the host and between devices.

The devices of array-api-strict stand for accelerators: arrays stay on them by default, though their
memory is the host's, so that a kernel that is registered for them can really run.
"""

from __future__ import annotations

import ctypes
from itertools import product

import numpy as np
import pytest

import arraybridge as ab
from arraybridge.core.library import Devices
from arraybridge.dlpack import CPU

strict = pytest.importorskip("array_api_strict")


def noting(calls: list):
    """A kernel for memory of the host, which notes the shapes of its copies."""

    def kernel(dst, src, shape, dst_strides, src_strides, itemsize, stream):
        calls.append(shape)
        for index in np.ndindex(*shape):
            to, of = (sum(map(int.__mul__, index, s)) for s in (dst_strides, src_strides))
            ctypes.memmove(dst + to, src + of, itemsize)

    return kernel


@pytest.fixture(autouse=True)
def _unregister():
    """A kernel that a test registers is gone after it."""
    yield
    for device in ("cpu", "cuda", "ext_dev"):
        ab.register_kernel(device, None)


@pytest.fixture
def copied():
    """What a kernel that is registered for array-api-strict's devices has copied."""
    calls = []
    ab.register_kernel("ext_dev", noting(calls), name="mine")
    return calls


def on_device(x: np.ndarray, name: str = "device1"):
    return strict.asarray(x, device=strict.Device(name))


def strided():
    return on_device(np.arange(12.0).reshape(3, 4))[:, ::2]


def test_a_kernel_off_the_host_is_used_where_it_is_named(copied):
    x = strided()
    for n, call in enumerate(
        (
            lambda: ab.contiguous(x),
            lambda: ab.convert(x, "array_api_strict", copy=True),
            lambda: ab.contiguous(ab.from_dlpack(x)).native,
            lambda: ab.from_dlpack(x, copy=True).native,
            lambda: ab.dlpack.acquire(ab.from_dlpack(x), copy=True),
        ),
        1,
    ):
        result = call()
        assert len(copied) == n
        if hasattr(result, "_array"):
            assert result.device == x.device
            np.testing.assert_array_equal(result._array, x._array)
    assert ab.explain(x, "array_api_strict", copy=True).kernel == "mine"
    out = on_device(np.zeros((3, 2)))
    ab.contiguous(x, out=out)
    ab.copyto(out, x)
    assert len(copied) == n + 2
    np.testing.assert_array_equal(out._array, x._array)


def test_without_one_the_library_copies_and_explain_says_so():
    x = strided()
    assert ab.explain(x, "array_api_strict", copy=True).kernel == "array_api_strict's own copy"
    result = ab.convert(x, "array_api_strict", copy=True)
    np.testing.assert_array_equal(result._array, x._array)
    with pytest.raises(ab.ConversionError, match="add one with"):
        ab.copyto(on_device(np.zeros((3, 2))), x)


@pytest.mark.parametrize("registered", [False, True])
def test_memory_that_nothing_copies_is_refused_beforehand(registered):
    x = ab.from_pointer(0x7F0000000000, (3, 4), "float32", device="cuda:0")
    if registered:
        ab.register_kernel("cuda", lambda *_: pytest.fail("there is no memory"), name="mine")
    route = ab.explain(x, "tvm_ffi", copy=True)
    assert (route.kind, route.kernel) == ("refuse", None)
    assert "copy it with the library that made it" in route.why
    assert "register_kernel" not in route.why
    with pytest.raises(ab.ConversionError, match="copy it with the library that made it"):
        ab.convert(x, "tvm_ffi", copy=True)
    assert ab.convert(x, "tvm_ffi").shape == (3, 4)


def test_a_kernel_for_the_host_is_not_passed_by():
    jnp = pytest.importorskip("jax.numpy")
    calls = []
    j = jnp.arange(6.0).reshape(2, 3)
    x = np.arange(6, dtype="f4").reshape(2, 3)[:, ::-1]
    ab.convert(x, "torch")
    ab.register_kernel("cpu", noting(calls), name="mine")
    assert ab.explain(x, "torch").kernel == "mine"
    for _ in range(2):
        assert ab.convert(x, "torch").tolist() == x.tolist()
        assert ab.convert(j, "torch").tolist() == np.asarray(j).tolist()
    assert calls == [(2, 3)] * 2  # contiguous memory is moved without one
    assert (ab.contiguous(x) == x).all()
    ab.copyto(np.empty((2, 3), "f4"), x)
    assert (ab.convert(x, "numpy", order="F", copy=True) == x).all()
    assert calls[2:] == [(2, 3), (2, 3), (3, 2)]
    ab.register_kernel("cpu", None)
    ab.contiguous(x)
    assert len(calls) == 5


@pytest.mark.parametrize("device", ["ext_dev:0", ab.Device.parse("ext_dev:1")])
def test_a_kernel_is_not_of_one_device(device: str | ab.Device) -> None:
    with pytest.raises(ValueError, match="pass 'ext_dev'"):
        ab.register_kernel(device, noting([]))


class Held:
    """An array of a user's library: NumPy's on a device that it only says it is on."""

    def __init__(self, array, device):
        self.array, self.device = array, device


def library_with(parts):
    """A library that has some of the methods that no library need have, and its arrays' class."""
    kind = type("Its", (Held,), {})

    class Users(ab.Library):
        name = "users"
        accepts = ab.Accepts(
            library="users",
            tested="1",
            dtypes=frozenset({"float64"}),
            devices=frozenset({1, 12}),
        )

        def owns(self, array_type):
            return issubclass(array_type, kind)

        def export(self, x, stream=None):
            a = x.array
            strides = tuple(step // a.itemsize for step in a.strides)
            return ab.dlpack.ManagedTensor.adopt(
                a.ctypes.data,
                a.shape,
                ab.DataType.named("float64"),
                owner=a,
                device=x.device,
                strides=strides,
            )

    def wrap(self, tensor):
        memory = ab.from_pointer(
            tensor.pointer,
            tensor.shape,
            tensor.dtype,
            device="cpu",
            strides=tensor.strides,
            owner=tensor.owner,
        )
        return kind(memory.to("numpy"), tensor.device)

    def to_device(self, x, device):
        moved = getattr(x, "array", x).copy()
        return moved if device == CPU else kind(moved, device)

    optional = {
        "wrap": wrap,
        "empty": lambda self, info, like=None: kind(np.empty(info.shape), info.device),
        "copy": lambda self, x: kind(x.array.copy(order="C"), x.device),
        "to_device": to_device,
    }
    Users.devices = type("Its", (Devices,), {})()
    for part in parts:
        owner = Users if part in ("wrap", "copy") else type(Users.devices)
        setattr(owner, part, optional[part])
    return Users(), kind


@pytest.mark.parametrize("registered", [False, True])
@pytest.mark.parametrize("place", [(1, 0), (12, 0), (12, 1)])
def test_a_library_with_few_methods_does_what_explain_says(copied, registered, place):
    if not registered:
        ab.register_kernel("ext_dev", None)
    array = np.arange(6.0).reshape(2, 3)
    parts = ("wrap", "empty", "copy", "to_device")
    for has in product((False, True), repeat=len(parts)):
        library, kind = library_with([p for p, there in zip(parts, has, strict=True) if there])
        ab.register_library(library)
        try:
            for x, to, device, copy in product(
                (kind(array, ab.Device(*place)), kind(array.T, ab.Device(*place))),
                ("users", "numpy", "array_api_strict"),
                (None, "cpu", "ext_dev:0", "ext_dev:1"),
                (None, False, True),
            ):
                route = ab.explain(x, to, device=device, copy=copy)
                before = len(copied)
                if route.kind == "refuse":
                    with pytest.raises(ab.ConversionError) as error:
                        ab.convert(x, to, device=device, copy=copy)
                    assert str(error.value) == route.why
                    continue
                result = ab.convert(x, to, device=device, copy=copy)
                info = ab.inspect(result)
                assert info.device == route.device
                assert (route.kind == "view") == (info.pointer == x.array.ctypes.data)
                if route.kind == "copy":
                    assert (route.kernel == "mine") == (len(copied) > before)
                shown = getattr(result, "array", getattr(result, "_array", result))
                np.testing.assert_array_equal(shown, x.array)
        finally:
            ab.unregister_library("users")
