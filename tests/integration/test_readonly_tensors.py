"""``ReadOnlyTensor``: PyTorch's tensors on memory that is read-only, which refuse every write."""

import copy
import gc
import pickle

import numpy as np
import pytest
import tvm_ffi

import arraybridge as ab
import arraybridge.pickling
from tests.support.optional import optional
from tests.support.pickles import arrived, dumped, values

torch = optional("torch")

REGISTERED = arraybridge.pickling


@pytest.fixture
def registered():
    assert torch.Tensor  # skips without
    with REGISTERED.register("torch", "jax") as registration:
        yield registration


def read_only():
    """A read-only tensor of 0 to 11, and the NumPy array of its memory."""
    memory = np.arange(12.0).reshape(3, 4)
    frozen = memory.view()
    frozen.flags.writeable = False
    home = ab.from_dlpack(torch.ones(1))._library
    return home.read_only(frozen), memory


WRITES = {
    "add_": lambda x: x.add_(1),
    "+=": lambda x: x.__iadd__(1),
    "[]": lambda x: x.__setitem__(0, 1),
    "a view's": lambda x: x[1:].T[0].fill_(1),
    "detached": lambda x: x.detach().zero_(),
    "data": lambda x: x.data.zero_(),
    "out=": lambda x: torch.add(torch.ones(3, 4), 1, out=x),
    "out=, several": lambda x: torch.max(torch.ones(3, 4), 1, out=(x[:, 0], torch.ones(3).long())),
    "inplace=": lambda x: torch.nn.functional.relu(x, inplace=True),
    "foreach": lambda x: torch._foreach_add_([x], 1.0),
    "index_put_": lambda x: x.index_put_((torch.tensor([0]),), torch.tensor(9.0).double()),
    "resize_": lambda x: x.resize_(100),
    "inference": lambda x: torch.inference_mode()(lambda: x.add_(1))(),
    "vmap": lambda x: torch.func.vmap(lambda row: row.add_(1))(x),
    "split": lambda x: x.split(1)[1].mul_(2),
    "view of another dtype": lambda x: x.view(torch.int64).bitwise_not_(),
    "expanded": lambda x: x.expand(2, 3, 4)[1].zero_(),
    "copied": lambda x: copy.copy(x).zero_(),
    "numpy": lambda x: np.asarray(x).__setitem__(0, 1),
    "converted": lambda x: ab.convert(x, "numpy").__setitem__(0, 1),
    "copyto": lambda x: ab.copyto(x, np.zeros((3, 4))),
    "Array's native": lambda x: ab.from_dlpack(x).native.zero_(),
    "adapted": lambda x: ab.adapt("torch")(lambda y: y.zero_())(x),
    "optimizer": lambda x: _step(torch.nn.Parameter(x)),
    "apply_": lambda x: x.apply_(lambda _: 9.0),
    "another tensor's": lambda x: torch.empty(0).double().set_(x).zero_(),
    "statistics": lambda x: _normalized(x, training=True),
}


def _normalized(x, training):
    batch = torch.arange(8.0).double().reshape(2, 4)
    return torch.nn.functional.batch_norm(batch, x[0], x[1], training=training)


def _step(parameter):
    parameter.sum().backward()
    torch.optim.SGD([parameter], 0.1).step()


