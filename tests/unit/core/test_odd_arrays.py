"""Arrays at the edge of what their library has: an answer or a clear error, by every way."""

import gc

import numpy as np
import pytest

import arraybridge as ab
from tests.support.optional import optional
from tests.support.producers import Managed

torch = optional("torch")


def nested(layout):
    parts = [torch.ones(2), torch.arange(3.0)]
    return torch.nested.nested_tensor(parts, layout=layout)


WITHOUT_SHAPE = {
    "nested, strided": (lambda: nested(torch.strided), "parts differ in shape"),
    "nested, jagged": (lambda: nested(torch.jagged), "parts differ in shape"),
    "uninitialized parameter": (torch.nn.UninitializedParameter, "has no shape yet"),
    "uninitialized buffer": (torch.nn.UninitializedBuffer, "has no shape yet"),
}


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize(("make", "message"), WITHOUT_SHAPE.values(), ids=list(WITHOUT_SHAPE))
def test_torchs_tensors_without_a_shape(make, message):
    x = make()
    for way in (
        lambda: ab.convert(x, "numpy"),
        lambda: ab.explain(x, "numpy"),
        lambda: ab.inspect(x),
        lambda: ab.from_dlpack(x),
        lambda: ab.unify(np.ones(2), x),
        lambda: ab.copyto(np.ones(2), x),
    ):
        for _ in range(2):
            with pytest.raises(ab.ConversionError, match=message):
                way()
        assert ab.convert(torch.ones(2), "numpy").sum() == 2  # which records the fast path
        ab.from_dlpack(torch.ones(2))


class Contradictory:
    """A producer whose device is another than its tensor's."""

    def __init__(self, said, came):
        self.managed = Managed(device=came)
        self.said = said

    def __dlpack_device__(self):
        return self.said

    def __dlpack__(self, **kwargs):
        return self.managed.capsule()


@pytest.mark.parametrize(
    ("said", "came"),
    [((2, 0), (1, 0)), ((1, 0), (2, 0)), ((2, 1), (2, 0))],
)
def test_a_device_that_contradicts_the_tensor_is_refused_and_the_tensor_released(said, came):
    for way in (
        ab.dlpack.acquire,
        ab.inspect,
        ab.from_dlpack,
        lambda x: ab.convert(x, "numpy"),
        lambda x: ab.convert(x, "numpy", device="cpu"),
    ):
        x = Contradictory(said, came)
        with pytest.raises(ab.dlpack.MalformedTensorError, match="one of them is wrong") as caught:
            way(x)
        assert x.managed.deleted == 1
        del caught
        gc.collect()
        assert x.managed.deleted == 1
