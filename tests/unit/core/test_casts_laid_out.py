"""Casts of PyTorch's tensors, layouts, and casts in ``unify``, ``adapt`` and audits."""

import numpy as np
import pytest

import arraybridge as ab
from tests.support.optional import installed, optional

torch, jax = optional("torch"), optional("jax")
ml_dtypes = pytest.importorskip("ml_dtypes")


@pytest.mark.skipif(not installed("torch"), reason="of PyTorch")
class TestTorch:
    def test_gradients_flow_through_its_own_cast(self):
        x = torch.rand(3, 4, requires_grad=True)
        for keywords in ({"dtype": "float64"}, {"order": "F"}, {"dtype": float, "order": "F"}):
            for y in (ab.convert(x, "torch", **keywords), ab.unify(x, **keywords)[1]):
                y.sum().backward()
                assert torch.equal(x.grad, torch.ones(3, 4))
                x.grad = None
            for route in (ab.explain(x, "torch", **keywords),):
                assert (route.kind, route.kernel[:5]) == ("kernel", "torch")
        for keywords in ({"dtype": "float64"}, {"order": "F"}, {}):
            with pytest.raises(ab.ConversionError, match="gradients are tracked"):
                ab.convert(x, "numpy", **keywords)

    @pytest.mark.parametrize("library", ["torch", "numpy"])
    def test_what_it_cannot_cast_it_says(self, library):
        x = torch.zeros(4, dtype=torch.uint8).view(torch.float4_e2m1fn_x2)
        for _ in range(2):
            with pytest.raises(ab.ConversionError, match="torch could not cast to float32"):
                ab.convert(x, library, dtype="float32", casting="unsafe")

    @pytest.mark.parametrize("shape", [(2, 3, 4, 5), (2, 3, 4, 5, 6), (1, 1, 4, 5)])
    def test_channels_last(self, shape):
        x = torch.rand(shape)
        last = torch.channels_last if len(shape) == 4 else torch.channels_last_3d
        wanted = x.to(memory_format=last)
        for order in ("channels_last", last):
            for source in (x, x.numpy()):
                y = ab.convert(source, "torch", order=order)
                assert y.is_contiguous(memory_format=last)
                assert torch.equal(x, y)
        again = ab.convert(wanted, "torch", order=last)
        assert again is wanted
        again = ab.convert(wanted, "numpy", order=last)
        assert again.ctypes.data == wanted.data_ptr()
        plain = ab.convert(wanted, "torch", order=torch.contiguous_format)
        assert plain.is_contiguous()
        assert ab.convert(wanted, "torch", order=torch.preserve_format) is wanted
        both = ab.convert(x.numpy(), "torch", dtype=torch.float16, order=last)
        assert both.is_contiguous(memory_format=last)
        assert torch.equal(both, x.half())


def test_a_mapping_casts_some_data_types_alone():
    wide, index = np.arange(3.0), np.arange(3)
    table = {"float64": np.float32, int: "int32"}
    _, x, n, b = ab.unify(wide, index, np.ones(2, bool), dtype=table)
    assert (x.dtype, n.dtype, b.dtype) == (np.float32, np.int32, bool)
    assert ab.explain(index, "numpy", dtype={"float64": "float32"}).kind == "view"
    assert ab.convert(index, "numpy", dtype={}) is index
    with pytest.raises(ValueError, match="floot"):
        ab.convert(index, "numpy", dtype={"floot": "int8"})
