"""Derivatives of PyTorch and Paddle: what they cannot see is recorded, or an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import arraybridge as ab
from arraybridge.kernels.cpu import SMALL
from tests.support.optional import optional

torch = optional("torch")
forward_ad = optional("torch.autograd.forward_ad")

WRITES: dict[str, Callable[[Any, Any], None]] = {
    "copyto": ab.copyto,
    "contiguous": lambda out, x: ab.contiguous(x, out=out),
    "copyto an Array": lambda out, x: ab.copyto(ab.from_dlpack(out), x),
    "copyto by Arrays": lambda out, x: ab.copyto(ab.from_dlpack(out), ab.from_dlpack(x)),
    "Array's []": lambda out, x: ab.from_dlpack(out).__setitem__(
        ..., ab.from_dlpack(ab.convert(x, "torch"))
    ),
}
TARGETS = ("numpy", "jax", "array_api_strict", "pyarrow", "tvm_ffi")
REALS = ("pyarrow", "tvm_ffi")  # which have no complex numbers


@pytest.mark.parametrize("make", [np.asarray, torch.asarray, jax.numpy.asarray])
@pytest.mark.parametrize("how", WRITES)
def test_backward_refuses_what_was_written(how: str, make) -> None:
    """``backward()`` uses what it saved: PyTorch counts the writes to know that it still may."""
    weight = torch.ones(3, requires_grad=True)
    saved = torch.full((3,), 5.0)
    loss = (weight * saved).sum()
    WRITES[how](saved, make(np.zeros(3, "f4")))
    assert saved.tolist() == [0, 0, 0]
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


# Of PyTorch's own making of the first dual number.
@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")
class TestForwardMode:
    """A dual number's tangent is in no memory that another library sees."""

    @pytest.fixture(params=["small", "large", "part", "complex"])
    def dual(self, request):
        x = {
            "small": torch.arange(6.0).reshape(2, 3),
            "large": torch.zeros(2, SMALL),
            "part": torch.arange(12.0).reshape(2, 6)[:, ::2],
            "complex": torch.ones(2, 3, dtype=torch.complex64).conj(),
        }[request.param]
        with forward_ad.dual_level():
            yield forward_ad.make_dual(x, torch.ones_like(x))

    @pytest.mark.parametrize("to", TARGETS)
    def test_conversions_are_refused(self, dual, to: str) -> None:
        plain = torch.ones(2, 3)
        ab.convert(plain, to)  # the level alone changes nothing
        for _ in range(2):  # the first call, and later ones
            assert ab.explain(dual, to).kind == "refuse"
            for x in (dual, ab.from_dlpack(dual)):
                for copy in (None, True):
                    with pytest.raises(ab.ConversionError, match=r"forward-mode .*\.detach\(\)"):
                        ab.convert(x, to, copy=copy)
        if dual.is_complex() and to in REALS:
            return
        got = ab.convert(ab.convert(dual.detach(), to), "numpy")
        np.testing.assert_array_equal(got, dual.detach().resolve_conj().numpy())

    def test_copies_are_refused_or_keep_it(self, dual) -> None:
        for _ in range(2):
            with pytest.raises(ab.ConversionError, match="forward-mode"):
                ab.copyto(torch.empty_like(dual.detach()), dual)
            with pytest.raises(ab.ConversionError, match="dst cannot be written: forward-mode"):
                ab.copyto(dual, torch.zeros_like(dual.detach()))
        for x in (dual, dual.T):
            y = ab.contiguous(x)
            assert y.is_contiguous()
            tangent = forward_ad.unpack_dual(y).tangent
            assert torch.equal(tangent, forward_ad.unpack_dual(x).tangent)
        y = ab.convert(dual, "torch")
        assert forward_ad.unpack_dual(y).tangent is not None

    @pytest.mark.parametrize("to", ["numpy", "tvm_ffi"])
    def test_functional_transforms(self, to: str) -> None:
        def f(x: torch.Tensor) -> torch.Tensor:
            return torch.asarray(ab.convert(ab.convert(x, to), "numpy")) * 2

        x = torch.ones(3)
        for _ in range(2):
            for transform in (
                lambda: torch.func.jvp(f, (x,), (x,)),
                lambda: torch.func.linearize(f, x),
                lambda: torch.autograd.functional.jvp(f, x, x, strict=True),
                lambda: torch.func.jacfwd(f)(x),
            ):
                with pytest.raises(ab.ConversionError, match=r"forward-mode|outside vmap|detach"):
                    transform()
