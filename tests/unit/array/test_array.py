"""Array: what it carries, shows and exports, read by the real consumers."""

import ctypes

import jax
import numpy as np
import pyarrow
import pytest
import tvm_ffi

import arraybridge as ab
from arraybridge.dlpack import ManagedTensor, from_capsule, peek
from tests.support.optional import optional

torch = optional("torch")


def image():
    return np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def bare(x, **changes):
    """An Array that only speaks DLPack, on the memory of a NumPy array."""
    arguments = {"device": "cpu", "owner": x, "strides": [s // x.itemsize for s in x.strides]}
    return ab.from_pointer(x.ctypes.data, x.shape, x.dtype, **(arguments | changes))


MAKERS = {
    "numpy": image,
    "torch": lambda: torch.from_numpy(image()),
    "jax": lambda: jax.numpy.asarray(image()),
    "bare": lambda: bare(image()),
    "capsule": lambda: image().__dlpack__(max_version=(1, 0)),
    "tvm_ffi": lambda: tvm_ffi.from_dlpack(image()),
}


@pytest.mark.parametrize("kind", MAKERS)
class TestEverySource:
    def test_attributes(self, kind):
        x = ab.from_dlpack(MAKERS[kind]())
        assert isinstance(x, ab.Array)
        assert x.shape == (2, 3, 4)
        assert x.strides == (12, 4, 1)
        assert (x.ndim, x.size, x.nbytes) == (3, 24, 96)
        assert x.info.dtype == ab.DataType.named("float32")
        assert x.device == (1, 0)
        assert x.readonly == (kind == "jax")
        assert "float32 (2, 3, 4) on cpu" in repr(x)
        assert (x.native is None) == (kind in ("bare", "capsule"))

    def test_every_consumer_reads_it(self, kind):
        for consume in (
            np.from_dlpack,
            np.asarray,
            torch.from_dlpack,
            jax.dlpack.from_dlpack,
            tvm_ffi.from_dlpack,
            pyarrow.Tensor.from_dlpack,
            lambda x: x.to("torch"),
        ):
            x = ab.from_dlpack(MAKERS[kind]())
            if kind == "jax" and consume is tvm_ffi.from_dlpack:
                continue  # it refuses read-only tensors
            y = consume(x)
            del x
            values = y.to_numpy() if isinstance(y, pyarrow.Tensor) else y
            if consume is tvm_ffi.from_dlpack:
                values = np.from_dlpack(y)
            np.testing.assert_array_equal(np.asarray(values), image())

    def test_copy_and_device(self, kind):
        x = ab.from_dlpack(MAKERS[kind]())
        y = ab.from_dlpack(x, copy=True)
        assert y.info.pointer != x.info.pointer
        np.testing.assert_array_equal(np.asarray(y), image())
        assert ab.from_dlpack(x, device="cpu").info.pointer == x.info.pointer
        with pytest.raises(ab.ConversionError, match=r"no arrays on|cannot be moved"):
            ab.from_dlpack(x, device="vpi")


class TestExport:
    def test_versions(self):
        x = ab.from_dlpack(image())
        assert peek(x.__dlpack__()).version is None
        assert peek(x.__dlpack__(max_version=(0, 8))).version is None
        assert peek(x.__dlpack__(max_version=(1, 0))).version[0] == 1
        assert peek(x.__dlpack__(max_version=(9, 0))).version[0] == 1
        assert x.__dlpack_device__() == (1, 0)

    def test_copy(self):
        source = image()
        x = ab.from_dlpack(source)
        shared = from_capsule(x.__dlpack__(max_version=(1, 3), copy=False))
        copied = from_capsule(x.__dlpack__(max_version=(1, 3), copy=True))
        assert (shared.pointer, shared.copied) == (source.ctypes.data, False)
        assert copied.copied
        assert copied.pointer != source.ctypes.data
        assert copied.pointer % 64 == 0

    def test_a_legacy_capsule_cannot_say_read_only(self):
        source = image()
        source.flags.writeable = False
        x = ab.from_dlpack(source)
        assert from_capsule(x.__dlpack__(max_version=(1, 0))).readonly
        legacy = from_capsule(x.__dlpack__())
        assert legacy.pointer != source.ctypes.data
        with pytest.raises(BufferError, match="max_version"):
            x.__dlpack__(copy=False)
        writable = torch.from_dlpack(x)  # torch asks for 1.x and forgets the flag: its own promise
        assert writable.shape == (2, 3, 4)

    def test_a_stream_of_a_gpu(self):
        gpu = ab.from_pointer(0x1000, (2,), "float32", device="cuda")
        with pytest.raises(ValueError, match="ambiguous"):
            gpu.__dlpack__(stream=0)
        gpu.__dlpack__(stream=1)

    def test_pending_and_refused(self):
        z = ab.from_dlpack(torch.tensor([1 + 2j]).conj())
        assert np.from_dlpack(z).tolist() == [1 - 2j]
        with pytest.raises(BufferError, match="conj"):
            z.__dlpack__(copy=False)
        tracked = ab.from_dlpack(torch.ones(2, requires_grad=True))
        assert tracked.shape == (2,)
        with pytest.raises(BufferError, match="detach"):
            tracked.__dlpack__()
        with pytest.raises(BufferError, match="structured"):
            ab.from_dlpack(np.zeros(2, "f4,f4"))
        with pytest.raises(BufferError, match="to_dense"):
            ab.from_dlpack(torch.eye(2).to_sparse())
        with pytest.raises(TypeError, match="not an array"):
            ab.from_dlpack([1, 2])


class TestHostProtocols:
    def test_array(self):
        x = ab.from_dlpack(torch.from_numpy(image()))
        assert np.asarray(x).ctypes.data == x.info.pointer
        assert np.array(x).ctypes.data != x.info.pointer
        assert np.asarray(x, dtype="f8").dtype == "f8"
        with pytest.raises(ValueError, match="copy"):
            np.array(x, dtype="f8", copy=False)

    def test_there_is_no_array_interface(self):
        """NumPy would ask it before ``__array__``; it has no word for bfloat16."""
        assert not hasattr(bare(image()), "__array_interface__")

    def test_what_is_elsewhere_is_not_fetched(self):
        gpu = ab.from_pointer(0x1000, (2,), "float32", device="cuda:1")
        with pytest.raises(BufferError, match="cuda:1"):
            np.asarray(gpu)


class TestFromPointer:
    def test_bad_memory_stays_the_callers(self):
        released = []
        for arguments, message in [
            ((0, (2,), "float32"), "NULL"),
            ((8, (-2,), "float32"), "negative extent"),
            ((8, (2**40, 2**40), "float32"), "overflows"),
        ]:
            with pytest.raises(BufferError, match=message):
                ab.from_pointer(*arguments, device="cpu", deleter=released.append)
        with pytest.raises(ValueError, match="no data type named 'float33'"):
            ab.from_pointer(8, (2,), "float33", device="cpu")
        with pytest.raises(TypeError, match="dtype is"):
            ab.from_pointer(8, (2,), 3, device="cpu")
        with pytest.raises(TypeError, match="callable"):
            ab.from_pointer(8, (2,), "int8", device="cpu", deleter=3)
        assert released == []

    @pytest.mark.parametrize("device", list(ab.DeviceType))
    def test_every_device_passes_through_untouched(self, device):
        bogus = 0xDEAD000  # any access would be a crash
        x = ab.from_pointer(bogus, (4, 2), "bfloat16", device=(device, 1), byte_offset=64)
        info = ab.inspect(x)
        assert (info.device, info.shape, info.dtype.name) == ((device, 1), (4, 2), "bfloat16")
        for version in (None, (1, 0)):
            seen = ab.from_dlpack(x.__dlpack__(max_version=version)).info
            assert seen.device == (device, 1)
            assert seen.data + seen.byte_offset == bogus + 64
        assert ab.explain(x, "numpy").kind in ("refuse", "view")

    def test_sub_byte_types(self):
        packed = np.array([0x21, 0x43], np.uint8)
        x = ab.from_pointer(packed.ctypes.data, (4,), "float4_e2m1fn", device="cpu", owner=packed)
        assert x.nbytes == 2
        assert x.info.dtype_name == "float4_e2m1fn (packed)"
        copied = from_capsule(x.__dlpack__(copy=True, max_version=(1, 3)))
        assert ctypes.string_at(copied.pointer, 2) == b"\x21\x43"
        with pytest.raises(ab.ConversionError, match="packed"):
            ab.convert(x, "numpy")


def test_an_array_is_not_made_by_hand():
    with pytest.raises(TypeError):
        ab.Array()
    with pytest.raises(TypeError):
        ManagedTensor()


@pytest.mark.parametrize("kind", ["arrow", "pointer", "legacy"])
def test_what_is_written_to_read_only_memory_is_in_a_copy(kind):
    host = np.arange(1.0, 5.0)
    make = {
        "arrow": lambda: pytest.importorskip("pyarrow").array(host),
        "pointer": lambda: ab.from_pointer(
            host.ctypes.data, (4,), "float64", device="cpu", owner=host, readonly=True
        ),
        "legacy": lambda: host.__dlpack__(),
    }[kind]
    x = y = ab.from_dlpack(make())
    x[0] = 9
    x[1:] = x[:-1]
    assert np.asarray(x).tolist() == [9, 9, 2, 3]
    assert not x.readonly
    x += 1
    assert np.asarray(y).tolist() == np.asarray(x).tolist() == [10, 10, 3, 4]
    z = ab.from_dlpack(make())
    w = z
    w += 1
    assert np.asarray(z).tolist() == [2, 3, 4, 5]
    assert host.tolist() == [1, 2, 3, 4]
