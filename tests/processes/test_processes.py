"""Arrays and native tensors between processes: pickles, read-only tensors, shared memory."""

import gc
import io
import pickle
from collections import ChainMap
from multiprocessing.reduction import ForkingPickler
from multiprocessing.shared_memory import SharedMemory

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import arraybridge as ab
import arraybridge.pickling
from arraybridge.array import pickling as of_arrays
from tests.support.optional import needs, optional
from tests.support.pickles import address, arrived, dumped, values
from tests.support.probe import aligned
from tests.support.processes import python

torch = optional("torch")

REGISTERED = arraybridge.pickling


@pytest.fixture
def registered():
    assert torch.Tensor  # skips without
    with REGISTERED.register("torch", "jax") as registration:
        yield registration


def base(dtype="float32"):
    if hasattr(ml_dtypes, dtype):
        dtype = getattr(ml_dtypes, dtype)
    return np.arange(2 * 4 * 6).reshape(2, 4, 6).astype(dtype)


#: Views of 48 elements of 4 bytes -> how many bytes are sent, and whether from where they lie.
VIEWS = {
    "whole": (lambda x: x, 192, True),
    "transposed": (lambda x: x.transpose(2, 0, 1), 192, True),
    "flipped": (lambda x: x[::-1, :, ::-1], 192, True),
    "flipped and transposed": (lambda x: x.transpose(1, 2, 0)[:, ::-1], 192, True),
    "rows": (lambda x: x[1:], 96, True),
    "columns": (lambda x: x[..., :2], 64, False),
    "every second": (lambda x: x[..., ::-2], 96, False),
    "broadcast": (lambda x: np.broadcast_to(x[:, :1], (2, 4, 6)), 48, False),
    "repeated": (lambda x: np.broadcast_to(x[1], (5, 4, 6)), 96, True),
    "scalar": (lambda x: x[1, 2, 3], 4, True),
    "empty": (lambda x: x[:0], 0, True),
    "sliding": (lambda x: np.lib.stride_tricks.sliding_window_view(x, 2, 2), 320, False),
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8_e4m3fn"])
def test_layouts_of_numpy(view, dtype):
    make, nbytes, dense = VIEWS[view]
    source = base(dtype)
    x = np.asanyarray(make(source))
    for protocol in (2, 4, 5):
        again = pickle.loads(pickle.dumps(ab.from_dlpack(x), protocol))
        np.testing.assert_array_equal(values(again), values(x))
    stream, buffers = dumped(ab.from_dlpack(x))
    assert sum(buffer.nbytes for buffer in buffers) == nbytes * x.itemsize // 4
    again = pickle.loads(stream, buffers=[bytes(buffer) for buffer in buffers])
    assert again.readonly
    assert again.native.dtype == x.dtype
    np.testing.assert_array_equal(values(again), values(x))
    writable = pickle.loads(stream, buffers=[bytearray(buffer) for buffer in buffers])
    assert writable.readonly == (not x.flags.writeable)
    if dense:  # sent from where it lies, and with the layout that it has
        if x.size:
            low, high = np.lib.array_utils.byte_bounds(x)
            assert [low] == [address(buffer) for buffer in buffers]
            assert high - low == sum(buffer.nbytes for buffer in buffers)
        assert again.native.strides == x.strides
    else:  # the order and the direction of the axes
        kept = [a for a, n in enumerate(x.shape) if n > 1]
        signs = np.sign(x.strides)[kept]
        assert (np.sign(again.native.strides)[kept] == signs).all()


@pytest.mark.parametrize("view", ["transposed", "columns", "scalar", "empty"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8_e4m3fn", "int64"])
@pytest.mark.parametrize("library", ["torch", "jax"])
def test_layouts_of_others(library, dtype, view):
    with jax.enable_x64(True):
        x = ab.from_dlpack(ab.convert(base(dtype), library, copy=True))
        x = {"transposed": x.mT, "columns": x[..., :2], "scalar": x[1, 2, 3], "empty": x[:0]}[view]
        stream, buffers = dumped(x)
        assert sum(buffer.nbytes for buffer in buffers) == x.info.nbytes
        for again in (pickle.loads(stream, buffers=buffers), pickle.loads(pickle.dumps(x, 2))):
            assert type(again) is type(x)
            assert again.dtype == x.dtype
            np.testing.assert_array_equal(values(again), values(x))
        assert pickle.loads(stream, buffers=buffers).readonly == x.readonly


def test_what_lies_between_is_not_sent():
    secret = np.full((4, 4), 7.0)
    secret[:, 0] = 1
    stream, buffers = dumped(ab.from_dlpack(secret[:, :1]))
    assert {*np.frombuffer(b"".join(map(bytes, buffers)))} == {1.0}
    assert len(stream) < 400


def test_a_layout_beyond_the_memory_is_refused():
    x = np.zeros(4)
    for shape, strides, offset in [((5,), (8,), 0), ((4,), (8,), 8), ((4,), (-8,), 0)]:
        with pytest.raises((ValueError, TypeError)):
            of_arrays.restored("numpy", x, None, shape, strides, offset)


def test_pickles_of_the_last_version_load():
    x = of_arrays.restored("numpy", np.zeros(2, np.uint16), np.dtype(ml_dtypes.bfloat16))
    assert x.native.dtype == ml_dtypes.bfloat16
    assert of_arrays.restored("torch", torch.ones(2)).native.tolist() == [1, 1]


class TestTorch:
    @pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8_e5m2", "bool", "complex64"])
    def test_an_array_arrives_on_the_memory(self, dtype):
        x = torch.arange(6).reshape(2, 3).to(getattr(torch, dtype))
        again, (memory,) = arrived(ab.from_dlpack(x))
        assert again.info.pointer == address(memory)
        assert again.library == "torch"
        assert again.readonly
        assert again.native.dtype == x.dtype
        np.testing.assert_array_equal(values(again), values(x))
        again, (memory,) = arrived(ab.from_dlpack(x), memory=bytearray)
        assert again.info.pointer == address(memory)
        assert not again.readonly
        assert type(again.native) is torch.Tensor

    @pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
    def test_native(self, registered, dtype):
        x = torch.arange(6).reshape(2, 3).to(getattr(torch, dtype))
        again, (memory,) = arrived(x, REGISTERED.Pickler)
        assert isinstance(again, torch.Tensor)
        assert again.data_ptr() == address(memory)
        assert again.dtype == x.dtype
        assert (again.clone() == x).all()
        with pytest.raises(ValueError, match="read-only"):
            again.add_(1)

    def test_native_as_a_copy(self):
        with REGISTERED.register("torch", readonly=False):
            again, (memory,) = arrived(torch.ones(3), REGISTERED.Pickler)
            assert type(again) is torch.Tensor
            assert again.data_ptr() != address(memory)
            again, (memory,) = arrived(torch.ones(3), REGISTERED.Pickler, bytearray)
            assert again.data_ptr() == address(memory)

    def test_channels_last(self, registered):
        x = torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last)
        again, (memory,) = arrived(x, REGISTERED.Pickler)
        assert again.stride() == x.stride()
        assert len(memory) == 2 * 3 * 4 * 5 * 4

    def test_what_is_more_than_memory_is_pickled_by_torch(self, registered):
        def trip(x):
            stream, buffers = dumped(x, REGISTERED.Pickler)
            assert not buffers or x.is_sparse  # whose parts are tensors
            return pickle.loads(stream, buffers=buffers)

        assert trip(torch.ones(2, requires_grad=True)).requires_grad
        assert trip(torch.ones(2, dtype=torch.complex64).conj()).is_conj()
        marked = torch.ones(2)
        marked.mine = "yes"
        assert trip(marked).mine == "yes"
        assert trip(torch.ones(2).to_sparse()).is_sparse
        assert trip(torch.empty(2, device="meta")).is_meta

    def test_modules_arrive_on_the_memory(self, registered):
        again, buffers = arrived(torch.nn.Linear(2, 3).state_dict(), REGISTERED.Pickler)
        assert [x.data_ptr() for x in again.values()] == [address(buffer) for buffer in buffers]

    def test_torch_save_writes_plain_tensors(self, registered):
        for x in (torch.ones(2), arrived(torch.ones(2), REGISTERED.Pickler)[0]):
            file = io.BytesIO()
            torch.save({"x": x}, file)
            assert b"arraybridge" not in file.getvalue()
            file.seek(0)
            assert torch.load(file, weights_only=True)["x"].tolist() == [1, 1]


class TestRegistration:
    def test_it_is_undone(self):
        table = REGISTERED.Pickler.dispatch_table
        assert torch.Tensor not in table
        first = REGISTERED.register("torch")
        second = REGISTERED.register("torch", "jax", readonly=False)
        assert not table[torch.Tensor].readonly
        first.unregister()
        assert not table[torch.Tensor].readonly
        second.unregister()
        second.unregister()
        assert not isinstance(table, ChainMap) or not table.maps[0]
        REGISTERED.register("torch")
        REGISTERED.register("jax")
        REGISTERED.unregister()
        assert not table.maps[0]

    def test_what_was_there_comes_back(self):
        def own(x):
            return str, ("own",)

        class Another(pickle.Pickler):
            dispatch_table = {torch.Tensor: own}  # noqa: RUF012

        with REGISTERED.register("torch", picklers=[Another]):
            assert isinstance(arrived(torch.ones(2), Another)[0], torch.Tensor)
            # what is not plain memory goes the way that it went
            assert arrived(torch.ones(2, requires_grad=True), Another)[0] == "own"
            assert torch.Tensor not in REGISTERED.Pickler.dispatch_table
        assert Another.dispatch_table == {torch.Tensor: own}

    def test_arrays_in_multiprocessing(self):
        def sent(x):
            return pickle.loads(ForkingPickler.dumps(x))

        x = torch.arange(40000.0).reshape(200, 200).T
        assert not sent(ab.from_dlpack(x)).native.is_shared()
        with REGISTERED.register("torch"):
            again = sent(ab.from_dlpack(x))
            assert again.native.is_shared()
            assert again.native.stride() == x.stride()
            assert torch.equal(again.native, x)
            again.native.zero_()
            assert x.any()
            assert not x.is_shared()
            assert sent(ab.from_dlpack(x[::2, ::3])).native.shape == (100, 67)
            assert not sent(ab.from_dlpack(x[:2, :2])).native.is_shared()
            tracked = ab.from_dlpack(x.clone().requires_grad_())
            assert sent(tracked).native.requires_grad
        assert not sent(ab.from_dlpack(x)).native.is_shared()

    def test_with_nothing_imported(self):
        python(
            "import sys, arraybridge.pickling as p\n"
            "try: p.register()\n"
            "except RuntimeError as error: assert 'import one first' in str(error)\n"
            "else: sys.exit('no error')\n"
            "assert 'torch' not in sys.modules"
        )

    @pytest.fixture
    def registered_for_jax(self):
        with REGISTERED.register("jax"):
            yield

    def test_jax(self, registered_for_jax):
        x = jnp.arange(6.0).reshape(2, 3)
        again, (memory,) = arrived(x, REGISTERED.Pickler)
        assert type(again) is type(x)
        assert (again == x).all()
        weak = jnp.asarray(1.0)
        assert pickle.loads(dumped(weak, REGISTERED.Pickler)[0]).weak_type == weak.weak_type
        # aligned, read-only memory is not copied
        block = aligned(np.frombuffer(memory, np.float32))
        stream, _ = dumped(x, REGISTERED.Pickler)
        again = pickle.loads(stream, buffers=[memoryview(block).toreadonly()])
        assert again.unsafe_buffer_pointer() == block.ctypes.data


def test_other_libraries_are_not_registered():
    with pytest.raises(ValueError, match="supports torch and jax, got numpy"):
        REGISTERED.register("numpy")


class TestSharedMemory:
    @pytest.fixture
    def block(self):
        block = SharedMemory(create=True, size=4096)
        yield block
        block.unlink()

    @needs("torch")
    def test_every_process_sees_what_is_written(self, block):
        x = ab.convert(REGISTERED.from_shared_memory(block, (2, 3), "bfloat16"), "torch")
        x[...] = 3
        python(
            "import sys, torch, arraybridge as ab, arraybridge.pickling\n"
            "from multiprocessing import resource_tracker\n"
            "from multiprocessing.shared_memory import SharedMemory\n"
            "resource_tracker.register = lambda *_: None  # else it unlinks what is not its own\n"
            "block = SharedMemory(sys.argv[1])\n"
            "x = arraybridge.pickling.from_shared_memory(block, (2, 3), torch.bfloat16)\n"
            "x = ab.convert(x, 'torch')\n"
            "assert (x == 3).all()\n"
            "x[1] = 5",
            block.name,
        )
        assert x.tolist() == [[3, 3, 3], [5, 5, 5]]
        del x

    def test_it_stays_open_under_views(self, block):
        again = SharedMemory(block.name)
        x = REGISTERED.from_shared_memory(again, 8, "float32", offset=64)
        view = ab.convert(x, "numpy")
        view[:] = 1
        with pytest.raises(BufferError):
            again.close()
        del again, x
        gc.collect()
        assert view.sum() == 8
        del view
        gc.collect()  # and no BufferError in a finalizer
        np.testing.assert_array_equal(np.frombuffer(block.buf, "f4", 8, 64), 1)

    def test_read_only(self, block):
        x = REGISTERED.from_shared_memory(block, 4, "int64", readonly=True)
        assert x.readonly
        assert not ab.convert(x, "numpy").flags.writeable

    def test_the_name_of_a_block(self, block):
        with pytest.raises(TypeError, match=r"got '.*': open it with SharedMemory\(name="):
            REGISTERED.from_shared_memory(block.name, 4, "int64")

    def test_beyond_the_block(self, block):
        with pytest.raises(ValueError, match="bytes"):
            REGISTERED.from_shared_memory(block, 5000, "uint8")


@needs("torch")
class TestCollate:
    def test_registered_with_default_collate(self):
        batch = [ab.from_dlpack(np.arange(3)[::-1])]
        with pytest.raises(TypeError):
            torch.utils.data.default_collate(batch)
        with REGISTERED.register("torch"):
            assert torch.utils.data.default_collate(batch).tolist() == [[2, 1, 0]]
        with pytest.raises(TypeError):
            torch.utils.data.default_collate(batch)


@pytest.mark.heavy
@needs("torch")
def test_start_methods(tmp_path):
    """fork, spawn and forkserver: in a process without other threads."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    python(f"import runpy; runpy.run_path({str(program)!r}, run_name='__main__')")


PROGRAM = """
import multiprocessing as mp
import numpy as np, torch
import arraybridge as ab, arraybridge.pickling

def work(inbox, outbox):
    for x in iter(inbox.get, None):
        assert isinstance(x, ab.Array), type(x)
        xp = ab.namespace(x)
        x[0] = 9
        outbox.put(xp.flip(x))

def main():
    if mp.parent_process() is not None:
        return
    sent = [np.arange(4.0), torch.arange(4.0), torch.arange(4.0).bfloat16(), np.arange(8.0)[::-2]]
    for method in ("fork", "spawn", "forkserver"):
        context = mp.get_context(method)
        inbox, outbox = context.Queue(), context.Queue()
        worker = context.Process(target=work, args=(inbox, outbox), daemon=True)
        worker.start()
        try:
            for native in sent:
                before = ab.convert(native, "numpy", copy=True)
                inbox.put(ab.from_dlpack(native))
                x = outbox.get(timeout=60)
                assert type(x.native) is type(native) and x.dtype == ab.from_dlpack(native).dtype
                wanted = before.copy()
                wanted[0] = 9
                assert (ab.convert(x, "numpy") == wanted[::-1]).all()
                assert (ab.convert(native, "numpy") == before).all()
            large = torch.arange(40.0 * 1000).reshape(1000, 40).T
            with arraybridge.pickling.register("torch"):
                inbox.put(ab.from_dlpack(large))
                back = outbox.get(timeout=60)
            wanted = large.clone()
            wanted[0] = 9
            assert torch.equal(back.native, wanted.flip(0, 1))
            assert large[0, 0] == 0  # the worker wrote to a copy
            inbox.put(None)
            worker.join(60)
            assert worker.exitcode == 0
        finally:
            worker.kill()

if __name__ == "__main__":
    main()
"""
