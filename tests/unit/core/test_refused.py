"""What a plain `convert` refuses is refused with every keyword, by every caller, in one voice.

Its own library could cast some of it, and would end the process, or read what is not there.
"""

import itertools
import pickle
import re
import sys
import warnings

import numpy as np
import pytest

import arraybridge as ab
from arraybridge.core.registry import forget
from arraybridge.dlpack import CPU, DataType
from tests.support.optional import installed, needs, optional
from tests.support.processes import python

torch = optional("torch")
FakeTensorMode = optional("torch._subclasses.fake_tensor").FakeTensorMode
LIGHT = ("numpy", "jax", "tvm_ffi", "pyarrow", "array_api_strict")
TARGETS = [name for name in LIGHT if installed(name)]


def resized(x, nbytes):
    x.untyped_storage().resize_(nbytes)
    return x


def nested(layout):
    return torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=layout)


# What reads beyond its memory where nobody looks: in a process of its own.
WITHOUT_MEMORY = {
    "resized to 0": lambda: resized(torch.ones(64, 64), 0),
    "a byte too few": lambda: resized(torch.ones(3, 4).T, 47),
    "sliced": lambda: resized(torch.ones(64, 64)[:, ::2], 16),
    "large": lambda: resized(torch.ones(1500, 1500).T, 16),
    "integers": lambda: resized(torch.ones(64, 64, dtype=torch.int32).T, 0),
    "complex": lambda: resized(torch.ones(64, 64, dtype=torch.complex64), 16).conj(),
    "bfloat16": lambda: resized(torch.ones(64, 64).bfloat16(), 0),
    "a parameter": lambda: resized(torch.nn.Parameter(torch.ones(64, 64)), 0),
}
OTHERS = {
    "meta": lambda: torch.ones(3, 4, device="meta").T,
    "nested": lambda: nested(torch.strided),
    "jagged": lambda: nested(torch.jagged),
    "uninitialized": torch.nn.UninitializedParameter,
    "uninitialized buffer": torch.nn.UninitializedBuffer,
    "fake": lambda: FakeTensorMode().from_tensor(torch.ones(3, 4)),
    "zeros": lambda: torch._efficientzerotensor((3, 4)).T,
    "imaginary zeros": lambda: torch._efficientzerotensor((3, 4), dtype=torch.complex64).imag,
    "functionalized": lambda: torch._to_functional_tensor(torch.ones(3, 4)).T,
    "coo": lambda: torch.eye(3).to_sparse().requires_grad_(),
    "csr": lambda: torch.eye(3).to_sparse_csr(),
    "bsc": lambda: torch.eye(4).to_sparse_bsc((2, 2)),
    "mkldnn": lambda: torch.ones(3, 4).to_mkldnn(),
    "quantized": lambda: torch.quantize_per_tensor(torch.ones(3, 4), 0.1, 0, torch.qint8)[:, ::2],
    "negative": lambda: torch._neg_view(torch.ones(3, 4).to(torch.uint16)[:, ::2]),
}

CASTS = [
    {"dtype": "complex128"},
    {"dtype": torch.complex128, "casting": "unsafe", "device": "cpu"},
    {"dtype": "complex128", "casting": "same_value", "copy": True},
    {"dtype": "complex128", "copy": False},
    {"dtype": "complex128", "order": "F", "alias_readonly": True},
]
LAID = [{"order": "C"}, {"order": "F"}, {"order": "F", "copy": True, "device": "cpu"}]


def calls(x):
    """Yield calls that would have to read the elements."""
    requests = [("torch", terms) for terms in [*CASTS, *LAID]]
    requests += [("numpy", terms) for terms in ({"copy": True}, *CASTS[:1], *LAID[1:2])]
    requests += [(to, {}) for to in TARGETS]
    for to, terms in requests:
        if terms.get("order") == "F" and "dtype" not in terms and x.is_nested:
            continue
        yield lambda to=to, terms=terms: ab.convert(x, to, **terms)
        yield lambda to=to, terms=terms: explained(x, to, **terms)
    yield lambda: ab.unify(x, dtype="complex128")
    yield lambda: ab.adapt("torch", dtype="complex128")(lambda y: None)(x)
    yield lambda: ab.convert(x, "torch", copy=True)
    yield lambda: ab.asarray(x, like="torch", dtype="complex128")
    yield lambda: ab.asarray(x, like=ab.from_dlpack(torch.ones(2)), copy=True)
    try:
        array = ab.from_dlpack(x)
    except ab.ConversionError:
        yield lambda: ab.from_dlpack(x)
    else:
        yield from calls_of_array(array)


def calls_of_array(array):
    yield lambda: array.to("numpy")
    yield lambda: array.to(copy=True)
    yield lambda: np.asarray(array)
    yield lambda: array.__dlpack__(max_version=(1, 0))
    yield lambda: array.__dlpack__(max_version=(1, 0), copy=True)
    yield lambda: bytes(array)
    yield lambda: ab.convert(array, "torch", dtype="complex128")
    yield lambda: ab.asarray(array, like="torch", copy=True)


def explained(x, to, **terms):
    route = ab.explain(x, to, **terms)
    assert route.kind == "refuse", route
    raise ab.ConversionError(route.why, route)


