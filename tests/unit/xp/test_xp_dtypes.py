"""Every function that takes a data type: as the namespace's object, and as an instance."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import arraybridge as ab
from arraybridge.array.dtypes import DType
from arraybridge.xp.standard import functions_of
from arraybridge.xp.standard.data_types import DATA_TYPES, KINDS
from tests.support.namespaces import Namespace, each_face, each_library, namespaces
from tests.support.optional import installed, optional

torch = optional("torch")

pytestmark = pytest.mark.usefixtures("x64")

REAL = (*KINDS["integral"], *KINDS["real floating"])

# What takes a data type: how it is called with an array and a data type, and with which ones.
CALLS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "arange": (lambda f, x, d: f(3, dtype=d), REAL),
    "asarray": (lambda f, x, d: f(x, dtype=d), DATA_TYPES),
    "astype": (lambda f, x, d: f(x, d, copy=False), DATA_TYPES),
    "eye": (lambda f, x, d: f(2, dtype=d), DATA_TYPES),
    "full": (lambda f, x, d: f((2,), True, dtype=d), DATA_TYPES),
    "full_like": (lambda f, x, d: f(x, True, dtype=d), DATA_TYPES),
    "linspace": (lambda f, x, d: f(0, 4, 3, dtype=d), KINDS["numeric"]),
    "linalg.trace": (lambda f, x, d: f(x, dtype=d), KINDS["numeric"]),
    "fft.fftfreq": (lambda f, x, d: f(3, dtype=d), KINDS["real floating"]),
    "fft.rfftfreq": (lambda f, x, d: f(3, dtype=d), KINDS["real floating"]),
    **{name: (lambda f, x, d: f((2,), dtype=d), DATA_TYPES) for name in ("empty", "ones", "zeros")},
    **{
        f"{name}_like": (lambda f, x, d: f(x, dtype=d), DATA_TYPES)
        for name in ("empty", "ones", "zeros")
    },
    **{name: (lambda f, x, d: f(x, dtype=d), KINDS["numeric"]) for name in ("prod", "sum")},
    **{
        f"cumulative_{name}": (lambda f, x, d: f(x, axis=0, dtype=d), KINDS["numeric"])
        for name in ("prod", "sum")
    },
}


def takes_dtype(template: Any) -> bool:
    parameters = inspect.signature(template).parameters
    return "dtype" in parameters and template.__annotations__["return"] == "Array"


def test_every_function_that_takes_a_dtype_is_called():
    namespace = namespaces("array_api_strict")[0].xp
    assert {path for _, path, _, t in functions_of(namespace) if takes_dtype(t)} == set(CALLS)


def spellings(namespace: Namespace, name: str) -> dict[str, Any]:
    own = getattr(namespace.xp, name)
    instance = namespace.xp.zeros((1,), dtype=own).dtype
    found = {
        "the namespace's": own,
        "an array's": instance,
        "result_type's": namespace.xp.result_type(instance, instance),
    }
    if namespace.library in ("numpy", "torch", "jax"):
        found |= {"NumPy's": np.dtype(name), "NumPy's class": np.dtype(name).type}
    if namespace.library in ("numpy", "torch", "dpnp") and torch:
        found["of an Array of PyTorch"] = DType(getattr(torch, name))
    return found


@each_face
@pytest.mark.parametrize("path", CALLS)
def test_a_dtype_is_taken_however_it_is_written(path, namespace):
    """``np.dtype("float64")`` equals None: asked for by an instance, it was not asked for."""
    call, names = CALLS[path]
    if namespace.library == "jax":  # which compiles for each
        names = tuple(n for n in names if n in ("bool", "int8", "int64", "float64", "complex128"))
    function = namespace.function(path)
    for source in ("int64", "float32", "float64"):
        x = namespace.enter(np.ones((2, 2), source))
        for name in names:
            for spelling, dtype in spellings(namespace, name).items():
                result = call(function, x, dtype)
                assert namespace.dtype_name(result) == name, (source, spelling)


@each_library
def test_asarray_of_its_own_kind_is_the_array_itself(library):
    """Of the dtype and the device that it has, however they are written."""
    namespace = namespaces(library)[0]
    for name in ("int32", "float64"):
        x = namespace.enter(np.ones((2, 2), name))
        for dtype in (None, *spellings(namespace, name).values()):
            assert namespace.xp.asarray(x, dtype=dtype) is x
            assert namespace.xp.asarray(x, dtype=dtype, device=x.device) is x
            assert namespace.xp.asarray(x, dtype=dtype, copy=True) is not x


class TestQuestions:
    """What is no data type is a TypeError that says so, on every library and both namespaces."""

    NONE = (None, "no dtype", 1.5, object(), [], {})

    @staticmethod
    def strangers(library: str) -> tuple[Any, ...]:
        """Other libraries' data types."""
        if library == "torch":
            return np.str_, np.dtype("M8[s]"), "int8"
        return (torch.float32,) if installed("torch") else ()

    ASKED = (
        lambda xp, other: xp.finfo(other),
        lambda xp, other: xp.iinfo(other),
        lambda xp, other: xp.isdtype(other, "bool"),
        lambda xp, other: xp.can_cast(other, xp.int8),
        lambda xp, other: xp.can_cast(xp.int8, other),
        lambda xp, other: xp.result_type(xp.ones(2), other),
    )

    @each_face
    def test_what_is_no_dtype(self, namespace):
        for other in (*self.NONE, *self.strangers(namespace.library)):
            for ask in self.ASKED[:5] if isinstance(other, float) else self.ASKED:
                with pytest.raises(TypeError, match=r"takes .*, got"):
                    ask(namespace.xp, other)

    @each_face
    def test_scalars_alone_have_no_dtype(self, namespace):
        for scalars in ((), (1,), (True, 1.5)):
            with pytest.raises(ValueError, match="at least one array or data type"):
                namespace.xp.result_type(*scalars)
        assert namespace.xp.result_type(namespace.xp.int8, 1) == namespace.xp.int8

    @each_face
    def test_scalars_of_numpy(self, namespace):
        """They have a data type on NumPy, and are Python scalars elsewhere, as in operators."""
        x = namespace.xp.ones(2, dtype=namespace.xp.float32)
        of_float64 = namespace.xp.result_type(x, np.float64("nan"))
        assert of_float64 == (
            namespace.xp.float64 if namespace.library == "numpy" else namespace.xp.float32
        )
        assert namespace.xp.result_type(x, np.float32(1)) == namespace.xp.float32
        with pytest.raises(TypeError, match=r"takes .*, got"):
            namespace.xp.result_type(x, np.datetime64("2020"))

    @each_face
    def test_limits_of_the_other_kind(self, namespace):
        xp = namespace.xp
        for other in (xp.int32, xp.bool, xp.ones(2, dtype=xp.int8), int):
            with pytest.raises(TypeError, match="finfo takes floating-point"):
                xp.finfo(other)
        for other in (xp.float32, xp.bool, xp.ones(2, dtype=xp.complex64), float):
            with pytest.raises(TypeError, match="iinfo takes integer"):
                xp.iinfo(other)
        assert xp.finfo(xp.ones(2, dtype=xp.complex64)).bits == 32
        assert xp.iinfo(xp.ones(2, dtype=xp.int16)).max == 2**15 - 1

    @each_face
    def test_isdtype_of_an_array(self, namespace):
        with pytest.raises(TypeError, match="isdtype takes data types"):
            namespace.xp.isdtype(namespace.xp.ones(2), "bool")
        with pytest.raises(TypeError, match="names of kinds"):
            namespace.xp.isdtype(namespace.xp.int8, ("bool", 1))

    @each_face
    def test_astype_of_no_dtype_is_no_float64(self, namespace):
        x = namespace.xp.asarray([1, 2])
        for arguments in ((x, None), (x,)):
            with pytest.raises(TypeError):
                namespace.xp.astype(*arguments)
        assert namespace.xp.astype(x, namespace.xp.int8).dtype == namespace.xp.int8

    @each_face
    def test_devices_are_a_tuple_that_takes_a_list(self, namespace):
        """2025.12 has a tuple; SciPy adds a list, which earlier versions of the standard had."""
        devices = namespace.xp.__array_namespace_info__().devices()
        assert isinstance(devices, tuple)
        assert devices
        assert None not in devices
        assert devices + [None] == [*devices, None]  # noqa: RUF005
        assert [None] + devices == [None, *devices]  # noqa: RUF005
        assert devices + (None,) == (*devices, None)  # noqa: RUF005

    @each_face
    def test_kinds_that_there_are_not(self, namespace):
        with pytest.raises(ValueError, match="kind"):
            namespace.xp.__array_namespace_info__().dtypes(kind="text")