class TestReadOnlyTensor:
    @pytest.mark.parametrize("write", WRITES)
    def test_no_write_gets_through(self, write):
        x, memory = read_only()
        with pytest.raises((ValueError, ab.ConversionError), match="read-only"):
            WRITES[write](x)
        np.testing.assert_array_equal(memory, np.arange(12.0).reshape(3, 4))

    @pytest.mark.parametrize("key", [0, slice(1, None), (..., 2), ([0, 2],)])
    def test_an_array_refers_to_a_copy_once_it_is_written(self, key):
        native, memory = read_only()
        wanted = memory.copy()
        wanted[key] = -1
        x = ab.from_dlpack(native)
        y = ab.from_dlpack(native)
        view = x[1:]
        x[key] = -1.0
        y += 1
        view *= 2
        np.testing.assert_array_equal(values(x), wanted)
        np.testing.assert_array_equal(values(y), memory + 1)
        np.testing.assert_array_equal(values(view), memory[1:] * 2)
        np.testing.assert_array_equal(memory, np.arange(12.0).reshape(3, 4))
        z = ab.from_dlpack(native)
        z[1:] += 1
        np.testing.assert_array_equal(values(z), memory + np.array([[0], [1], [1]]))
        assert not any(array.readonly for array in (x, y, view, z))

    def test_it_computes_as_a_plain_tensor(self):
        x, memory = read_only()
        y = torch.from_numpy(memory.copy())
        for f in (
            lambda t: t + 1,
            lambda t: t @ t.T,
            lambda t: torch.stack([t, t]),
            lambda t: t.sort(descending=True).values,
            lambda t: torch.func.vmap(torch.sum)(t),
            lambda t: torch.func.grad(lambda u: (u * u).sum())(t),
            lambda t: torch.cat([t, torch.ones(1, 4)]),
            lambda t: torch.nn.functional.linear(t, torch.ones(2, 4).double()),
            lambda t: t.clone().mul_(2),
            lambda t: t.to(torch.float32),
            lambda t: t.flip(0),
            copy.deepcopy,
        ):
            assert type(f(x)) is torch.Tensor
            assert torch.equal(f(x), f(y))
        assert x.tolist() == y.tolist()
        assert x[1, 2].item() == 6
        assert "ReadOnlyTensor([[" in repr(x)

    def test_statistics_are_read(self):
        x, memory = read_only()
        wanted = _normalized(torch.from_numpy(memory.copy()), training=False)
        assert torch.equal(_normalized(x, training=False), wanted)

    def test_gradients_go_through(self):
        x, _ = read_only()
        weight = torch.ones(4, dtype=torch.float64, requires_grad=True)
        (x @ weight).sum().backward()
        assert weight.grad.tolist() == [12, 15, 18, 21]

    def test_a_deep_copy_can_be_trained(self, registered):
        stream, buffers = dumped(torch.nn.Linear(2, 3), REGISTERED.Pickler)
        module = pickle.loads(stream, buffers=[bytes(buffer) for buffer in buffers])
        again = copy.deepcopy(module)
        assert type(again.weight) is torch.nn.Parameter
        _step(again.weight)
        assert not torch.equal(again.weight, module.weight)

    def test_to_others_it_is_read_only(self):
        x, memory = read_only()
        assert ab.inspect(x).readonly
        for view in (x.numpy(), np.from_dlpack(x), ab.convert(x, "numpy"), np.asarray(x)):
            assert np.shares_memory(view, memory)
            assert not view.flags.writeable
        assert ab.explain(x, "numpy").kind == "view"
        with pytest.raises(BufferError, match="read-only"):
            x.__dlpack__(copy=False)  # a legacy capsule cannot say so
        again, _ = arrived(x)
        assert type(again) is type(x)
        assert type(pickle.loads(pickle.dumps(x, 4))) is torch.Tensor

    def test_the_memory_lives_as_long_as_a_view(self):
        (again, there), before = arrived(ab.from_dlpack(torch.arange(1000.0))), list(range(1000))
        view = again.native[1:]
        del again, there
        gc.collect()
        assert view.tolist() == before[1:]

    def test_consumers_in_c_do_not_write(self):
        x, memory = read_only()
        with pytest.raises((ValueError, TypeError)):
            tvm_ffi.from_dlpack(x)  # would be a writable view
        made = ab.convert(x, "tvm_ffi")
        assert ab.inspect(made).pointer != memory.ctypes.data
        array = ab.from_dlpack(x)
        for _ in range(3):  # what native code keeps, too
            assert not np.asarray(array).flags.writeable
            assert not np.from_dlpack(array).flags.writeable

    @pytest.mark.heavy  # for the import of the compiler alone
    @pytest.mark.filterwarnings("ignore:Dynamo does not know:UserWarning")
    def test_compiled(self):
        x, memory = read_only()
        assert torch.compile(lambda t: t[1:] * 2, backend="eager")(x).sum() == 2 * memory[1:].sum()
        with pytest.raises(ValueError, match="read-only"):
            torch.compile(lambda t: t.add_(1), backend="eager")(x)

    def test_in_modes_that_have_no_memory(self):
        from torch._subclasses.fake_tensor import FakeTensorMode

        x, _ = read_only()
        with FakeTensorMode() as mode:
            assert mode.from_tensor(x).shape == (3, 4)
            with pytest.raises(AssertionError):
                x + 1
        with pytest.raises(TypeError):
            x + mode.from_tensor(torch.ones(4))
