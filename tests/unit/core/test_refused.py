"""What a plain `convert` refuses is refused with every keyword, by every caller, in one voice.

Its own library could cast some of it, and would end the process, or read what is not there.
"""

import re
import warnings

import numpy as np
import pytest

import arraybridge as ab
from tests.support.optional import needs, optional
from tests.support.processes import python
from tests.unit.core.test_missing_memory import resized

torch = optional("torch")
FakeTensorMode = optional("torch._subclasses.fake_tensor").FakeTensorMode


# What reads beyond its memory where nobody looks: in a process of its own.
WITHOUT_MEMORY = {
    "resized to 0": lambda: resized(torch.ones(64, 64), 0),
    "16 bytes left": lambda: resized(torch.ones(64, 64), 16),
    "transposed": lambda: resized(torch.ones(8, 64).T, 0),
    "sliced": lambda: resized(torch.ones(64, 64)[:, ::2], 16),
    "large": lambda: resized(torch.ones(1500, 1500).T, 16),
    "long runs": lambda: resized(torch.ones(16, 4096)[::2], 16),
    "integers": lambda: resized(torch.ones(64, 64, dtype=torch.int32).T, 0),
    "complex": lambda: resized(torch.ones(64, 64, dtype=torch.complex64), 16).conj(),
    "bfloat16": lambda: resized(torch.ones(64, 64).bfloat16(), 0),
    "a parameter": lambda: resized(torch.nn.Parameter(torch.ones(64, 64)), 0),
    "tracked": lambda: resized(torch.ones(64, 64, requires_grad=True).T, 0),
}
OTHERS = {
    "meta": lambda: torch.ones(3, 4, device="meta"),
    "meta, transposed": lambda: torch.ones(3, 4, device="meta").T,
    "nested": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
    "jagged": lambda: torch.nested.nested_tensor(
        [torch.ones(2), torch.ones(3)], layout=torch.jagged
    ),
    "fake": lambda: FakeTensorMode().from_tensor(torch.ones(3, 4)),
    "zeros": lambda: torch._efficientzerotensor((3, 4)).T,
    "functionalized": lambda: torch._to_functional_tensor(torch.ones(3, 4)).T,
    "coo": lambda: torch.eye(3).to_sparse(),
    "csr": lambda: torch.eye(3).to_sparse_csr(),
    "csc": lambda: torch.eye(3).to_sparse_csc(),
    "bsr": lambda: torch.eye(4).to_sparse_bsr((2, 2)),
    "bsc": lambda: torch.eye(4).to_sparse_bsc((2, 2)),
    "tracked coo": lambda: torch.eye(3).to_sparse().requires_grad_(),
    "mkldnn": lambda: torch.ones(3, 4).to_mkldnn(),
    "quantized": lambda: torch.quantize_per_tensor(torch.ones(3, 4), 0.1, 0, torch.qint8)[:, ::2],
    **{
        f"negative {name}": lambda dtype=name: torch._neg_view(
            torch.ones(3, 4).to(getattr(torch, dtype))[:, ::2]
        )
        for name in ("bool", "uint16", "uint32", "uint64", "float8_e5m2")
    },
}

CASTS = [
    {"dtype": "complex128"},
    {"dtype": torch.complex128, "casting": "unsafe"},
    {"dtype": "complex128", "casting": "same_value"},
    {"dtype": "complex128", "device": "cpu"},
    {"dtype": "complex128", "copy": True},
    {"dtype": "complex128", "copy": False},
    {"dtype": dict.fromkeys(("float32", "int32", "bool", "uint16", "bfloat16"), "complex128")},
    {"dtype": "complex128", "order": "F", "alias_readonly": True},
]
LAID = [{"order": "C"}, {"order": "F"}, {"order": "F", "copy": True, "device": "cpu"}]


