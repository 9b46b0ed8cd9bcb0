"""Any array, any request, any library: what `explain` says is done, the first time and later.

Only the promises of a conversion are asserted: the elements, the owner of the memory, who may write
to it, the layout, and errors with the same message. A
longer sweep: ``python -m tests.properties.test_conversions 1 100000`` (seed, draws).
"""

import random
import sys
import warnings
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

import arraybridge as ab
from arraybridge.core.registry import forget
from arraybridge.layout import in_bytes, span
from tests.support.optional import installed, optional
from tests.support.processes import python
from tests.support.producers import Producer
from tests.support.sources import elements, grid, handed_over, sources
from tests.support.strategies import STANDARD_DTYPES, strided_arrays

torch, jax, ml_dtypes = optional("torch"), optional("jax"), optional("ml_dtypes")

LIGHT = [
    name
    for name in ("numpy", "torch", "jax", "pyarrow", "tvm_ffi", "array_api_strict")
    if installed(name)
]
HEAVY = ["tensorflow", "paddle", "warp", "mlx"]
WRITABLE_ALWAYS = ("torch", "tvm_ffi", "paddle", "warp")  # their arrays cannot be marked
REQUESTS = {
    "device": [None, None, None, None, "cpu", "cpu:1", (1, 0), "cuda", "metal"],
    "copy": [None, None, None, False, False, True, 0, np.True_],
    "alias_readonly": [False, False, True],
    "dtype": [
        None, None, None, None, "float32", "float64", "int16", "bool", "complex64", "bfloat16",
        "uint8", {"float64": "float32"}, np.float16, float,
    ],
    "casting": ["same_kind", "same_kind", "unsafe", "safe", "no", "same_value"],
    "order": [None, None, "C", "C", "F", "F", "channels_last", "K"],
}  # fmt: skip
DEFAULTS = {"casting": "same_kind", "alias_readonly": False}
AXES = {
    "C": lambda n: range(n),
    "F": lambda n: reversed(range(n)),
    "channels_last": lambda n: (0, *range(2, n), 1),
}
IN_PIECES = {"fraction", "chunks", "columns"}


def in_order(info, order):
    step = 1
    for axis in reversed([*AXES[order](info.ndim)]):
        if info.shape[axis] != 1 and info.strides[axis] != step:
            return False
        step *= info.shape[axis]
    return not IN_PIECES & set(info.pending)


def bounds(info):
    low, high = span(info.shape, in_bytes(info.strides, info.itemsize), info.itemsize)
    return info.pointer + low, info.pointer + high


def overlap(one, other):
    (low, high), (other_low, other_high) = bounds(one), bounds(other)
    return low < other_high and other_low < high


def shares(x, info, y, made):
    """Whether two arrays are the same memory; None if unknown."""
    if y is x or y is getattr(x, "native", None):
        return True
    if info is None or info.refused or not (info.size and made.size) or np.isscalar(x):
        return None
    return None if IN_PIECES & set(info.pending) else overlap(info, made)


def outcome(call):
    try:
        return call(), None
    except (BufferError, ValueError, TypeError) as error:
        return None, (type(error), str(error))


