"""Drawn sources, keywords and targets: what `explain` says is done, `copy=` and `order=` are kept.

Whatever is refused is refused in words of ours, the same by `explain` and by `convert`, the first
time and later. A longer sweep: ``python -m tests.test_keywords 1 100000`` (seed, draws).
"""

from __future__ import annotations

import random
import sys
import warnings
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

import arraybridge as ab
from arraybridge.layout import in_bytes, span

from .support.optional import installed, optional
from .support.processes import python

torch, jax = optional("torch"), optional("jax")

TARGETS = [
    name
    for name in ("numpy", "torch", "jax", "pyarrow", "tvm_ffi", "array_api_strict")
    if installed(name)
]
TERMS = {
    "device": [None, None, None, "cpu", "cpu:1", "metal"],
    "copy": [None, None, None, False, False, True],
    "alias_readonly": [False, False, True],
    "dtype": [
        None, None, None, "float32", "float64", "int16", "bool", "complex64", "bfloat16", "uint8",
        {"float64": "float32"}, np.float16, float,
    ],
    "casting": ["same_kind", "same_kind", "unsafe", "safe", "no", "same_value"],
    "order": [None, "C", "C", "F", "F", "channels_last", "K"],
}  # fmt: skip
AXES = {
    "C": lambda n: range(n),
    "F": lambda n: reversed(range(n)),
    "channels_last": lambda n: (0, *range(2, n), 1),
}


def grid(dtype):
    return np.arange(12).astype(dtype).reshape(3, 4)


def frozen(x):
    x.flags.writeable = False
    return x


def offset(nbytes, dtype):
    block = np.zeros(320, np.uint8)
    start = -block.ctypes.data % 64 + nbytes
    x = block[start : start + 12 * np.dtype(dtype).itemsize].view(dtype).reshape(3, 4)
    x[...] = grid(dtype)
    return x


def field(dtype, beside):
    x = np.zeros((3, 4), [("a", dtype), ("b", beside)])["a"]
    x[...] = grid(dtype)
    return x


def views(x):
    yield "plain", x
    yield "transposed", x.T
    yield "stepped", x[:, ::2]
    yield "row", x[1]
    yield "0-d", x[1, 1, ...]
    yield "empty", x[:0]
    yield "4-d", x.reshape(1, 3, 2, 2)
    if isinstance(x, np.ndarray):
        yield "flipped", x[::-1]
        yield "mirrored", x[:, ::-1]
        yield "repeated", np.broadcast_to(x[0], (3, 4))
        yield "channels last", x.reshape(1, 2, 2, 3).transpose(0, 3, 1, 2)
    else:
        yield "repeated", x[0].expand(3, 4)
        yield "channels last", x.reshape(1, 3, 2, 2).contiguous(memory_format=torch.channels_last)


def numpys():
    for dtype in ("f4", "f8", "u1", "i8", "?", "c8", "f2", ">f4", ">i2", ">c8"):
        yield dtype, grid(dtype)
        yield f"{dtype} read-only", frozen(grid(dtype))
    yield "field", field("f4", "u1")  # strides of 5 bytes
    yield "wider field", field("f8", "f4")
    yield "misaligned", offset(1, "f4")
    yield "aligned to 64 bytes", offset(64, "f4")
    yield "half aligned", offset(8, "c16")


def tensors():
    kinds = "float32 float64 int32 uint8 bool complex64 bfloat16 uint16 float8_e5m2 complex32"
    for dtype in kinds.split():
        yield dtype, torch.from_numpy(grid("f4")).to(getattr(torch, dtype))


def marked(x):
    """What a tensor's memory does not show."""
    yield "", x
    if isinstance(x, torch.Tensor):
        yield "negative", torch._neg_view(x)
        if x.is_complex():
            yield "conjugate", x.conj()
        if x.dtype is torch.complex64:
            yield "imaginary", x.conj().imag
        if x.dtype in (torch.float32, torch.complex64):
            yield "tracked", x.clone().requires_grad_()
            yield "tracked, transposed", x.clone().requires_grad_().mT if x.ndim > 1 else x