def calls(x):
    """(name, a call that would have to read the elements)."""
    tables = {"float32", "int32", "bool", "uint16", "bfloat16"}
    for terms in CASTS:
        by_table = isinstance(terms["dtype"], dict)
        if by_table and str(getattr(x, "dtype", "")).removeprefix("torch.") not in tables:
            continue
        yield f"convert, {terms}", lambda terms=terms: ab.convert(x, "torch", **terms)
        yield f"explain, {terms}", lambda terms=terms: _explained(x, "torch", **terms)
        like = {name: value for name, value in terms.items() if name != "alias_readonly"}
        yield f"unify, {terms}", lambda like=like: ab.unify(x, **like)
        if terms.get("copy") is not False:
            yield (
                f"adapt, {terms}",
                lambda terms=terms: ab.adapt("torch", **terms)(lambda y: None)(x),
            )
    for terms in LAID:
        if terms["order"] == "F" and x.is_nested:
            continue
        yield f"convert, {terms}", lambda terms=terms: ab.convert(x, "torch", **terms)
        yield f"explain, {terms}", lambda terms=terms: _explained(x, "torch", **terms)
    for terms in ({}, {"copy": True}, {"dtype": "complex128"}, {"order": "F"}):
        yield f"to NumPy, {terms}", lambda terms=terms: ab.convert(x, "numpy", **terms)
        yield f"explain to NumPy, {terms}", lambda terms=terms: _explained(x, "numpy", **terms)
    yield "copy=True", lambda: ab.convert(x, "torch", copy=True)
    yield "asarray", lambda: ab.asarray(x, like="torch", dtype="complex128")
    yield (
        "asarray like an Array",
        lambda: ab.asarray(x, like=ab.from_dlpack(torch.ones(2)), copy=True),
    )
    yield "copyto", lambda: ab.copyto(np.ones(tuple(x.shape)), x)


def calls_of_arrays(x):
    try:
        array = ab.from_dlpack(x)
    except ab.ConversionError:
        yield "from_dlpack", lambda: ab.from_dlpack(x)
        return
    yield "to NumPy", lambda: array.to("numpy")
    yield "to itself", lambda: array.to(copy=True)
    yield "__array__", lambda: np.asarray(array)
    yield "__array__ with a dtype", lambda: np.asarray(array, "complex128")
    yield "__dlpack__", lambda: array.__dlpack__(max_version=(1, 0))
    yield "__dlpack__ with a copy", lambda: array.__dlpack__(max_version=(1, 0), copy=True)
    yield "bytes", lambda: bytes(array)
    yield "convert", lambda: ab.convert(array, "torch", dtype="complex128")
    yield "unify", lambda: ab.unify(array, dtype="complex128")
    yield "adapt", lambda: ab.adapt("torch", dtype="complex128")(lambda y: None)(array)


def _explained(x, to, **terms):
    route = ab.explain(x, to, **terms)
    assert route.kind == "refuse", route
    raise ab.ConversionError(route.why, route)


def check(make):
    """Every call refuses the array, with the words of a plain conversion to another library."""
    with pytest.raises(ab.ConversionError) as caught:
        ab.convert(make(), "numpy")
    said = str(caught.value)
    for turn in ("first", "later"):
        for name, call in [*calls(make()), *calls_of_arrays(make())]:
            if turn == "later":  # records the type, by arrays that have memory
                ab.convert(torch.ones(3), "torch", dtype="complex128")
            if name == "copyto" and make().is_nested:
                continue
            try:
                call()
            except ab.ConversionError as error:
                told = str(error).replace("x.native", "x").replace("src", "x")
                if name == "copyto" and " has " in told:  # differences are reported first
                    continue
                assert told == said, (name, turn)
            else:
                raise AssertionError(f"{name}, {turn}: not refused")
    x = make()
    if x.is_quantized:
        return  # no other library can take it, and yet it is PyTorch's to copy
    try:
        # An array that is contiguous already: nothing is read.
        told = said if ab.contiguous(x) is x else "copied"
    except ab.ConversionError as error:
        told = str(error)
    assert told == said


def check_all(names):
    for name in names:
        try:
            check(WITHOUT_MEMORY[name])
        except AssertionError as error:
            error.add_note(name)
            raise


@needs("torch")
def test_without_memory():
    out = python(
        "from tests.unit.core.test_refused import *\ncheck_all(WITHOUT_MEMORY)\nprint('refused')\n"
    )
    assert out.endswith("refused\n")


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


def test_transformations_still_follow_casts():
    x = torch.arange(6.0).reshape(2, 3)
    cast = lambda row: ab.convert(row, "torch", dtype="float64") * 2  # noqa: E731
    assert torch.equal(torch.vmap(cast)(x), x.double() * 2)
    gradient = torch.func.grad(lambda y: ab.convert(y, "torch", dtype="float64").sum())(x)
    assert torch.equal(gradient, torch.ones(2, 3))
    assert torch.equal(torch.vmap(ab.contiguous)(x.T), x.T)
