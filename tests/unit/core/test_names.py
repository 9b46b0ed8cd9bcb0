"""Names: of libraries to type checkers, of devices by anybody's object, ``like=`` by a name."""

from __future__ import annotations

import inspect
import re
from types import SimpleNamespace
from typing import Literal, get_args, get_origin, get_overloads

import numpy as np
import pytest

import arraybridge as ab
from arraybridge import signatures
from arraybridge.core.library import place_named
from arraybridge.libraries import LIBRARIES
from tests.support.optional import installed, optional

torch, jax = optional("torch"), optional("jax")
heavy = pytest.mark.heavy
SOURCE = inspect.getsource(signatures)
OVERLOADS = get_overloads(
    SimpleNamespace(__module__=signatures.__name__, __qualname__="Convert.__call__")
)


def name_of(alias: str) -> str:
    """The name of a library in the type of the argument that takes it."""
    said = eval(getattr(signatures, alias), {"Literal": Literal, **vars(signatures)})
    return get_args(said if get_origin(said) is Literal else get_args(said)[0])[0]


RESULTS = {  # the name of a library -> what its overload returns
    name_of(said["to"]): getattr(signatures, said["return"], said["return"])
    for said in (overload.__annotations__ for overload in OVERLOADS)
    if said["return"] not in ("Any", "T")
}
MODULES = {short: full for full, short in re.findall(r"import (\S+) as (\w+)", SOURCE)}


def test_the_names_are_those_of_the_libraries():
    assert set(get_args(signatures.LibraryName)) == {entry.name for entry in LIBRARIES}


def test_the_overloads_have_the_keywords_and_the_names_of_convert():
    parameters = inspect.signature(ab.convert).parameters
    assert set(signatures.Options.__annotations__) == {
        name for name, p in parameters.items() if p.kind is p.KEYWORD_ONLY
    }
    for function in (ab.explain, ab.convert):
        assert inspect.signature(function).parameters.keys() == parameters.keys()
    named = []
    for overload in OVERLOADS:
        given = inspect.signature(overload).parameters
        assert list(given) == ["self", "x", "to", "kw"]
        named.append(given["to"].annotation)
    assert len(named) == len(set(named)) > 10
    assert set(map(name_of, named[:-3])) <= set(get_args(signatures.LibraryName))
    assert named[-3:] == ["_Tensors[T]", "_Ndarrays[T]", "Named"]  # modules, and what is unknown
    assert signatures.Named == "LibraryName | ModuleType"


QUICK = ("numpy", "torch", "jax", "tvm_ffi", "pyarrow", "pyarrow.Array", "pillow", "dask")


@pytest.mark.parametrize(
    "library",
    [
        pytest.param(name, marks=[] if name in QUICK else heavy)
        for name in RESULTS
        if name not in ("cupy", "dpnp")  # whose arrays are on other devices
    ],
)
def test_the_overloads_name_the_class_of_the_result(library):
    package = RESULTS[library].partition("[")[0].rpartition(".")
    made = getattr(pytest.importorskip(MODULES.get(package[0], package[0])), package[2])
    x = np.ones(3 if library == "pyarrow.Array" else (4, 4, 3), "u1")
    assert isinstance(ab.convert(x, library), made)


@pytest.mark.parametrize("library", ["torch", "jax", "array_api_strict"])
def test_unify_takes_a_name_or_a_module_for_the_model(library):
    module = pytest.importorskip(library)
    x, y = np.ones((2, 3), "f4"), ab.from_dlpack(np.zeros(3, "f4"))
    for like in (library, module):
        xp, a, [b, n], s = ab.unify(x, [y, 3], "text", like=like)
        assert xp is ab.namespace(a)
        assert ab.inspect(a).library == ab.inspect(b).library == library
        assert (n, s) == (3, "text")
    assert ab.unify(3, like=library)[1] == 3


def devices():
    """Objects of every light library for the CPU."""
    yield from ("cpu", ab.Device("cpu"), (1, 0), ab.DeviceType.CPU)
    if installed("torch"):
        yield torch.device("cpu")
    if installed("jax"):
        yield jax.devices("cpu")[0]
        yield jax.sharding.SingleDeviceSharding(jax.devices("cpu")[0])
    if installed("tvm_ffi"):
        import tvm_ffi

        yield tvm_ffi.device("cpu")
    if installed("array_api_strict"):
        import array_api_strict

        yield array_api_strict.Device("CPU_DEVICE")