def equal(found, expected, dtype):
    """Whether the elements are those of the source, cast to a data type."""
    if found is None:
        return True
    to = np.bool_ if dtype.name == "bool" else getattr(np, dtype.name, None)
    to = to or getattr(ml_dtypes, dtype.name, None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = expected if to is None else expected.astype(to)
        return np.array_equal(found.astype(complex), expected.astype(complex), equal_nan=True)


def check(x, to, request, expected=None, times=2):
    """Hold `explain`, each call and the arrays that they give against each other."""
    route, why = outcome(lambda: ab.explain(x, to, **request))
    if why is None and route.kind == "refuse":
        route, why = None, (ab.ConversionError, route.why)
    info, _ = outcome(lambda: ab.inspect(x))
    results = []
    for _ in range(times):
        y, error = outcome(lambda: ab.convert(x, to, **request))
        if error is not None and "casting='same_value', but" in error[1]:
            return None  # it has looked at the elements
        assert (error and error[1]) == (why and why[1]), (error, why)
        assert error is None or issubclass(error[0], why[0]) or issubclass(why[0], error[0])
        if error is not None:
            continue
        made = ab.inspect(y)
        shared = shares(x, info, y, made)
        assert shared in (None, route.kind == "view"), route
        assert (route.nbytes == 0) == (route.kind == "view" or not made.size), route
        if request.get("copy") is not None:
            assert (route.kind == "view") == (not request["copy"]), route
        if shared and info.readonly and not made.readonly and y is not x:
            assert to in WRITABLE_ALWAYS, route
            assert request.get("alias_readonly") or type(y) is type(x), route
        if request.get("order") in AXES and made.size and not made.refused:
            assert in_order(made, request["order"]), (made.strides, route)
        assert route.made is None or route.kind != "view"
        if route.made is not None:
            assert (route.made.shape, route.made.dtype) == (made.shape, made.dtype)
            if made.size:
                lies = zip(route.made.strides, made.strides, made.shape, strict=True)
                assert all(one == other or n == 1 for one, other, n in lies), made.strides
        if expected is not None and not made.refused:
            assert equal(elements(y), expected, made.dtype), (elements(y), expected, route)
        results.append((y, made))
    for (y, one), (z, other) in pairwise(results):
        assert type(y) is type(z)
        assert (one.shape, one.dtype, one.readonly) == (other.shape, other.dtype, other.readonly)
        if request.get("copy") and one.size and not one.refused:
            assert not overlap(one, other)
    if times > 1:
        again, _ = outcome(lambda: ab.explain(x, to, **request))
        assert (again and again.kind) == (route.kind if route else again and "refuse"), again
    return route.kind if route else "refuse"


def known(x):
    """The elements of a source, None where its library cannot say them."""
    try:
        return elements(x)
    except Exception:
        return None


def sweep(seed, count, targets=LIGHT):
    rng, drawn = random.Random(seed), sources()
    expected = {name: known(x) for name, x in drawn.items()}
    for _ in range(count):
        name, to = rng.choice([*drawn]), rng.choice(targets)
        request = {key: rng.choice(values) for key, values in REQUESTS.items()}
        request = {k: v for k, v in request.items() if v is not None and v != DEFAULTS.get(k, ...)}
        if rng.random() < 0.3:
            request = {}
        if rng.random() < 0.1:
            forget()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                check(drawn[name], to, request, expected[name])
        except BaseException as error:
            error.add_note(f"{name} to {to}, {request}")
            raise


@pytest.mark.parametrize("seed", range(4))
def test_drawn(seed):
    sweep(seed, 1500)


@pytest.mark.parametrize("target", LIGHT)
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    array=strided_arrays((*STANDARD_DTYPES, "float16", ml_dtypes.bfloat16), max_size=64),
    source=st.sampled_from([*LIGHT, "producer", "capsule"]),
    versioned=st.booleans(),
    byte_offset=st.sampled_from([0, 1, 8, 64, 4096]),
    request=st.fixed_dictionaries(
        {},
        optional={
            "copy": st.sampled_from([False, True]),
            "alias_readonly": st.booleans(),
            "order": st.sampled_from("CFK"),
        },
    ),
)
def test_drawn_layouts(target, array, source, versioned, byte_offset, request):
    expected, managed = array.copy(), None
    with jax.enable_x64(True):
        if source in ("producer", "capsule"):
            managed = handed_over(array, versioned, byte_offset)
            x = Producer(managed) if source == "producer" else managed.capsule()
        else:
            x, refused = outcome(lambda: ab.convert(array, source, alias_readonly=True))
            assume(refused is None)
        kind = check(x, target, request, expected, times=1 if source == "capsule" else 2)
        event(f"{kind} from {source}")
    assert np.array_equal(array, expected)
    del x
    if managed is not None:
        assert managed.deleted == managed.handed_out


