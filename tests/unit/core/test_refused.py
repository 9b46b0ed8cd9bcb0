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
    "sliced": lambda: resized(torch.ones(64, 64)[:, ::2], 16),
    "large": lambda: resized(torch.ones(1500, 1500).T, 16),
    "integers": lambda: resized(torch.ones(64, 64, dtype=torch.int32).T, 0),
    "complex": lambda: resized(torch.ones(64, 64, dtype=torch.complex64), 16).conj(),
    "bfloat16": lambda: resized(torch.ones(64, 64).bfloat16(), 0),
    "a parameter": lambda: resized(torch.nn.Parameter(torch.ones(64, 64)), 0),
}
OTHERS = {
    "meta": lambda: torch.ones(3, 4, device="meta").T,
    "nested": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
    "fake": lambda: FakeTensorMode().from_tensor(torch.ones(3, 4)),
    "zeros": lambda: torch._efficientzerotensor((3, 4)).T,
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
    for terms in [*CASTS, *LAID]:
        if terms.get("order") == "F" and "dtype" not in terms and x.is_nested:
            continue
        yield lambda terms=terms: ab.convert(x, "torch", **terms)
        yield lambda terms=terms: explained(x, "torch", **terms)
    for terms in ({}, {"copy": True}, {"dtype": "complex128"}, {"order": "F"}):
        yield lambda terms=terms: ab.convert(x, "numpy", **terms)
        yield lambda terms=terms: explained(x, "numpy", **terms)
    yield lambda: ab.unify(x, dtype="complex128")
    yield lambda: ab.adapt("torch", dtype="complex128")(lambda y: None)(x)
    yield lambda: ab.convert(x, "torch", copy=True)
    yield lambda: ab.asarray(x, like="torch", dtype="complex128")
    yield lambda: ab.asarray(x, like=ab.from_dlpack(torch.ones(2)), copy=True)
    try:
        array = ab.from_dlpack(x)
    except ab.ConversionError:
        yield lambda: ab.from_dlpack(x)
        return
    yield lambda: array.to("numpy")
    yield lambda: array.to(copy=True)
    yield lambda: np.asarray(array)
    yield lambda: array.__dlpack__(max_version=(1, 0))
    yield lambda: array.__dlpack__(max_version=(1, 0), copy=True)
    yield lambda: bytes(array)
    yield lambda: ab.convert(array, "torch", dtype="complex128")


def explained(x, to, **terms):
    route = ab.explain(x, to, **terms)
    assert route.kind == "refuse", route
    raise ab.ConversionError(route.why, route)


def check(make):
    """Every call refuses the array, with the words of a plain conversion to another library."""
    with pytest.raises(ab.ConversionError) as caught:
        ab.convert(make(), "numpy")
    said = str(caught.value)
    for turn in ("first", "later"):
        for number, call in enumerate(calls(make())):
            if turn == "later":  # records the type, by arrays that have memory
                ab.convert(torch.ones(3), "torch", dtype="complex128")
            with pytest.raises(ab.ConversionError) as caught:
                pytest.fail(f"{number}, {turn}: {call()}")
            assert str(caught.value).replace("x.native", "x") == said, (number, turn)
    if not make().is_nested:
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


def test_transformations_still_follow_casts():
    x = torch.arange(6.0).reshape(2, 3)
    cast = lambda row: ab.convert(row, "torch", dtype="float64") * 2  # noqa: E731
    assert torch.equal(torch.vmap(cast)(x), x.double() * 2)
    gradient = torch.func.grad(lambda y: ab.convert(y, "torch", dtype="float64").sum())(x)
    assert torch.equal(gradient, torch.ones(2, 3))
    assert torch.equal(torch.vmap(ab.contiguous)(x.T), x.T)