def check(device: object) -> None:
    """Everything that takes a device takes this one."""
    x = np.ones(2, "f4")
    assert place_named(device) == ab.Device("cpu")
    for target in ("numpy", "torch", "jax"):
        if installed(target):
            assert ab.inspect(ab.convert(x, target, device=device)).device == (1, 0)
            assert ab.explain(x, target, device=device).kind != "refuse"
            assert ab.unify(x, like=target, device=device)[1].shape == (2,)
            assert ab.asarray([1, 2], like=target, device=device).shape == (2,)
            xp = getattr(ab.xp, target)
            assert xp.asarray([1, 2], device=device).shape == (2,)
            assert xp.zeros(2, device=device).to_device(device).shape == (2,)
    assert ab.adapt("numpy", device=device)(lambda x: x + 1)(x).tolist() == [2, 2]
    assert ab.from_dlpack(x, device=device).device == (1, 0)
    assert ab.from_dlpack(x).to(device=device).device == (1, 0)


@pytest.mark.parametrize("device", list(devices()), ids=repr)
def test_devices_of_all_libraries_everywhere(device):
    check(device)


@pytest.mark.heavy
def test_devices_of_tensorflow():
    tf = pytest.importorskip("tensorflow")
    for device in (
        tf.constant(1.0).device,
        tf.config.list_logical_devices("CPU")[0],
        tf.config.list_physical_devices("CPU")[0],
        tf.DeviceSpec.from_string("/device:CPU:0"),
        "/CPU:0",
    ):
        check(device)
    assert place_named("/device:GPU:1") == ab.Device("cuda:1")
    with pytest.raises(ValueError, match="unknown device"):
        place_named("/device:XPU:1")


@pytest.mark.heavy
def test_devices_of_paddle():
    paddle = pytest.importorskip("paddle")
    check(paddle.CPUPlace())
    check(paddle.to_tensor([1]).place)


@pytest.mark.heavy
def test_devices_of_warp_and_mlx():
    warp, mlx = pytest.importorskip("warp"), pytest.importorskip("mlx.core")
    check(warp.get_device("cpu"))
    check(mlx.cpu)
    check(mlx.Device(mlx.cpu))
    assert place_named(mlx.gpu).type == ab.DeviceType.METAL


@pytest.mark.parametrize("obj", [3, 1.5, True, 2j, [1, 2], [[0.5]], (), np.float32(2)], ids=repr)
@pytest.mark.parametrize("library", ["numpy", "torch", "jax", "array_api_strict"])
def test_asarray_makes_what_the_library_makes_of_numbers(library, obj):
    pytest.importorskip(library)
    xp = ab.namespace(ab.convert(np.ones(1, "f4"), library))
    wanted, result = xp.asarray(obj), ab.asarray(obj, like=library)
    assert type(result) is type(wanted)
    assert result.dtype == wanted.dtype
    assert ab.convert(result, "numpy").tolist() == ab.convert(wanted, "numpy").tolist()
    wrapped = ab.asarray(obj, like=ab.from_dlpack(wanted))
    assert isinstance(wrapped, ab.Array)
    assert wrapped.native.dtype == wanted.dtype


def test_asarray_of_arrays_is_convert():
    x = np.arange(3, dtype="f4")
    assert ab.asarray(x, like="numpy") is x
    assert ab.asarray(x, like=np.ones(1), copy=True) is not x
    a = ab.from_dlpack(x)
    assert ab.asarray(a, like=a) is a
    assert ab.asarray(x, like={"model": a}).native is x
    with pytest.raises(ValueError, match="copy is"):
        ab.asarray(x, like="numpy", copy="no")
    if installed("torch"):
        t = ab.asarray(x, like=torch)
        assert t.data_ptr() == x.ctypes.data
        assert ab.asarray([1.5], like=t, dtype=torch.bfloat16).dtype is torch.bfloat16
    if installed("pyarrow"):
        assert ab.asarray([1, 2], like="pyarrow").shape == (2,)
    with pytest.raises(TypeError, match="like="):
        ab.asarray([1], like=[2])
    if installed("jax"):
        with jax.enable_x64(False), pytest.raises(ab.ConversionError, match="jax has no float64"):
            ab.asarray([1.0], like="jax", dtype="float64")
    assert ab.inspect(ab.asarray([1.0], like="numpy", dtype="bfloat16")).dtype.name == "bfloat16"


@pytest.mark.heavy
@pytest.mark.parametrize("library", ["tensorflow", "paddle", "mlx"])
def test_asarray_of_libraries_without_a_namespace(library):
    pytest.importorskip(library)
    for dtype in (None, "float16"):
        x = ab.asarray([1.0, 2.0], like=library, dtype=dtype)
        assert ab.inspect(x).library == library
        assert ab.inspect(x).dtype.name == (dtype or "float32")
