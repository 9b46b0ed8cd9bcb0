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


OTHER = torch.zeros(3)
LIES = {
    "__getattribute__": lambda self, name: getattr(OTHER, name),
    "clone": lambda self, **keywords: OTHER.clone(),
    "data": property(lambda self: OTHER),
    "data_ptr": lambda self: OTHER.data_ptr(),
    "dtype": property(lambda self: torch.int32),
    "is_conj": lambda self: False,
    "is_contiguous": lambda self, **keywords: True,
    "is_neg": lambda self: False,
    "numel": lambda self: 7,
    "requires_grad": property(lambda self: False),
    "shape": property(lambda self: torch.Size([7])),
    "storage_offset": lambda self: 100,
    "stride": lambda self, *axis: (1000,),
    "to": lambda self, *args, **keywords: OTHER,
    "untyped_storage": lambda self: OTHER.untyped_storage(),
}
PLAIN = {
    "": lambda: torch.tensor([1.0, 2, 3]),
    "conjugate": lambda: torch.tensor([1 + 2j]).conj(),
    "negative": lambda: torch._neg_view(torch.ones(3)),
    "tracked": lambda: torch.ones(3, requires_grad=True) * 2,
}


@pytest.mark.parametrize("name", LIES)
@pytest.mark.parametrize("make", PLAIN.values(), ids=PLAIN)
def test_a_subclass_that_describes_other_memory(name, make):
    x = make().as_subclass(type("Lies", (torch.Tensor,), {name: LIES[name]}))
    calls = [lambda to=to: ab.convert(x, to) for to in ("numpy", "jax")]
    calls += [lambda to=to: ab.convert(x, to, copy=True) for to in ("numpy", "torch")]
    calls += [
        lambda: ab.convert(x, "torch", dtype="complex128"),
        lambda: np.from_dlpack(ab.from_dlpack(x)),
        lambda: ab.copyto(x, np.full(3, 9, np.float32)),
        lambda: ab.copyto(np.zeros(3, np.float32), x),
        lambda: ab.from_dlpack(torch.zeros(3)).__setitem__(slice(None), x),
    ]
    for call in calls:
        with pytest.raises((ab.ConversionError, BufferError), match=r"as_subclass|requires_grad"):
            call()
    assert OTHER.tolist() == [0, 0, 0]
    assert ab.explain(x, "numpy").kind == "refuse"


def test_a_subclass_with_methods_of_its_own():
    class Image(torch.nn.Parameter):
        title = "night"

        def mean(self):
            return 0

        def __repr__(self):
            return "Image"

    x = torch.arange(3.0).as_subclass(Image)
    assert ab.convert(x, "numpy").ctypes.data == x.data_ptr()


def test_a_subclass_that_has_a_unit_or_a_mask():
    class Tagged(torch.Tensor):
        pass

    for name, value in {"unit": "m", "units": "m", "mask": torch.tensor([True, False])}.items():
        x = torch.ones(2).as_subclass(Tagged)
        assert ab.convert(x, "numpy").tolist() == [1, 1]
        setattr(x, name, value)
        target = ab.from_dlpack(torch.zeros(2))
        for call in (
            lambda x=x: ab.convert(x, "numpy"),
            lambda x=x: ab.convert(x, "jax", copy=True),
            lambda x=x: ab.copyto(np.zeros(2, np.float32), x),
            lambda x=x, target=target: target.__setitem__(..., x),
        ):
            with pytest.raises(ab.ConversionError, match=f"lose its {name[:4]}: .*as_subclass"):
                call()
        assert target.native.tolist() == [0, 0]
        assert ab.convert(x, "torch") is x
        assert ab.convert(x.as_subclass(torch.Tensor), "numpy").tolist() == [1, 1]


@pytest.mark.filterwarnings("ignore:The PyTorch API of MaskedTensors:UserWarning")
def test_masked_elements_are_not_written():
    from torch.masked import masked_tensor

    value = masked_tensor(torch.tensor([1.0, 2, 3]), torch.tensor([True, False, True]))
    target = ab.from_dlpack(torch.zeros(3))
    for given in (value, ab.from_dlpack(value)):
        with pytest.raises(ab.ConversionError, match="MaskedTensor"):
            target[:] = given
    assert target.native.tolist() == [0, 0, 0]
    target[:] = torch.nn.Parameter(torch.ones(3))
    assert target.native.requires_grad