@pytest.mark.heavy
@pytest.mark.parametrize("name", HEAVY)
def test_drawn_of_heavy_libraries(name):
    """There by any request, and from there to others."""
    pytest.importorskip("mlx.core" if name == "mlx" else name)
    sweep(0, 1000, [name])
    made = [ab.convert(x, name) for x in (grid("f4"), grid("i4").T, grid("f4")[:0], np.ones(1))]
    for x, to in product(made, LIGHT):
        check(x, to, {})


@pytest.mark.parametrize("to", LIGHT)
def test_under_modes(to):
    from torch._subclasses.fake_tensor import FakeTensorMode

    x, tensor = np.arange(3, dtype="f4"), torch.ones(4)
    for mode in (FakeTensorMode, lambda: torch.device("meta"), torch.inference_mode):
        with mode():
            check(x, to, {})
            assert type(ab.convert(x[::-1], "torch")) is torch.Tensor
            if to in ("numpy", "tvm_ffi"):
                assert check(tensor, to, {}) == "view"
    assert type(ab.convert(x, "torch")) is torch.Tensor


CHANGES = {
    "tracked": lambda x: x.requires_grad_(True),
    "resized": lambda x: x.resize_(2, 3),
    "transposed": lambda x: x.t_(),
    "its storage cut": lambda x: x.untyped_storage().resize_(8),
    "its storage gone": lambda x: x.untyped_storage().resize_(0),
    "set": lambda x: x.set_(torch.ones(3)),
    "given other data": lambda x: setattr(x, "data", torch.ones(3, 2)[:, 1]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_tensor_that_changes_between_calls(change):
    """Neither a copy nor a cast locks the storage, which a view does."""
    for to, copy, how in product(("numpy", "torch"), (None, True), ("copy", "dtype", "order")):
        x = torch.ones(2, 2)
        ab.convert(x, to, **{how: {"copy": True, "dtype": "float64", "order": "F"}[how]})
        CHANGES[change](x)
        check(x, to, {} if copy is None else {"copy": copy})


def test_what_reads_an_array_leaves_its_storage_as_it_was():
    for look in (repr, ab.inspect, lambda x: ab.contiguous(x.T), lambda x: x + 1, np.array):
        x = torch.ones(2, 3)
        look(ab.from_dlpack(x))
        assert x.untyped_storage().resizable()


@pytest.mark.filterwarnings("ignore:.*torch.jit.script")
def test_inside_transformations():
    def inside(x):
        for copy in (False, True):
            with pytest.raises(ab.ConversionError):
                ab.convert(x, "numpy", copy=copy)
        if torch._is_functional_tensor(x):
            with pytest.raises(ab.ConversionError):
                ab.convert(x, "torch", copy=True)
            return x
        return ab.convert(x, "torch", copy=True)

    ab.convert(torch.ones(3), "numpy", copy=True)
    ab.convert(torch.ones(3), "torch", copy=True)
    assert torch.vmap(inside)(torch.ones(2, 3)).tolist() == [[1] * 3] * 2
    torch.func.functionalize(inside)(torch.ones(3))
    made, tangent = torch.func.jvp(inside, (torch.ones(3),), (torch.full((3,), 2.0),))
    assert (made.tolist(), tangent.tolist()) == ([1] * 3, [2] * 3)


def test_what_the_target_is_set_to_decides():
    x = np.zeros(3, "f8")
    for wide in (False, True, False):
        with jax.enable_x64(wide):
            assert (check(x, "jax", {}) == "refuse") != wide


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
    pytest.importorskip("mlx.core" if to == "mlx" else to)
    out = python(
        f"import {to}\nimport numpy as np, arraybridge as ab\n"
        "from tests.properties.test_conversions import grid, in_order\n"
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
