"""The quick ways of `convert` with any keywords: what the plan alone does, first and later."""

from __future__ import annotations

import ctypes
import importlib
import inspect
from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import arraybridge as ab
from arraybridge.dispatch.library import place_named
from arraybridge.dispatch.registry import KNOWN, ROUTES, forget, library_named
from arraybridge.exchange import _planned
from arraybridge.layout import in_bytes, span

from .support.boxed import LIBRARY as BOXED
from .support.optional import optional
from .support.strategies import STANDARD_DTYPES, strided_arrays
from .test_doors import numpys, tensors

torch = optional("torch")

TARGETS = ["numpy", "torch", "jax", "pyarrow", "tvm_ffi", "array_api_strict"]
DEVICES = [None, "cpu", "cpu:1", ab.Device(1), (1, 0), "cuda", "metal"]
TERMS = [
    {"device": device, "copy": copy, "alias_readonly": alias}
    for device, copy, alias in product(DEVICES, (None, False, True), (False, True))
]
ODD_TERMS = [{"copy": 1}, {"copy": np.True_}, {"copy": 0}, {"alias_readonly": 1}]
WRONG_TERMS = [{"copy": 1.0}, {"copy": "no"}, {"device": "gpux"}, {"device": (1.0, 0)}]


def told(make, x):
    """What came of a conversion: how the result lies, whether it shares memory, its bytes."""
    try:
        result = make()
    except (BufferError, ValueError, TypeError) as error:
        return type(error), str(error)
    info = ab.inspect(result)
    steps = [s for n, s in zip(info.shape, info.strides, strict=True) if n > 1 and info.size]
    place = info.pointer if info.size and info.pointer == ab.inspect(x).pointer else None
    values = () if "fake" in type(result).__name__.lower() else _bytes(result, info)
    return (type(result), info._replace(data=0, byte_offset=0, strides=()), steps, place, values)


def _bytes(result, info):
    if info.refused or info.pending or not info.device.host:
        return None
    low, high = span(info.shape, in_bytes(info.strides, info.itemsize), info.itemsize)
    return ctypes.string_at(info.pointer + low, high - low)


def planned(x, to, device=None, copy=None, alias_readonly=False):
    """`convert` without ways and doors."""
    place = None if device is None else place_named(device)
    return _planned(x, library_named(to), device=place, copy=copy, alias_readonly=alias_readonly)


def check(x, to, terms):
    route = told_route(x, to, terms)
    expected = told(lambda: planned(x, to, **terms), x)
    for _ in range(2):
        assert told(lambda: ab.convert(x, to, **terms), x) == expected, terms
    assert told_route(x, to, terms) == route


def told_route(x, to, terms):
    try:
        return str(ab.explain(x, to, **terms))
    except (BufferError, ValueError, TypeError) as error:
        return str(error)


@pytest.fixture(params=TARGETS)
def target(request):
    pytest.importorskip(request.param)
    return request.param


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # numpy.matrix
@pytest.mark.filterwarnings("ignore:.*complex32", "ignore:ComplexHalf", "ignore:.*not writ")
@pytest.mark.parametrize("arrays", [numpys, tensors])
def test_odd_arrays(arrays, target):
    forget()
    for name, x in arrays():
        for terms in TERMS[:: 1 if name in ("0-d", "conj", "neg") else 5]:
            try:
                check(x, target, terms)
            except AssertionError as error:
                error.add_note(name)
                raise


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # numpy.matrix
@pytest.mark.filterwarnings("ignore:.*complex32", "ignore:ComplexHalf", "ignore:.*not writ")
@pytest.mark.parametrize("arrays", [numpys, tensors])
def test_arrays_of_ours_over_odd_ones(arrays, target):
    forget()
    for name, x in arrays():
        try:
            carried = ab.from_dlpack(x)
        except ab.ConversionError:
            continue
        for terms in TERMS[::7]:
            try:
                check(carried, target, terms)
            except AssertionError as error:
                error.add_note(name)
                raise


@pytest.mark.parametrize("terms", [*ODD_TERMS, *WRONG_TERMS], ids=str)
def test_what_equals_a_keyword_is_not_taken_for_it(terms):
    x = np.arange(4.0)
    for to in ("numpy", "torch"):
        for usual in TERMS[:12]:
            told(lambda usual=usual, to=to: ab.convert(x, to, **usual), x)
        check(x, to, terms)