SPANS = [(0, 10, 4), (-10, 0, 4), (10, -3, 5), (0.5, 9.5, 7), (3, 3, 2), (0, 5, 1), (0, 5, 0)]


@each_face
@pytest.mark.parametrize("endpoint", [True, False])
def test_integers_of_an_interval(endpoint, namespace):
    """Rounded down, as NumPy has them; exact beyond float64's integers; never wrapped."""
    for name in KINDS["integral"]:
        dtype = getattr(namespace.xp, name)
        for start, stop, num in SPANS:
            if name.startswith("u") and min(start, stop) < 0:
                with pytest.raises(OverflowError):
                    namespace.xp.linspace(start, stop, num, dtype=dtype, endpoint=endpoint)
                continue
            found = namespace.xp.linspace(start, stop, num, dtype=dtype, endpoint=endpoint)
            expected = np.linspace(start, stop, num, dtype=name, endpoint=endpoint)
            assert namespace.dtype_name(found) == name
            np.testing.assert_array_equal(namespace.left(found), expected)
        with pytest.raises(OverflowError):
            namespace.xp.linspace(0, 2**70, 3, dtype=dtype, endpoint=endpoint)
    wide = namespace.xp.linspace(2**64 - 4, 2**64 - 1, 4, dtype=namespace.xp.uint64)
    assert namespace.left(wide).tolist() == [2**64 - 4, 2**64 - 3, 2**64 - 2, 2**64 - 1]


