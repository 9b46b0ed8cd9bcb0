"""Signatures: what they show decides, and odd arrays are treated alike at first and later calls."""

from contextlib import ExitStack

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd import forward_ad

import arraybridge as ab
from arraybridge.core.registry import RECORDS, forget
from arraybridge.libraries.torch.tables import DLPACK_DTYPES
from arraybridge.native import C

SHAPES = st.lists(st.integers(0, 3), max_size=3)


def decisive(x):
    """Return what a signature must show, by the description."""
    s = ab.inspect(x)
    dense = s.c_contiguous or (isinstance(x, np.ndarray) and s.f_contiguous)
    return (
        (s.dtype, s.device, s.readonly, s.ndim, s.empty, s.pending, s.c_contiguous, s.f_contiguous),
        s.empty or min(s.alignment, 64),
        None if dense else (s.shape, s.strides),
    )


@st.composite
def arrays(draw):
    """Draw an array, or a tensor on it: of any layout, at any address."""
    shape, dtype = draw(SHAPES), draw(st.sampled_from(["f4", ">f4", "i4", "c8", "?", "M8[s]"]))
    wide = [extent * draw(st.integers(1, 2)) for extent in shape]
    memory = np.zeros(16 * 6**3 + 64, np.uint8)
    x = np.ndarray(wide, dtype, memory, draw(st.sampled_from([0, 1, 4, 16])))
    x = x[(..., *(slice(None, None, draw(st.sampled_from([1, 2, -1]))) for _ in wide))]
    x = x.transpose(draw(st.permutations(range(x.ndim))))
    whole = all(step >= 0 and step % x.itemsize == 0 for step in x.strides)
    if whole and x.dtype.str in ("<f4", "<i4", "<c8", "|b1") and draw(st.booleans()):
        t = torch.from_numpy(x)
        return t.conj() if t.is_complex() and draw(st.booleans()) else t
    x.flags.writeable = draw(st.booleans())
    return x


@given(st.lists(arrays(), min_size=2, max_size=6))
def test_arrays_with_one_signature_are_decided_alike(drawn):
    seen = {}
    for x in drawn:
        library = RECORDS[type(x)].library
        key = type(x), library.signature(x)
        assert seen.setdefault(key, decisive(x)) == decisive(x)


@pytest.mark.skipif(C is None, reason="without the C extension")
@pytest.mark.filterwarnings("ignore:ComplexHalf")
def test_each_data_type_of_torch_has_its_own_signature():
    library = RECORDS[torch.Tensor].library
    keys = {library.signature(torch.empty(4, dtype=kind)) for kind in DLPACK_DTYPES}
    assert len(keys) == len(DLPACK_DTYPES)
    assert all(type(key) is int for key in keys)


def base():
    return torch.arange(6.0).reshape(2, 3)


def pair():
    return torch.complex(base(), base())


def shrunk(nbytes):
    x = base()
    x.untyped_storage().resize_(nbytes)
    return x


def replaced():
    x = base()
    x.data = torch.ones(1, 3)
    return x


class Plain(torch.Tensor):
    """A subclass that changes nothing."""


ODD = {
    "subclass": lambda: base().as_subclass(Plain),
    "parameter": lambda: torch.nn.Parameter(base(), requires_grad=False),
    "gradient": lambda: base().requires_grad_(),
    "parameter with gradient": lambda: torch.nn.Parameter(base()),
    "shrunk": lambda: shrunk(8),
    "without storage": lambda: shrunk(0),
    "a shrunk parameter": lambda: torch.nn.Parameter(shrunk(8), requires_grad=False),
    "replaced": replaced,
    "conjugated": lambda: pair().conj(),
    "negated": lambda: pair().conj().imag,
    "negated bytes": lambda: torch._neg_view(base().to(torch.uint8)),
    "conjugated and negated": lambda: torch._neg_view(pair().conj()),
    "zeros without memory": lambda: torch._efficientzerotensor((2, 3)),
    "sparse": lambda: base().to_sparse(),
    "nested": lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
    "meta": lambda: base().to("meta"),
    "quantized": lambda: torch.quantize_per_tensor(base(), 0.1, 0, torch.quint8),
    "functionalized": lambda: torch._to_functional_tensor(base()),
    "inference": lambda: torch.inference_mode()(base)(),
    "empty": lambda: base()[2:],
    "expanded": lambda: torch.ones(1, 3).expand(2, 3),
    "overlapping": lambda: torch.as_strided(torch.arange(9.0), (2, 3), (1, 1)),
    "one element, any strides": lambda: torch.as_strided(torch.ones(9), (1, 3), (5, 2)),
    "60 axes": lambda: torch.ones([1] * 60),
    "bits": lambda: torch.zeros(4, dtype=torch.uint8).view(torch.bits8),
}
INSIDE = {
    "nothing": ExitStack,
    "no_grad": torch.no_grad,
    "dual_level": forward_ad.dual_level,
}
if C is not None:  # without it, the mode's own warning, given once, makes later calls differ
    INSIDE["fake tensors"] = lambda: FakeTensorMode(allow_non_fake_inputs=True)
USES = {
    "to NumPy": lambda x: ab.convert(x, "numpy"),
    "to NumPy, a view": lambda x: ab.convert(x, "numpy", copy=False),
    "a copy": lambda x: ab.convert(x, "torch", copy=True),
    "cast": lambda x: ab.convert(x, "numpy", dtype="float64"),
    "in Fortran order": lambda x: ab.convert(x, "torch", order="F"),
    "contiguous": ab.contiguous,
    "explain": lambda x: ab.explain(x, "numpy"),
}


def outcome(use, x):
    """Return the result, described, and whether it shares memory; or the error."""
    try:
        made = use(x)
    except (BufferError, TypeError) as error:
        return str(error)
    if made is x or isinstance(made, ab.Route):
        return "itself" if made is x else str(made)
    if isinstance(made, np.ndarray):
        return made.tolist(), made.__array_interface__["data"][0] == torch.Tensor.data_ptr(x)
    return type(made), made.detach().resolve_conj().tolist(), made.data_ptr() == x.data_ptr()


@pytest.mark.filterwarnings("ignore:.*(nested|quantize)")
@pytest.mark.parametrize("inside", INSIDE)
@pytest.mark.parametrize("name", ODD)
def test_odd_tensors_are_treated_alike_at_first_and_later(name, inside):
    """What a table remembers of usual tensors never serves odd ones."""
    for what, use in USES.items():
        if inside == "fake tensors" and what in ("a copy", "contiguous", "in Fortran order"):
            continue  # fake copies have no values
        forget()
        x = ODD[name]()
        with INSIDE[inside]():
            first = outcome(use, x)
        forget()
        for usual in (base(), base().T, pair(), base().to(torch.uint8), torch.ones(4), replaced()):
            outcome(use, usual)
        x = ODD[name]()
        with INSIDE[inside]():
            assert [outcome(use, x), outcome(use, x)] == [first, first], what