@pytest.mark.parametrize("source", ["numpy", "torch", "jax", "array_api_strict"])
def test_drawn_arrays(source, target):
    pytest.importorskip(source)
    forget()

    @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        x=strided_arrays(dtypes=st.sampled_from(STANDARD_DTYPES), max_size=32),
        readonly=st.booleans(),
        terms=st.sampled_from(TERMS),
    )
    def drawn(x, readonly, terms):
        if readonly:
            x.flags.writeable = False
        try:
            x = x if source == "numpy" else ab.convert(x, source, alias_readonly=True)
        except ab.ConversionError:
            return
        check(x, target, terms)

    drawn()


def alike():
    """Arrays that share a pattern, and differ in what is not in it."""
    block = np.zeros(200, np.uint8)
    start = -block.ctypes.data % 64
    off = [block[start + n : start + n + 48].view("D") for n in (0, 8, 16, 4)]
    yield off
    large, small = np.zeros(1 << 17)[::-1], np.arange(6.0)[::-1]
    yield [np.arange(6.0)[::-1], large, small, np.zeros((0,))[::-1]]
    frozen = [np.arange(n, dtype="f4") for n in (0, 1, 5, 1 << 16)]
    for x in frozen:
        x.flags.writeable = False
    yield frozen
    z = torch.ones(1 << 16, dtype=torch.complex64)
    yield [z[:3].conj(), z.conj(), z[:0].conj(), z.view(256, 256).T.conj(), z.conj().expand(2, -1)]


@pytest.mark.parametrize("to", ["numpy", "torch"])
def test_arrays_that_share_a_pattern(to):
    for arrays in alike():
        for order in (arrays, arrays[::-1]):
            forget()  # so that the first decides
            for terms in ({}, {"copy": True}, {"alias_readonly": True}, {"device": "cpu"}):
                for x in order:
                    check(x, to, terms)


def test_a_tensor_that_changes_between_calls():
    for change in (
        lambda x: x.requires_grad_(True),
        lambda x: x.resize_(2, 3),
        lambda x: x.t_(),
        lambda x: x.untyped_storage().resize_(8),
        lambda x: x.untyped_storage().resize_(0),
        lambda x: x.set_(torch.ones(3)),
        lambda x: setattr(x, "data", torch.ones(3, 2)[:, 1]),
    ):
        for to, copy in product(("numpy", "torch"), (None, True)):
            x = torch.ones(2, 2)
            ab.convert(x, to, copy=True)
            change(x)
            check(x, to, {"copy": copy})


@pytest.mark.filterwarnings("ignore:.*torch.jit.script")
def test_inside_transformations():
    def inside(x):
        for to, copy in product(("numpy", "torch"), (False, True)):
            if to == "torch" and not copy:
                continue  # it is one
            with pytest.raises(ab.ConversionError):
                ab.convert(x, to, copy=copy)
        return x

    ab.convert(torch.ones(3), "numpy", copy=True)
    ab.convert(torch.ones(3), "torch", copy=True)
    torch.vmap(inside)(torch.ones(2, 3))
    torch.func.functionalize(inside)(torch.ones(3))
    torch.func.jvp(inside, (torch.ones(3),), (torch.ones(3),))


def test_a_copy_is_of_nobody_else():
    for x in (np.arange(6.0), np.arange(6.0)[::-1], torch.arange(6.0), torch.ones(3, 2).T):
        for to in ("numpy", "torch"):
            made = [ab.convert(x, to, copy=True) for _ in range(2)]
            places = {ab.inspect(a).pointer for a in (x, *made)}
            assert len(places) == 3
            before = np.asarray(x).copy()
            made[0][...] = -1
            np.testing.assert_array_equal(np.asarray(x), before)
            np.testing.assert_array_equal(np.asarray(made[1]), before)


def test_a_kernel_or_a_library_that_is_registered_between_calls():
    calls = []

    def kernel(dst, src, shape, dst_strides, src_strides, itemsize, stream):
        calls.append(shape)
        from arraybridge.kernels import cpu

        cpu.copy(dst, src, shape, dst_strides, src_strides, itemsize)

    x = np.arange(6.0)[::-1]
    for _ in range(2):
        assert ab.explain(x, "torch").kernel == "numpy's own copy"
        assert ab.convert(x, "torch").tolist() == x.tolist()
        ab.register_kernel("cpu", kernel, name="mine")
        try:
            assert ab.explain(x, "torch").kernel == "mine"
            ab.convert(x, "torch"), ab.convert(x, "numpy", copy=True)
            assert len(calls) == 2
        finally:
            ab.register_kernel("cpu", None)
        ab.convert(x, "torch")
        assert len(calls) == 2
        calls.clear()

    class Other(type(BOXED)):
        name = "numpy"

        def owns(self, array_type):
            return False

    ab.convert(x, "numpy", copy=True)
    ab.register_library(Other(), replace=True)
    try:
        with pytest.raises(ab.ConversionError, match="boxed has no float32"):
            ab.convert(torch.ones(2), "numpy", copy=True)
        assert ab.convert(x, "torch").tolist() == x.tolist()
    finally:
        ab.unregister_library("numpy")
    assert type(ab.convert(x, "numpy", copy=True)) is np.ndarray


