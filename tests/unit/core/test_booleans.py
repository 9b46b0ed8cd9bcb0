"""Booleans stored as bytes other than 0 and 1, for libraries that compute with the bytes."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import arraybridge as ab
from arraybridge.ndarrays import numpy_dtype
from tests.support.exporters import LegacyOnly
from tests.support.optional import optional
from tests.support.processes import python

torch, jax = optional("torch"), optional("jax")

#: Makes an array that shows a NumPy array of booleans.
SOURCES = {
    "numpy": lambda x: x,
    "torch": lambda x: ab.convert(x, "torch"),
    "array_api_strict": lambda x: ab.convert(x, "array_api_strict"),
    "Array": ab.from_dlpack,
    "memoryview": memoryview,
    "interface": lambda x: SimpleNamespace(__array_interface__=x.__array_interface__, kept=x),
    "legacy": LegacyOnly,
    "capsule": lambda x: x.__dlpack__(),
    "read-only": lambda x: np.frombuffer(x.tobytes(), bool).reshape(x.shape),
}
KEYWORDS = ({}, {"copy": True}, {"dtype": "bool"}, {"order": "C"}, {"dtype": "int32"})


def check(target: str, source: str, bits: np.ndarray, total) -> None:
    """The target counts the booleans that are true, by every keyword, and `explain` says how."""
    odd = bits.max() > 1
    for keywords in KEYWORDS:
        for _ in range(2):
            x = SOURCES[source](bits.view(bool))
            made = ab.convert(x, target, **keywords)
            assert total(made) == np.count_nonzero(bits)
    x = SOURCES[source](bits.view(bool))
    route = ab.explain(x, target, copy=False)
    if odd:
        assert (route.kind, "other than 0 and 1" in route.why) == ("refuse", True)
        with pytest.raises(ab.ConversionError, match="other than 0 and 1"):
            ab.convert(x, target, copy=False)


@pytest.mark.parametrize("source", SOURCES)
@settings(deadline=None, max_examples=25)
@given(st.lists(st.sampled_from([0, 1, 1, 2, 128, 255]), min_size=4, max_size=4))
def test_jax_counts_what_is_true(source, bits):
    for layout in (np.ascontiguousarray, lambda x: np.repeat(x, 2, 1)[:, ::2], np.transpose):
        x = layout(np.array(bits, np.uint8).reshape(2, 2))
        if source not in ("memoryview", "legacy", "interface") or x.flags.c_contiguous:
            check("jax", source, x, lambda made: int(made.sum()))


@pytest.mark.heavy
@pytest.mark.parametrize(
    "target", ["mlx", "onnxruntime", "openvino", "paddle", "tensorflow", "warp"]
)
def test_others_that_compute_with_bytes(target):
    pytest.importorskip({"mlx": "mlx.core"}.get(target, target))
    python(f"""
import warnings
warnings.simplefilter("ignore")  # Paddle's of its tools
from tests.unit.core.test_booleans import *
import importlib
def total(made):
    if {target!r} == "tensorflow":
        import tensorflow as tf
        return int(tf.reduce_sum(tf.cast(made, tf.int32)))
    if {target!r} in ("onnxruntime", "openvino", "warp"):
        return int(ab.convert(made, "numpy").view("u1").sum())
    return int(made.sum())
for source in SOURCES:
    for bits in ([0, 1, 1, 0], [0, 1, 255, 128]):
        check({target!r}, source, np.array(bits, np.uint8), total)
if {target!r} == "warp":
    import warp
    assert int(ab.convert(warp.array(X, device="cpu"), "jax").sum()) == 3
if {target!r} == "openvino":
    import openvino
    assert int(ab.convert(openvino.Tensor(X.copy(), shared_memory=True), "jax").sum()) == 3
if {target!r} == "paddle":
    out = ab.convert(np.zeros(4, bool), "paddle")
    ab.copyto(out, np.array([0, 2, 255, 1], np.uint8).view(bool))
    assert total(out) == 3
