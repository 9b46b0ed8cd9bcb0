"""Casts of ``convert`` against NumPy's ``astype``, their refusals, and layouts."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest

import arraybridge as ab
from arraybridge.core.cast_rules import CASTINGS, allowed, data_type_named
from arraybridge.core.registry import library_named
from arraybridge.ndarrays import EXTENDED, NATIVE, numpy_dtype
from tests.support.arrays import same
from tests.support.optional import installed, optional

torch, jax = optional("torch"), optional("jax")
ml_dtypes = pytest.importorskip("ml_dtypes")


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
    return dtype in library_named(name).accepts.dtypes


LARGE = 1 << 15
FLOAT8 = [f"float8_{name}" for name in ("e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz")]


@pytest.mark.skipif(not installed("torch"), reason="PyTorch casts where it is quicker")
@pytest.mark.parametrize("given_name", [*NATIVE, "bfloat16", *FLOAT8])
def test_what_pytorch_casts_in_numpys_place_has_the_same_values(given_name):
    from arraybridge.libraries.torch.exchange import _as_numpy

    rng = np.random.default_rng(1)
    given_type = numpy_dtype(ab.DataType(given_name))
    if given_name == "bool":
        x = rng.integers(0, 2, 2 * LARGE).astype(bool)
    else:
        with np.errstate(all="ignore"):
            raw = rng.integers(0, 256, LARGE * given_type.itemsize, np.uint8).view(given_type)
            wide = 10.0 ** rng.integers(-9, 9, LARGE) * rng.standard_normal(LARGE)
            x = np.concatenate([raw, cast(wide, given_name) if "i" not in given_name else raw])
    for name in (*NATIVE, "bfloat16", *FLOAT8):
        if name == given_name or not _as_numpy(ab.DataType(given_name), ab.DataType(name)):
            continue
        with np.errstate(all="ignore"):
            wanted = cast(x, name)
            for size in (len(x), 64):
                result = ab.convert(ab.convert(x[:size], "torch", dtype=name), "numpy")
                differ = result != wanted[:size]
                differ &= ~((result != result) & (wanted[:size] != wanted[:size]))
                assert not differ.any(), (name, size)


@pytest.mark.skipif(not installed("torch"), reason="PyTorch casts where it is quicker")
def test_explain_names_the_library_that_casts(monkeypatch):
    home, calls = type(library_named("torch").computing), []
    for name in ("assign", "astype"):
        own = getattr(home, name)
        monkeypatch.setattr(home, name, lambda *a, own=own: (calls.append(a), own(*a))[1])
    seen = set()
    for make, size, step, dtype, casting in itertools.product(
        (np.ones, torch.ones), (8, LARGE), (1, 2, -1), ("float16", "float64", "int8"), CASTINGS[-2:]
    ):
        if make is torch.ones and step < 0:
            continue
        x = make(size, dtype=(np if make is np.ones else torch).float32)[::step]
        for to in ("torch", "numpy", "tvm_ffi"):
            how = {"dtype": dtype, "casting": casting}
            told = ab.explain(x, to, **how).kernel
            for _ in range(2):
                calls.clear()
                ab.convert(x, to, **how)
                assert told == f"{'torch' if calls else 'numpy'}'s own cast", (x.shape, to, how)
                seen.add(told)
    assert len(seen) == 2


def test_reasons_are_those_of_the_request():
    """A copy=True that nobody passed is no reason, and a copy=False that is named gives a view."""
    x = np.arange(6, dtype="f4").reshape(2, 3)
    held = x.copy()
    held.flags.writeable = False
    wide = np.ones((4, 6), "f4")
    arrays = [x, x.T, wide[::2], wide[:, ::-1], held, held.T, x > 2, np.float32(3)]
    arrays += [torch.ones(2, 3).T, torch.ones(3, dtype=torch.complex64).conj()] if torch else []
    targets = [name for name in ("numpy", "torch", "jax", "array_api_strict") if installed(name)]
    for array, to, order, copy, dtype in itertools.product(
        arrays, targets, (None, "C", "F", "K"), (None, False, True), (None, "float32", "float64")
    ):
        how = {"order": order, "dtype": dtype}
        why = ab.explain(array, to, copy=copy, **how).why
        case = array, to, copy, how, why
        assert why, case
        assert copy or "copy=True" not in why, case
        if "with copy=False for the view" in why:
            asked = ab.explain(array, to, copy=False, **how)
            assert asked.kind == "view" or "wants data aligned to 64" in asked.why, (case, asked)


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
def test_safe_casts_keep_every_value(wanted):
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
            safe = allowed(ab.DataType(name), ab.DataType(wanted), "safe")
            assert keeps if safe else not keeps or wanted in EXTENDED or wanted == "float16", name


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
    ("float64", "int64", 2.0**63),
    ("float64", "uint64", -1.0),
    ("float32", "int32", float("inf")),
    ("int64", "float64", 2**63 - 1),
    ("uint64", "int64", 2**63),
    ("int8", "bool", 2),
    ("complex128", "float64", 1 + 1j),
    ("complex128", "complex64", complex(float("nan"), 1e300)),
    ("float32", "bfloat16", 1.00390625 + 2**-9),
    ("float32", "float8_e8m0fnu", -1.0),
    ("int16", "int4", 9),
]


@pytest.mark.parametrize("target", [t for t in ("numpy", "torch", "tvm_ffi") if installed(t)])
@pytest.mark.parametrize(("given_name", "name", "value"), CHANGES)
def test_same_value_tells_the_first_value_that_changes(target, given_name, name, value):
    x = np.ones((300, 401), given_name)
    if not taken(target, name):
        return
    x[290, 17] = value
    for array, at in ((x, (290, 17)), (x.T, (17, 290)), (x[::-1, 17::2], (9, 0))):
        with pytest.raises(ab.ConversionError) as caught:
            ab.convert(array, target, dtype=name, casting="same_value")
        assert f"at index {at} would become" in str(caught.value)
    x[290, 17] = 1
    assert same(
        ab.convert(ab.convert(x, target, dtype=name, casting="same_value"), "numpy"), cast(x, name)
    )


@pytest.mark.parametrize(
    "dtype", [3, [1], object, str, np.ones(2), np.dtype("M8[ns]"), np.longdouble, np.ndarray, ...]
)
def test_what_is_no_data_type_is_told(dtype):
    with pytest.raises(TypeError, match="dtype must be a data type of NumPy"):
        ab.convert(np.ones(2), "numpy", dtype=dtype)


@pytest.mark.skipif(not installed("jax"), reason="of JAX")
def test_jax_takes_wide_data_when_a_narrow_type_is_asked_for():
    x = np.arange(4.0) + 0.1
    with jax.enable_x64(False):
        with pytest.raises(ab.ConversionError, match=r"pass dtype='float32'$"):
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


def test_data_types_are_taken_from_everybody():
    x = np.arange(3.0)
    spellings = ["float32", "<f4", np.float32, ab.DataType("float32"), np.ones(1, "f4").dtype]
    spellings += [torch.float32, ab.from_dlpack(torch.rand(2)).dtype, jax.numpy.float32]
    for dtype in spellings:
        assert data_type_named(dtype) == ab.DataType("float32"), dtype
        assert ab.convert(x, "numpy", dtype=dtype).dtype == np.float32
    for dtype, name in ((int, "int64"), (bool, "bool"), (complex, "complex128")):
        assert ab.convert(x, "numpy", dtype=dtype, casting="unsafe").dtype == name


@pytest.mark.skipif(not installed("torch"), reason="of PyTorch")
class TestTorch:
    def test_gradients_flow_through_its_own_cast(self):
        x = torch.rand(3, 4, requires_grad=True)
        copies = ({"copy": True}, {"copy": True, "order": "C"}, {"copy": True, "device": "cpu"})
        casts = ({"dtype": "float64"}, {"order": "F"}, {"dtype": float, "order": "F"})
        for keywords in (*casts, *copies):
            for y in (ab.convert(x, "torch", **keywords), ab.unify(x, **keywords)[1]):
                assert y.data_ptr() != x.data_ptr()
                y.sum().backward()
                assert torch.equal(x.grad, torch.ones(3, 4))
                x.grad = None
            for route in (ab.explain(x, "torch", **keywords),):
                assert (route.kind, route.kernel[:5]) == ("copy", "torch")
        for keywords in ({"dtype": "float64"}, {"order": "F"}, {}):
            with pytest.raises(ab.ConversionError, match="gradients are tracked"):
                ab.convert(x, "numpy", **keywords)

    @pytest.mark.parametrize("library", ["torch", "numpy"])
    def test_what_it_cannot_cast_it_says(self, library):
        x = torch.zeros(4, dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
        for _ in range(2):
            with pytest.raises(ab.ConversionError, match="torch could not cast to float32"):
                ab.convert(x, library, dtype="float32", casting="unsafe")

    @pytest.mark.parametrize("shape", [(2, 3, 4, 5), (2, 3, 4, 5, 6), (1, 1, 4, 5)])
    def test_channels_last(self, shape):
        x = torch.rand(shape)
        last = torch.channels_last if len(shape) == 4 else torch.channels_last_3d
        wanted = x.to(memory_format=last)
        for order in ("channels_last", last):
            for source in (x, x.numpy()):
                y = ab.convert(source, "torch", order=order)
                assert y.is_contiguous(memory_format=last)
                assert torch.equal(x, y)
        again = ab.convert(wanted, "torch", order=last)
        assert again is wanted
        again = ab.convert(wanted, "numpy", order=last)
        assert again.ctypes.data == wanted.data_ptr()
        plain = ab.convert(wanted, "torch", order=torch.contiguous_format)
        assert plain.is_contiguous()
        assert ab.convert(wanted, "torch", order=torch.preserve_format) is wanted
        both = ab.convert(x.numpy(), "torch", dtype=torch.float16, order=last)
        assert both.is_contiguous(memory_format=last)
        assert torch.equal(both, x.half())


def test_a_mapping_casts_some_data_types_alone():
    wide, index = np.arange(3.0), np.arange(3)
    table = {"float64": np.float32, int: "int32"}
    _, x, n, b = ab.unify(wide, index, np.ones(2, bool), dtype=table)
    assert (x.dtype, n.dtype, b.dtype) == (np.float32, np.int32, bool)
    assert ab.explain(index, "numpy", dtype={"float64": "float32"}).kind == "view"
    assert ab.convert(index, "numpy", dtype={}) is index
    with pytest.raises(ValueError, match="floot"):
        ab.convert(index, "numpy", dtype={"floot": "int8"})