def test_what_is_remembered_is_bounded():
    forget()
    for n in range(600):
        x = np.zeros((2, n + 2))[:, ::-1]
        ab.convert(x, "torch", device="cpu" + n * "0" if n == 0 else f"cpu:{'0' * n}")
        ab.convert(x, "torch")
    record = KNOWN[np.ndarray]
    assert 0 < len(record.ways_with) <= 256
    [small] = record.ways["torch"][None][1:]
    assert 0 < len(inspect.getclosurevars(small).nonlocals["decided"]) <= 256


def test_the_module_serves_as_the_name():
    x = np.arange(3.0)
    for name in TARGETS[:2]:
        module = importlib.import_module(name)
        for copy in (None, True):
            assert type(ab.convert(x, module, copy=copy)) is type(ab.convert(x, name, copy=copy))


def test_routes_are_remembered_and_bounded():
    forget()
    for n in range(1100):
        assert ab.explain(np.zeros((2, n + 1)), "torch").kind == "view"
    assert 0 < len(ROUTES) <= 1024
    ab.register_kernel("cpu", None)
    assert not ROUTES


def test_routes_differ_where_an_array_does():
    jax = pytest.importorskip("jax")
    block = np.zeros(256, np.uint8)
    start = -block.ctypes.data % 64
    for to, dtype, off in (("jax", "f4", 4), ("torch", "D", 8)):
        for order in ((0, off, 0), (off, 0, off)):
            forget()
            for n in order:
                x = block[start + n : start + n + 64].view(dtype)
                route = ab.explain(x, to, copy=False)
                assert (route.kind == "view") == (n == 0)
                assert n == 0 or f"this is aligned to {n}" in route.why
    x = np.zeros(3, "f8")
    for wide in (False, True, False):
        with jax.enable_x64(wide):
            assert (ab.explain(x, "jax").kind == "refuse") != wide
    for alias in (False, True, False):
        kind = ab.explain(np.broadcast_to(1.0, 3), "torch", alias_readonly=alias).kind
        assert kind == ("view" if alias else "kernel")
    plain, derived = np.zeros(3), np.zeros(3).view(type("Sub", (np.memmap,), {}))
    for x in (plain, derived, plain):
        forget()
        for y in (x, plain, derived):
            own = ab.explain(y, "torch", copy=True).kernel == "numpy's own copy"
            assert own == (y is plain)


def test_dtypes_that_a_door_refused_once():
    """Of these the doors ask more from then on, and every array goes as the plan has it."""
    plain, halves = torch.arange(6.0), torch.arange(6.0).to(torch.bfloat16)
    pairs = torch.view_as_complex(plain.reshape(-1, 2))
    x = np.arange(6.0)
    for _ in range(2):
        for tensor in (plain, halves, pairs, pairs.conj(), pairs.conj().imag, plain[::2]):
            for terms in TERMS[::4]:
                check(tensor, "numpy", terms)
                check(tensor.clone().requires_grad_(), "numpy", terms)
        for array in (x, x.astype(">f8"), x.astype(">f8")[::-1], x.astype(">c16"), x[::-1]):
            for terms in TERMS[::4]:
                check(array, "torch", terms)


@pytest.mark.parametrize("source", ["numpy", "jax", "pyarrow"])
def test_views_of_read_only_memory(source):
    """``alias_readonly=True``: writable, on the same memory, which is held."""
    pytest.importorskip(source)
    x = np.arange(24.0, dtype=np.float32).reshape(4, 6)
    x.flags.writeable = False
    made = ab.convert(x[0] if source == "pyarrow" else x, source)
    view = ab.convert(made, "torch", alias_readonly=True)
    assert type(view) is torch.Tensor
    assert view.data_ptr() == ab.inspect(made).pointer
    del made
    assert view.ravel().tolist()[:6] == [0, 1, 2, 3, 4, 5]
    odd = (
        x[::-1], x[:, ::-1], x[:, ::2], x[:0], x.T, x.astype(">f4"), x.astype(np.complex128),
        np.frombuffer(bytes(33), np.complex128, 2, 1), np.broadcast_to(x[0], (3, 6)), np.float32(1),
        np.broadcast_arrays(x[0], x)[0],
    )  # fmt: skip
    for array in odd:
        for terms in TERMS:
            check(array, "torch", terms)