""")


X = np.array([0, 1, 255, 128], np.uint8).view(bool)
ONE = np.array(255, np.uint8).view(bool)


def test_every_call_of_arraybridge():
    x = X
    model = jax.numpy.ones(1)
    for made in (
        ab.asarray(x, like="jax"),
        ab.unify(model, x)[2],
        ab.adapt("jax", result="function")(lambda y: y)(x),
        ab.tree.convert([x], "jax")[0],
        ab.from_dlpack(x).to("jax"),
        ab.xp.jax.asarray(x).native,
    ):
        assert int(made.sum()) == 3
    for made in (ab.convert(ONE, "jax"), ab.xp.jax.asarray([ONE, False]).native.sum()):
        assert int(made) == 1


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "int4", "uint2"])
@pytest.mark.parametrize("source", SOURCES)
def test_types_of_ml_dtypes(source, dtype):
    made, xp = numpy_dtype(ab.DataType(dtype)), ab.xp.numpy
    target = xp.zeros(4, dtype=made)
    target[...] = xp.asarray(X)

    def x():
        return SOURCES[source](X)

    found = [
        *(ab.convert(x(), "numpy", dtype=dtype, casting=how) for how in ("unsafe", "same_value")),
        ab.convert(x(), "numpy", dtype=dtype, order="F", casting="unsafe"),
        ab.tree.convert([X], "numpy", dtype=dtype, casting="unsafe")[0],
        *(ab.asarray(y, like="numpy", dtype=dtype, casting="unsafe") for y in (x(), [X], [X, X])),
        ab.convert(np.tile(X, 10000), "numpy", dtype=dtype, casting="unsafe"),
        xp.asarray(X, dtype=made).native,
        xp.asarray([X], dtype=made).native,
        xp.astype(xp.asarray(X), made).native,
        target.native,
    ]
    for y in found:
        assert (y.dtype, {*y.astype(float).reshape(-1)}) == (made, {0.0, 1.0})
        assert (y.reshape(-1, 4)[:, 1:].astype(float) == 1).all()
    if dtype != "int4" and dtype != "uint2":
        assert ab.convert(x(), "torch", dtype=dtype, casting="unsafe").tolist() == [0, 1, 1, 1]


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_results_of_callbacks(library):
    like = {"some": jax.ShapeDtypeStruct((4,), bool), "one": jax.ShapeDtypeStruct((), bool)}
    result = {"some": SOURCES[library](X.copy()), "one": SOURCES[library](ONE)}

    def count(x):
        made = ab.adapt(library, callback=like)(lambda x: result)(x)
        return jax.numpy.sum(made["some"]) + made["one"]

    assert int(jax.jit(count)(jax.numpy.ones(4))) == 4
    assert jax.jit(jax.vmap(count))(jax.numpy.ones((2, 4))).tolist() == [4, 4]


@pytest.mark.parametrize("name", ["numpy", "torch", "jax"])
def test_masks_by_which_elements_are_written(name):
    xp = getattr(ab.xp, name)
    for shape, key in (
        ((4,), X),
        ((4, 2), X),
        ((2, 4), (slice(None), X)),
        ((2, 2), X.reshape(2, 2)),
        ((3,), ONE),
        ((4,), [*X]),
    ):
        if key.__class__ is list and name == "jax":
            continue  # JAX takes no lists
        mask = np.zeros(shape, int)
        mask[key] = 7
        x = xp.zeros(shape, dtype=xp.int32)
        x[key] = 7
        assert np.array_equal(np.from_dlpack(x), mask)
        assert np.array_equal(np.from_dlpack(x[key]), mask[key])
    for value in ([*X], [ONE] * 4):
        x = xp.zeros(4, dtype=xp.bool)
        x[...] = value
        assert int(xp.sum(x)) == np.count_nonzero(value)


def test_numpy_and_pytorch_share_them():
    x = np.array([0, 1, 255, 128], np.uint8).view(bool)
    t = ab.convert(x, "torch", copy=False)
    assert (int(t.sum()), t.data_ptr()) == (3, x.ctypes.data)


def test_more_axes_than_numpy_has():
    x = torch.ones((1,) * 70, dtype=torch.bool)
    assert ab.explain(x, "jax").kind == "refuse"
    with pytest.raises(ab.ConversionError, match="reshape it first"):
        ab.convert(x, "jax")
