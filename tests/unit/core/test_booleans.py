"""Booleans stored as bytes other than 0 and 1, for libraries that compute with the bytes."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import arraybridge as ab
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
@pytest.mark.parametrize("target", ["mlx", "paddle", "tensorflow"])
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
    return int(made.sum())
for source in SOURCES:
    for bits in ([0, 1, 1, 0], [0, 1, 255, 128]):
        check({target!r}, source, np.array(bits, np.uint8), total)
if {target!r} == "paddle":
    out = ab.convert(np.zeros(4, bool), "paddle")
    ab.copyto(out, np.array([0, 2, 255, 1], np.uint8).view(bool))
    assert total(out) == 3
""")


def test_every_call_of_arraybridge():
    x = np.array([0, 1, 255, 128], np.uint8).view(bool)
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


def test_numpy_and_pytorch_share_them():
    x = np.array([0, 1, 255, 128], np.uint8).view(bool)
    t = ab.convert(x, "torch", copy=False)
    assert (int(t.sum()), t.data_ptr()) == (3, x.ctypes.data)


def test_more_axes_than_numpy_has():
    x = torch.ones((1,) * 70, dtype=torch.bool)
    assert ab.explain(x, "jax").kind == "refuse"
    with pytest.raises(ab.ConversionError, match="reshape it first"):
        ab.convert(x, "jax")