@pytest.mark.parametrize("library", ["numpy", "torch", "jax", "array_api_strict"])
def test_a_data_type_or_a_device_that_a_library_does_not_have(library):
    xp = import_module(f"arraybridge.xp.{library}")
    x = xp.ones(2)
    calls = (
        lambda **given: xp.asarray([1], **given),
        lambda **given: xp.zeros(2, **given),
        lambda **given: xp.full_like(x, 1, **given),
        lambda **given: xp.linspace(0, 1, 2, **given),
    )
    typed = (
        lambda dtype: xp.astype(x, dtype),
        lambda dtype: xp.sum(x, dtype=dtype),
        *(lambda dtype, call=call: call(dtype=dtype) for call in calls),
    )
    own = library == "torch"  # NumPy and JAX take names; array-api-strict warns of them
    for wrong in (ab.DataType.named("int32"), *(("int32",) if own else ())):
        for call in typed:
            with pytest.raises(TypeError, match=rf"such as arraybridge\.xp\.{library}\.int32, got"):
                call(wrong)
    for device in ("cpu:99", "vulkan", ab.Device.parse("vulkan:1")):
        for call in calls:
            with pytest.raises(ab.ConversionError, match=r"(?i)has no .*(has|are) .*cpu"):
                call(device=device)
    for device in (3, True, 2.5, [1, 0]):
        for call in calls:
            with pytest.raises(TypeError, match=r"device must be an arraybridge\.Device"):
                call(device=device)
