"""PyTorch's storages cannot be resized under a view, whatever intercepts the tensor's methods."""

import numpy as np
import pytest

import arraybridge as ab
from tests.support.optional import optional

torch = optional("torch")
# Of PyTorch's own making of the first dual number.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.torch.jit.script. is deprecated:DeprecationWarning"
)

LEVELS = {
    "grad": lambda f: torch.func.grad(f)(torch.ones(3)),
    "jvp": lambda f: torch.func.jvp(f, (torch.ones(3),), (torch.ones(3),)),
    "hessian": lambda f: torch.func.hessian(f)(torch.ones(3)),
    "functionalize": lambda f: torch.func.functionalize(f)(torch.ones(3)),
    "vmap": lambda f: torch.vmap(f)(torch.ones(2, 3)),
}
VIEWS = {
    "numpy": lambda t: ab.convert(t, "numpy"),
    "export": lambda t: ab.dlpack.from_capsule(ab.from_dlpack(t).__dlpack__()),
    "array_api_strict": lambda t: ab.convert(t, "array_api_strict"),
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("level", LEVELS)
def test_inside_a_transformation(level, view):
    for dtype in (torch.float32, torch.bfloat16):
        if (dtype, view) == (torch.bfloat16, "array_api_strict"):
            continue
        kept, t = [], torch.arange(4).to(dtype)
        LEVELS[level](lambda y, t=t, kept=kept: (kept.append(VIEWS[view](t)), y.sum())[1])
        with pytest.raises(RuntimeError, match="resiz"):
            t.untyped_storage().resize_(0)


def test_a_subclass_whose_numpy_copies():
    class Copies(torch.Tensor):
        def numpy(self):
            return np.array(torch.Tensor.numpy(self))

    t = torch.arange(4.0).as_subclass(Copies)
    assert np.from_dlpack(ab.from_dlpack(t)).ctypes.data == t.data_ptr()
    with pytest.raises(RuntimeError, match="resiz"):
        t.untyped_storage().resize_(0)


def test_a_subclass_whose_memory_is_not_its_value():
    from torch.nn.attention.bias import causal_lower_right

    for to in ("numpy", "jax", "torch"):
        keywords = {"copy": True} if to == "torch" else {}
        with pytest.raises(ab.ConversionError, match=r"decides itself .* x\.as_subclass"):
            ab.convert(causal_lower_right(2, 3), to, **keywords)
    for plain in (torch.nn.Parameter(torch.ones(2), False), torch.nn.Buffer(torch.ones(2))):
        assert ab.convert(plain, "numpy").tolist() == [1, 1]