def check(make):
    """Every call refuses the array, with the words of a plain conversion to another library."""
    forget()  # what other tests converted: a remembered conversion fails before it is refused
    with pytest.raises(ab.ConversionError) as caught:
        ab.convert(make(), "numpy")
    assert caught.value.__context__ is None  # refused as planned, not because something failed
    said = str(caught.value)
    for turn in ("first", "later"):
        for number, call in enumerate(calls(make())):
            if turn == "later":  # records the type, by arrays that have memory
                ab.convert(torch.ones(3), "torch", dtype="complex128")
            with pytest.raises(ab.ConversionError) as caught:
                pytest.fail(f"{number}, {turn}: {call()}")
            assert str(caught.value).replace("x.native", "x") == said, (number, turn)
    if not (make().is_nested or torch.nn.parameter.is_lazy(make())):
        with pytest.raises(ab.ConversionError):
            ab.copyto(np.ones(tuple(make().shape)), make())


@needs("torch")
def test_without_memory():
    python(
        "from tests.unit.core.test_refused import *\nfor make in WITHOUT_MEMORY.values():\n"
        "    check(make)\n"
    )


@pytest.mark.parametrize("name", OTHERS)
def test_others(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of prototypes
        check(OTHERS[name])


@pytest.mark.parametrize("name", WITHOUT_MEMORY)
def test_the_remedy_works_with_every_keyword(name):
    x = WITHOUT_MEMORY[name]().detach()
    nbytes = int(re.search(r"resize_\((\d+)\)", ab.explain(x, "numpy").why)[1])
    resized(x, nbytes)
    x.resolve_conj().fill_(1)
    assert ab.convert(x, "torch", dtype="complex128").sum() is not None
    assert ab.convert(x, "torch", order="F", dtype="complex128").shape == x.shape


@pytest.mark.parametrize("nbytes", [0, 16])
def test_an_array_whose_tensor_loses_its_memory(nbytes):
    x = torch.ones(3, 4)
    array = ab.from_dlpack(x)
    resized(x, nbytes)
    for call in (*calls_of_array(array), lambda: pickle.dumps(array)):
        with pytest.raises(ab.ConversionError, match="was resized"):
            call()
    assert "its storage was resized" in repr(array)


def test_an_expanded_tensor_is_not_beyond_its_storage():
    x = torch.ones(3, 1).expand(3, 1000)
    for to in ("numpy", "tvm_ffi", "numpy"):
        assert ab.inspect(ab.convert(x, to)).pointer == x.data_ptr()


def test_transformations_still_follow_casts():
    x = torch.arange(6.0).reshape(2, 3)
    cast = lambda row: ab.convert(row, "torch", dtype="float64") * 2  # noqa: E731
    assert torch.equal(torch.vmap(cast)(x), x.double() * 2)
    gradient = torch.func.grad(lambda y: ab.convert(y, "torch", dtype="float64").sum())(x)
    assert torch.equal(gradient, torch.ones(2, 3))
    assert torch.equal(torch.vmap(ab.contiguous)(x.T), x.T)


class Blind(ab.Library):
    """A library that sees nothing wrong with address 0."""

    name = "blind"
    accepts = ab.Accepts("blind", "1", frozenset({"float32"}))
    shape = (3,)

    def owns(self, array_type):
        return array_type is Blind

    def memory_owner(self, x, info, briefly=False):
        return x

    def describe(self, x):
        return ab.TensorInfo("blind", 0, 0, x.shape, (1,), DataType.named("float32"), CPU)


def test_address_0_is_refused_unless_nothing_is_there():
    blind = Blind()
    ab.register_library(blind)
    try:
        for to, copy in itertools.product(TARGETS, (None, True, False)):
            assert ab.explain(blind, to, copy=copy).kind == "refuse"
            with pytest.raises(BufferError, match="data pointer is null"):
                ab.convert(blind, to, copy=copy)
        with pytest.raises(BufferError, match="NULL"):
            ab.copyto(np.ones(3, "f4"), blind)
        with pytest.raises(BufferError, match="NULL"):
            ab.from_dlpack(blind).__dlpack__()
        blind.shape = (0,)
        assert ab.convert(blind, "numpy").shape == (0,)
    finally:
        ab.unregister_library("blind")


MEANWHILE = {
    "to 0": lambda x: resized(x, 0),
    "to less": lambda x: resized(x, 16),
    "to other memory": lambda x: setattr(x, "data", resized(torch.ones_like(x.data), 16)),
}
LAYOUTS = (lambda x: x, lambda x: x.T, lambda x: x[:, ::2])
VIEWS = (
    lambda x: ab.convert(x, "numpy"),
    lambda x: ab.convert(x, "tvm_ffi"),
    lambda x: ab.convert(x, "numpy", copy=False, device=ab.Device(1)),
    lambda x: np.asarray(ab.from_dlpack(x)),
    lambda x: ab.convert(ab.from_dlpack(x).__dlpack__(), "numpy"),
)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("change", MEANWHILE)
def test_memory_that_another_thread_takes_just_before_the_view(change, dtype):
    """`Tensor.numpy` is called between two checks: from then on the storage stays as it is."""
    for layout, view, _ in itertools.product(LAYOUTS, VIEWS, range(2)):
        x = layout(torch.ones(64, 64, dtype=getattr(torch, dtype)))
        changed, before = [], x.data_ptr()

        def meanwhile(frame, event, arg, x=x, changed=changed):
            if event == "c_call" and arg.__name__ == "numpy" and not changed:
                changed.append(True)
                MEANWHILE[change](x)

        sys.setprofile(meanwhile)
        try:
            made = view(x)
        except ab.ConversionError as error:
            made, said = None, str(error)
        finally:
            sys.setprofile(None)
        if made is None:
            assert changed
            assert "its storage was resized" in said or "replaced meanwhile" in said
        elif changed:  # what it was a moment before
            assert change == "to other memory"
            assert ab.inspect(made).pointer == before
