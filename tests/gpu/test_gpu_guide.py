"""The examples of docs/cuda.md. Run by `make gpu`; skipped without a device."""

import numpy as np
import pytest

import arraybridge as ab
from tests.support.cuda_arrays import place
from tests.support.optional import optional

torch = optional("torch")

pytestmark = pytest.mark.gpu


def test_between_libraries():
    for library in ("torch", "cupy", "jax", "numba"):
        place(library, np.zeros(2, np.float32))  # skips where one has no device
    t = torch.arange(6.0, device="cuda").reshape(2, 3)
    c = ab.convert(t, "cupy")  # a view, on the same GPU
    c = ab.convert(t.T, "cupy")  # a view, too: CuPy takes any strides
    j = ab.convert(t, "jax", copy=False)  # a view: nobody may write to t while it lives
    d = ab.convert(c, "numba")  # a device array, for a kernel of Numba
    t = ab.convert(c[::-1], "torch")  # a copy on the GPU: PyTorch has no negative strides
    assert {ab.inspect(x).device for x in (c, j, d, t)} == {ab.Device("cuda")}
    assert ab.inspect(d).pointer == ab.inspect(c).pointer == ab.inspect(j).pointer
    assert t.tolist() == [[2.0, 5.0], [1.0, 4.0], [0.0, 3.0]]


def test_between_host_and_device():
    place("torch", np.zeros(2, np.float32))
    x = np.arange(6.0).reshape(2, 3)
    g = ab.convert(x, "torch", device="cuda:0")  # from NumPy to a tensor on the GPU
    n = ab.convert(g, "numpy", device="cpu")  # and back; without device= it is refused
    np.testing.assert_array_equal(n, x)


def test_graph():
    place("torch", np.zeros(2, np.float32))
    x = torch.arange(6.0, device="cuda").reshape(2, 3)
    out = torch.empty(3, 2, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        ab.copyto(out, x.T)
    x += 1
    graph.replay()  # copies what x holds now
    assert out.tolist() == [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]