def others():
    big = np.arange(1 << 16, dtype=np.float32).reshape(128, 512)
    yield "large, flipped", big[::-1]
    yield "large, transposed", big.T
    yield "large, read-only", frozen(big.copy())
    yield "large conjugate", torch.ones(256, 512, dtype=torch.complex64).T.conj()
    yield "dates", np.arange(12).astype("M8[s]").reshape(3, 4).T
    yield "masked", np.ma.array(grid("f4"), mask=grid("f4") > 3)
    yield "matrix", np.asmatrix(grid("f4"))
    yield "sparse", torch.eye(3).to_sparse()
    yield "quantized", torch.quantize_per_tensor(torch.ones(3, 4), 0.1, 0, torch.qint8)
    yield "meta", torch.ones(3, 4, device="meta")
    yield "zeros", torch._efficientzerotensor((3, 4))
    yield "parameter", torch.nn.Parameter(torch.ones(3, 4))
    for dtype in ("float32", "bool", "complex64", "bfloat16"):
        x = jax.numpy.arange(12).reshape(3, 4).astype(dtype)
        yield f"JAX {dtype}", x
        yield f"JAX {dtype}, transposed", x.T
    yield "chunks", pa.chunked_array([[1.0, 2.0], [3.0]])
    yield "nulls", pa.array([1.0, None])
    yield "bits", pa.array([True, False, True])
    yield "an Arrow tensor", pa.Tensor.from_numpy(np.asfortranarray(grid("f4")))
    yield "a table", pa.table({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    yield "bytes", b"abcd"
    yield "an Array", ab.from_dlpack(grid("f4").T)
    yield "an Array of a tensor", ab.from_dlpack(torch.ones(3, 4, dtype=torch.complex64).conj().T)


def sources():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of prototypes
        made = dict(others())
        for dtype, whole in (*numpys(), *tensors()):
            for layout, view in views(whole):
                made |= {f"{dtype} {layout} {mark}": x for mark, x in marked(view)}
    return made


def in_order(info, order):
    step = 1
    for axis in reversed([*AXES[order](info.ndim)]):
        if info.shape[axis] != 1 and info.strides[axis] != step:
            return False
        step *= info.shape[axis]
    return not {"fraction", "chunks", "columns"} & set(info.pending)


def bounds(info):
    low, high = span(info.shape, in_bytes(info.strides, info.itemsize), info.itemsize)
    return info.pointer + low, info.pointer + high


def shares(x, info, y, made):
    """Whether two arrays are the same memory; None where nothing tells."""
    if y is x or y is getattr(x, "native", None):
        return True
    if info is None or info.refused or not (info.size and made.size):
        return None
    if {"fraction", "chunks", "columns"} & set(info.pending):
        return None
    (low, high), (other_low, other_high) = bounds(info), bounds(made)
    return low < other_high and other_low < high


def told(call):
    try:
        return call(), None
    except (ab.ConversionError, ValueError, TypeError) as error:
        return None, str(error)


def check(x, to, terms):
    route, why = told(lambda: ab.explain(x, to, **terms))
    if why is None and route.kind == "refuse":
        route, why = None, route.why
    info, _ = told(lambda: ab.inspect(x))
    for _ in range(2):
        y, said = told(lambda: ab.convert(x, to, **terms))
        if said is not None and "casting='same_value', but" in said:
            return  # it has looked at the elements
        assert said == why
        if said is not None:
            continue
        made = ab.inspect(y)
        shared = shares(x, info, y, made)
        assert shared in (None, route.kind == "view"), route
        assert terms.get("copy") is not False or route.kind == "view", route
        assert not (terms.get("copy") and shared), route
        if terms.get("order") in AXES and made.size and not made.refused:
            assert in_order(made, terms["order"]), (made.strides, route)
        if route.made is not None:
            assert (route.made.shape, route.made.dtype) == (made.shape, made.dtype)
            if made.size:
                lies = zip(route.made.strides, made.strides, made.shape, strict=True)
                assert all(one == other or n == 1 for one, other, n in lies), made.strides


def sweep(seed, count):
    rng, drawn = random.Random(seed), sources()
    usual = {"casting": "same_kind", "alias_readonly": False}
    for _ in range(count):
        name, to = rng.choice([*drawn]), rng.choice(TARGETS)
        terms = {key: rng.choice(values) for key, values in TERMS.items()}
        terms = {k: v for k, v in terms.items() if v is not None and v != usual.get(k, usual)}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                check(drawn[name], to, terms)
        except BaseException as error:
            error.add_note(f"{name} to {to}, {terms}")
            raise


@pytest.mark.parametrize("seed", range(4))
def test_drawn(seed):
    sweep(seed, 1000)


VIEWS_REFUSED = {
    "read-only": (lambda: frozen(grid("f4")), "torch"),
    "conjugate": (lambda: torch.ones(3, 4, dtype=torch.complex64).conj(), "numpy"),
    "negative": (lambda: torch._neg_view(torch.ones(3, 4)), "numpy"),
    "swapped": (lambda: grid(">f4"), "torch"),
    "misaligned": (lambda: offset(4, "f4"), "jax"),
    "flipped": (lambda: grid("f4")[::-1], "torch"),
    "field": (lambda: field("f4", "u1"), "torch"),
    "chunks": (lambda: pa.chunked_array([[1.0], [2.0]]), "numpy"),
}


@pytest.mark.parametrize("name", VIEWS_REFUSED)
def test_copy_false_never_copies_whatever_order_is_asked_for(name):
    make, to = VIEWS_REFUSED[name]
    for order, dtype in product(("C", "F", "K", None), (None, "same")):
        x = make()
        terms = {"copy": False, "order": order}
        if dtype:
            terms["dtype"] = ab.inspect(x).dtype
        said = ab.explain(x, to, **terms)
        assert said.kind == "refuse"
        calls = (
            lambda x=x, terms=terms: ab.convert(x, to, **terms),
            lambda x=x, terms=terms: ab.unify(x, like=to, **terms),
            lambda x=x, terms=terms: ab.adapt(to, result=to, **terms)(lambda y: None)(x),
        )
        for call in calls:
            with pytest.raises(ab.ConversionError, match="copy=False"):
                call()


@pytest.mark.parametrize("to", TARGETS)
def test_a_field_of_records_gets_the_order_that_is_asked_for(to):
    for x, order in product((field("f4", "u1"), field("f8", "f4")[0], field("f4", "u1")[1]), "CF"):
        if to == "jax" and (x.itemsize == 8 or order == "F"):
            continue
        made = ab.inspect(y := ab.convert(x, to, order=order))
        assert in_order(made, order)
        assert not made.pending
        assert np.array_equal(np.asarray(ab.convert(y, "numpy")), x)
        with pytest.raises(ab.ConversionError, match="copy=False"):
            ab.convert(x, to, order=order, copy=False)
    assert ab.convert(x, "numpy", copy=False) is x


@pytest.mark.parametrize("to", TARGETS)
def test_what_is_pending_is_applied_in_the_order_that_is_asked_for(to):
    z = torch.view_as_complex(torch.arange(24.0).reshape(3, 4, 2))
    for x in (z.T.conj(), z.conj().imag.T, z.repeat(300, 100).T.conj()):
        for order in ("C", "F"):
            if to in ("pyarrow", "tvm_ffi") and x.is_complex():
                continue  # neither has complex numbers
            if ab.explain(x, to, order=order, copy=True).kind == "refuse":
                assert order == "F"
                continue
            made = ab.convert(x, to, order=order, copy=True)
            assert in_order(ab.inspect(made), order)
            assert np.array_equal(
                np.asarray(ab.convert(made, "numpy")), x.resolve_conj().resolve_neg()
            )


@pytest.mark.filterwarnings("ignore:ComplexHalf", "ignore:.*complex32")
def test_complex32_is_cast_by_pytorch():
    x = torch.view_as_complex(torch.arange(8.0).half().reshape(2, 2, 2))
    for to in ("numpy", "torch", "array_api_strict"):
        for y in (x, x.T, x.conj(), x[:0]):
            made = ab.convert(y, to, dtype="complex64", order="C")
            assert ab.inspect(made).dtype == ab.DataType("complex64")
            assert np.array_equal(
                np.asarray(ab.convert(made, "numpy")), y.to(torch.complex64).resolve_conj()
            )


@pytest.mark.heavy
@pytest.mark.parametrize("to", ["mlx", "paddle", "tensorflow"])
def test_a_library_whose_own_import_or_copy_may_keep_the_layout(to):
    out = python(
        f"import {to}\nimport numpy as np, arraybridge as ab\n"
        "from tests.test_keywords import grid, in_order\n"
        f"to = {to!r}\n"
        "repeated = np.broadcast_to(grid('f4')[0], (3, 4))\n"
        "for x in (grid('f4').T, grid('f4')[:, ::2], grid('u1').T, repeated):\n"
        "    for terms in ({}, {'copy': True}, {'dtype': 'float32'}):\n"
        "        for _ in range(2):\n"
        "            y = ab.convert(x, to, order='C', **terms)\n"
        "            assert in_order(ab.inspect(y), 'C'), (ab.inspect(y), terms)\n"
        "            assert np.array_equal(ab.convert(y, 'numpy'), x)\n"
        "if to == 'paddle':\n"
        "    x = paddle.to_tensor([[1.0, 2.0], [3.0, 4.0]], stop_gradient=False)\n"
        "    y = ab.convert(x.T, to, order='C')\n"
        "    assert in_order(ab.inspect(y), 'C') and y.numpy().tolist() == [[1, 3], [2, 4]]\n"
        "    (y * y).sum().backward()\n"
        "    assert x.grad.tolist() == [[2, 4], [6, 8]]\n"
        "print('in order')",
        flags=(),
    )
    assert out.endswith("in order\n")


if __name__ == "__main__":
    sweep(*map(int, sys.argv[1:]))
