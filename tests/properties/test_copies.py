"""Any array made contiguous, or copied into any layout: the elements, and in whose memory."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings

import arraybridge as ab
from arraybridge.core.registry import forget
from tests.properties.test_conversions import IN_PIECES, known, outcome, overlap
from tests.support.sources import Tensor, sources
from tests.support.strategies import strided_arrays

BYTES = np.random.default_rng(0).integers(0, 255, 1 << 14, np.uint8)
LARGER = {
    "rows of one item": np.arange(6400.0).reshape(6400, 1)[::2],
    "windows": np.lib.stride_tricks.sliding_window_view(np.arange(200), 20),
    "unaligned": BYTES[1:12801].view("f8").reshape(40, 40).T,
    "unaligned and dense": BYTES[1:12801].view("f8"),
    "objects": np.arange(900).astype("O").reshape(30, 30).T,
    "dates": np.arange(900).view("M8[s]").reshape(30, 30).T,
    "text": np.arange(900).astype("U3").reshape(30, 30).T,
    "void": np.zeros((30, 30), "V6").T,
    "long doubles": np.arange(900).astype("g").reshape(30, 30).T,
    "images": BYTES[:4920].reshape(40, 41, 3).transpose(2, 0, 1),
    "many axes": BYTES[:4096].reshape((2,) * 12).T,
    "more than a few": np.arange(1 << 18, dtype="f4").reshape(512, 512)[::-1].T,
}


def base(x):
    return Tensor if isinstance(x, Tensor) else np.ndarray


def check(x, expected):
    info, refused = outcome(lambda: ab.inspect(x))
    errors = []
    for _ in range(2):
        y, error = outcome(lambda: ab.contiguous(x))
        errors.append(error)
        if error is not None:
            continue
        if isinstance(x, (np.ndarray, Tensor, np.generic)):
            assert isinstance(y, base(x))
        if isinstance(y, np.ndarray):
            assert y.flags.c_contiguous
        if isinstance(x, np.ndarray):
            assert y.dtype.newbyteorder("=") == x.dtype.newbyteorder("=")
        if isinstance(y, np.ndarray) and y.dtype.kind not in "?biufc":
            assert y.tolist() == np.asarray(x).tolist()
        elif expected is not None:
            assert np.array_equal(known(y), expected, equal_nan=True)
        if refused or info.refused or not info.size or y is x:
            continue
        made = ab.inspect(y)
        assert made.c_contiguous
        assert made.shape == info.shape
        assert not IN_PIECES & set(made.pending)
        if info.pending or not info.c_contiguous:
            assert not overlap(info, made)
            assert not made.readonly or made.library in ("jax", "pyarrow")
    assert errors[0] == errors[1]


@pytest.mark.filterwarnings("ignore")  # of prototypes
def test_contiguous():
    for name, x in (sources() | LARGER).items():
        forget()
        try:
            check(x, known(x))
        except BaseException as error:
            error.add_note(name)
            raise


@settings(max_examples=100, deadline=None)
@given(strided_arrays())
def test_contiguous_of_any_layout(x):
    check(x, x)


@pytest.mark.filterwarnings("ignore")
def test_copyto():
    for name, x in sources().items():
        info, refused = outcome(lambda x=x: ab.inspect(x))
        expected = known(x)
        if refused or info.refused or info.tracked or expected is None or not info.dtype.name:
            continue
        dtype = getattr(np, "bool_" if info.dtype.name == "bool" else info.dtype.name, None)
        if dtype is None or expected.dtype.kind not in "?biufc" or info.ndim > 63:
            continue
        shape = tuple(info.shape)
        for out in (np.zeros(shape, dtype, "F"), np.zeros((*shape, 2), dtype)[..., 1]):
            for _ in range(2):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    _, error = outcome(lambda out=out, x=x: ab.copyto(out, x))
                    same = error or np.array_equal(out, expected.astype(dtype), equal_nan=True)
                assert same, (name, out)
                assert error is None or ab.explain(x, "numpy").kind == "refuse", (name, error)
