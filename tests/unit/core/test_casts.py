"""``convert(..., dtype=, casting=, order=)`` against NumPy's ``astype``, and its refusals."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import arraybridge as ab
from arraybridge.core.cast_rules import CASTINGS, allowed, data_type_named
from arraybridge.ndarrays import EXTENDED, NATIVE, numpy_dtype
from tests.support.arrays import same
from tests.support.optional import installed, optional
from tests.support.strategies import STANDARD_DTYPES, strided_arrays

torch, jax = optional("torch"), optional("jax")
ml_dtypes = pytest.importorskip("ml_dtypes")

TARGETS = [
    name
    for name in ("numpy", "torch", "jax", "pyarrow", "tvm_ffi", "array_api_strict")
    if installed(name)
]


def cast(x: np.ndarray, name: str) -> np.ndarray:
    """Cast as NumPy does, and by way of float32 where ml_dtypes has no cast."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = numpy_dtype(ab.DataType(name))
        try:
            return x.astype(wanted, order="C")
        except TypeError:
            return x.astype("f4", order="C").astype(wanted)


def taken(name: str, dtype: str) -> bool:
    from arraybridge.core.registry import library_named

    return dtype in library_named(name).accepts.dtypes


@pytest.mark.parametrize("target", TARGETS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_values_are_those_of_astype(target, data):
    x = data.draw(strided_arrays(STANDARD_DTYPES))
    name = data.draw(st.sampled_from([*NATIVE, "bfloat16", "float8_e5m2"]))
    order = data.draw(st.sampled_from([None, "C", "F"]))
    casting = data.draw(st.sampled_from(["same_kind", "safe"]))
    route = ab.explain(x, target, dtype=name, casting=casting, order=order)
    given_type = ab.inspect(x).dtype
    permitted = allowed(given_type, ab.DataType(name), casting)
    if given_type.name == name and order is None:
        assert route == ab.explain(x, target)
    if route.kind == "refuse":
        assert not permitted or not taken(target, name) or order == "F"
        with pytest.raises(ab.ConversionError) as caught:
            ab.convert(x, target, dtype=name, casting=casting, order=order)
        assert str(caught.value) == route.why
        return
    assert permitted
    result = ab.convert(x, target, dtype=name, casting=casting, order=order)
    assert same(ab.convert(result, "numpy"), cast(x, name))
    info = ab.inspect(result)
    if given_type.name != name:
        assert info.f_contiguous if order == "F" else info.c_contiguous
        assert route.kind == "kernel"
        assert route.nbytes == info.nbytes
    if order is not None:
        assert info.f_contiguous if order == "F" else info.c_contiguous


@pytest.mark.skipif(not installed("torch"), reason="PyTorch casts where it is quicker")
@pytest.mark.parametrize("given_name", [*NATIVE, "bfloat16"])
def test_what_pytorch_casts_in_numpys_place_has_the_same_values(given_name):
    from arraybridge.core.cast import _LARGE
    from arraybridge.libraries.torch.exchange import _as_numpy

    rng = np.random.default_rng(1)
    given_type = numpy_dtype(ab.DataType(given_name))
    if given_name == "bool":
        x = rng.integers(0, 2, 2 * _LARGE).astype(bool)
    else:
        with np.errstate(all="ignore"):
            raw = rng.integers(0, 256, _LARGE * given_type.itemsize, np.uint8).view(given_type)
            wide = 10.0 ** rng.integers(-9, 9, _LARGE) * rng.standard_normal(_LARGE)
            x = np.concatenate([raw, cast(wide, given_name) if "i" not in given_name else raw])
    for name in (*NATIVE, "bfloat16"):
        if name == given_name or not _as_numpy(ab.DataType(given_name), ab.DataType(name)):
            continue
        with np.errstate(all="ignore"):
            wanted = cast(x, name)
            for size in (len(x), 64):
                result = ab.convert(ab.convert(x[:size], "torch", dtype=name), "numpy")
                differ = result != wanted[:size]
                differ &= ~((result != result) & (wanted[:size] != wanted[:size]))
                assert not differ.any(), (name, size)


def every_value(name: str) -> np.ndarray:
    """All values of a type of at most 16 bits, as float64."""
    bits = ab.DataType(name).bits
    if name == "bool":
        return np.array([0.0, 1.0])
    if name.startswith(("int", "uint")):
        low = -(1 << bits - 1) if name[0] == "i" else 0
        return np.arange(low, low + (1 << bits)).astype("f8")
    raw = np.arange(1 << bits).astype(f"u{max(1, bits // 8)}")
    return raw.view(numpy_dtype(ab.DataType(name))).astype("f4").astype("f8")


@pytest.mark.parametrize("wanted", NATIVE + EXTENDED)
def test_safe_is_what_keeps_every_value(wanted):
    with np.errstate(all="ignore"):
        for name in NATIVE + EXTENDED:
            if ab.DataType(name).bits > 16 or name == wanted:
                continue
            if name in NATIVE and wanted in NATIVE:
                for rule in ("no", "equiv", "safe", "same_kind", "unsafe"):
                    expected = np.can_cast(name, wanted, rule)
                    assert allowed(ab.DataType(name), ab.DataType(wanted), rule) == expected
                continue
            x = every_value(name)
            kinds = [n.rstrip("0123456789") for n in (name, wanted)]
            if wanted.startswith(("int", "uint", "bool")):
                bits = ab.DataType(wanted).bits
                low = -(1 << bits - 1) if wanted[0] == "i" else 0
                keeps = kinds[0] in ("bool", "int", "uint") and wanted != "bool"
                keeps = keeps and x.min() >= low and x.max() < low + (1 << bits)
            else:
                y = cast(x.astype("f4"), wanted)
                y = (y.astype("f4") if wanted in EXTENDED else y.real).astype("f8")
                keeps = bool(((x == y) | ((x != x) & (y != y))).all())
            assert allowed(ab.DataType(name), ab.DataType(wanted), "safe") == keeps, name


@pytest.mark.parametrize("rule", CASTINGS)
def test_the_rule_is_checked_and_named(rule):
    x = np.array([1.0, 2.0])
    if rule in ("unsafe", "same_value"):
        assert ab.convert(x, "numpy", dtype="int8", casting=rule).tolist() == [1, 2]
        return
    with pytest.raises(
        ab.ConversionError, match=f"casting='{rule}' does not allow float64 to int8"
    ):
        ab.convert(x, "numpy", dtype="int8", casting=rule)
    if rule != "same_kind":
        with pytest.raises(ab.ConversionError, match=f"casting='{rule}'"):
            ab.convert(x, "numpy", dtype="float32", casting=rule)
    assert ab.convert(x, "numpy", dtype="float64", casting=rule) is x


# Values that a cast changes, with results that are the same on every machine.
CHANGES = [
    ("float64", "float32", 0.1),
    ("float64", "float32", 1e300),
    ("float64", "int64", 0.5),
    ("float64", "int64", 2.0**63),
    ("float64", "uint64", 2.0**64),
    ("float64", "uint64", -1.0),
    ("float64", "int8", float("nan")),
    ("float64", "bool", 2.0),
    ("float32", "int32", float("inf")),
    ("int64", "float64", 2**53 + 1),
    ("int64", "float64", 2**63 - 1),
    ("uint64", "float64", 2**64 - 1),
    ("int64", "uint64", -1),
    ("uint64", "int64", 2**63),
    ("int32", "float16", 2**31 - 1),
    ("int64", "int8", 128),
    ("int8", "bool", 2),
    ("complex128", "float64", 1 + 1j),
    ("complex128", "complex64", 1 + 1e300j),
    ("complex128", "complex64", complex(float("nan"), 1e300)),
    ("float32", "bfloat16", 1.00390625 + 2**-9),
    ("float32", "float8_e4m3fn", 1000.0),
    ("float32", "float8_e8m0fnu", -1.0),
    ("int16", "int4", 9),
]
KEPT = [
    ("float64", "float32", [0.5, float("nan"), float("inf"), -0.0, 2.0**-140]),
    ("float64", "int64", [-(2.0**63), 2.0**62, -0.0, 3.0]),
    ("float64", "uint8", [255.0, 0.0]),
    ("float64", "bool", [0.0, 1.0]),
    ("int64", "float64", [2**53, -(2**63), 2**62]),
    ("uint64", "float64", [2**63, 0]),
    ("int64", "uint64", [2**63 - 1, 0]),
    ("complex128", "float64", [1.5 + 0j, float("nan") + 0j]),
    ("complex128", "complex64", [1.5 + 2j, complex(float("nan"), 1)]),
    ("float32", "bfloat16", [1.0, float("-inf"), float("nan")]),
    ("int16", "int4", [7, -8]),
    ("bool", "float8_e5m2", [True, False]),
]


@pytest.mark.parametrize("target", [t for t in ("numpy", "torch", "tvm_ffi") if installed(t)])
@pytest.mark.parametrize(("given_name", "name", "value"), CHANGES)
def test_same_value_tells_the_first_value_that_changes(target, given_name, name, value):
    x = np.ones((300, 401), given_name)
    if not taken(target, name):
        with pytest.raises(ab.ConversionError, match=f"{target} has no {name}"):
            ab.convert(x, target, dtype=name, casting="same_value")
        return
    x[290, 17] = x[299, 0] = value
    for array, at in ((x, (290, 17)), (x.T, (17, 290)), (x[::-1, ::2], None)):
        if at is None:
            array, at = x[::-1, 17::2], (9, 0)
        if array is x.T:
            x[299, 0] = 1
        with pytest.raises(ab.ConversionError) as caught:
            ab.convert(array, target, dtype=name, casting="same_value")
        assert f"at index {at} would become" in str(caught.value)
        x[299, 0] = 1
    x[290, 17] = 1
    assert same(
        ab.convert(ab.convert(x, target, dtype=name, casting="same_value"), "numpy"), cast(x, name)
    )


@pytest.mark.parametrize(("given_name", "name", "values"), KEPT)
def test_same_value_takes_what_is_kept(given_name, name, values):
    x = np.array(values, given_name)
    assert same(ab.convert(x, "numpy", dtype=name, casting="same_value"), cast(x, name))


def test_same_value_in_jax_without_64_bit_types():
    jax = pytest.importorskip("jax")
    for wide, name in (("int32", "float32"), ("int8", "float16"), ("bfloat16", "int8")):
        x = jax.numpy.arange(5).astype(wide)
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # JAX warns where it has no float64 to compare in
            result = ab.convert(x, "jax", dtype=name, casting="same_value")
        assert result.dtype == name
        assert result.tolist() == [0, 1, 2, 3, 4]
    x = jax.numpy.asarray([1, 2**31 - 1])
    with pytest.raises(ab.ConversionError, match=r"2147483647 at index \(1,\) would become"):
        ab.convert(x, "jax", dtype="float32", casting="same_value")


def test_data_types_are_taken_from_everybody():
    x = np.arange(3.0)
    spellings = ["float32", "f4", "<f4", np.float32, np.dtype("f4"), ab.DataType("float32")]
    spellings += [ab.inspect(np.ones(1, "f4")).dtype, ml_dtypes.finfo("float32").dtype]
    if installed("torch"):
        spellings += [torch.float32, ab.from_dlpack(torch.rand(2)).dtype]
    if installed("jax"):
        spellings += [jax.numpy.float32, jax.numpy.ones(1).dtype]
    if installed("tvm_ffi"):
        import tvm_ffi

        spellings += [tvm_ffi.dtype("float32")]
    if installed("array_api_strict"):
        import array_api_strict

        spellings += [array_api_strict.float32]
    if installed("pyarrow"):
        import pyarrow

        spellings += [pyarrow.float32()]
    for dtype in spellings:
        assert data_type_named(dtype) == ab.DataType("float32"), dtype
        assert ab.convert(x, "numpy", dtype=dtype).dtype == np.float32
    for dtype, name in (
        (float, "float64"),
        (int, "int64"),
        (bool, "bool"),
        (complex, "complex128"),
    ):
        assert ab.convert(x, "numpy", dtype=dtype, casting="unsafe").dtype == name


@pytest.mark.parametrize(
    "dtype", [3, [1], object, str, np.ones(2), np.dtype("M8[ns]"), np.longdouble, np.ndarray, ...]
)
def test_what_is_no_data_type_is_told(dtype):
    with pytest.raises(TypeError, match="dtype must be a data type of NumPy"):
        ab.convert(np.ones(2), "numpy", dtype=dtype)


def test_copy_false_tells_that_a_cast_is_a_copy():
    x = np.arange(6.0).reshape(2, 3)
    with pytest.raises(ab.ConversionError, match="float64 to float32, for dtype=, requires a copy"):
        ab.convert(x, "numpy", dtype="float32", copy=False)
    with pytest.raises(ab.ConversionError, match="but a layout of strides"):
        ab.convert(x, "numpy", order="F", copy=False)
    assert ab.convert(x, "numpy", dtype="float64", order="C", copy=False) is x
    fresh = ab.convert(x, "numpy", dtype="float64", order="F", copy=True)
    assert fresh.flags.f_contiguous
    assert not np.shares_memory(fresh, x)


@pytest.mark.skipif(not installed("jax"), reason="of JAX")
def test_jax_takes_wide_data_when_a_narrow_type_is_asked_for():
    x = np.arange(4.0) + 0.1
    with jax.enable_x64(False):
        with pytest.raises(ab.ConversionError, match="by dtype="):
            ab.convert(x, "jax")
        result = ab.convert(x, "jax", dtype="float32")
        assert result.dtype == np.float32
        assert np.array_equal(np.asarray(result), x.astype("f4"))
        x[0] = 7
        assert result[0] != 7
        with pytest.raises(ab.ConversionError, match="jax has no float64"):
            ab.convert(x.astype("f4"), "jax", dtype="float64")
        with pytest.raises(ab.ConversionError, match="jax has no float64"):
            ab.convert(result, "jax", dtype=float)
    with jax.enable_x64(True):
        assert ab.convert(x.astype("f4"), "jax", dtype="float64").dtype == np.float64
        assert ab.convert(result, "jax", dtype=float).dtype == np.float64
    with jax.enable_x64(False), pytest.raises(ab.ConversionError, match="jax has no float64"):
        ab.convert(result, "jax", dtype=float)
