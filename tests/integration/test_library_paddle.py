"""Paddle: strided tensors of up to 9 axes, through its C exchange API."""

import gc
import sys
import textwrap
import weakref

import numpy as np
import pytest

from tests.support.optional import optional

torch = optional("torch")

paddle = pytest.importorskip(
    "paddle", reason="Paddle is in the extra `heavy`, and has no wheels on some platforms"
)

import arraybridge as ab  # noqa: E402
from arraybridge.dlpack import Device, DeviceType, exchange_api  # noqa: E402
from arraybridge.libraries.paddle import LIBRARY  # noqa: E402
from tests.support.arrays import layouts, same  # noqa: E402
from tests.support.probe import DTYPES, Shown, described, every_byte  # noqa: E402
from tests.support.processes import python, resident  # noqa: E402
from tests.support.producers import Managed  # noqa: E402

pytestmark = pytest.mark.heavy

ACCEPTS = LIBRARY.accepts
DOORS = {
    "C exchange API": exchange_api(paddle.Tensor).wrap,
    "from_dlpack": lambda tensor: paddle.utils.dlpack.from_dlpack(Shown(tensor)),
}
Unimplemented = (RuntimeError, NotImplementedError)  # the one of C, the other of Python


@pytest.fixture(params=DOORS)
def own_door(request):
    return DOORS[request.param]


class TestTheRecordIsWhatTheImporterDoes:
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_dtypes(self, own_door, dtype):
        tensor = every_byte(dtype)
        if dtype in ACCEPTS.dtypes:
            x = own_door(tensor)
            info = LIBRARY.describe(x)
            assert (info.dtype, info.data) == (tensor.dtype, tensor.data)
            assert x.stop_gradient
        else:
            with pytest.raises(Unimplemented, match=r"illegal|Unsupported|not supported"):
                own_door(tensor)

    def test_uint16_is_bfloat16_by_name_only(self, own_door):
        x = own_door(every_byte("uint16"))
        assert str(x.dtype) == "paddle.bfloat16"
        assert x.dtype == paddle.uint16 != paddle.bfloat16

    @pytest.mark.parametrize("layout", layouts())
    def test_strides_and_alignment(self, own_door, layout):
        array = layouts()[layout]
        x = own_door(described(array))
        if layout == "negative":
            with pytest.raises(MemoryError):
                x.numpy()
            assert "negative strides" in ab.explain(array, "paddle").why
            return
        assert same(x.numpy(), array)
        assert same((x + 1).numpy(), array + 1)
        assert same(x.flatten().numpy(), array.flatten())
        assert same(paddle.transpose(x, list(range(array.ndim))[::-1]).numpy(), array.T)
        assert np.isclose(float(x.sum()), array.sum())
        if array.size:
            assert x.data_ptr() == array.ctypes.data
        assert ab.explain(array, "paddle").kind == "view"

    def test_rank(self, own_door):
        most = ACCEPTS.ndim[1]
        array = np.arange(2.0**most).reshape((2,) * most).T
        assert same(own_door(described(array)).numpy(), array)
        with pytest.raises(RuntimeError, match="dimension"):
            own_door(described(array[None]))

    def test_readonly_is_lost(self, own_door):
        array = np.arange(3.0)
        own_door(described(array, readonly=True))[0] = 7.0
        assert array[0] == 7
        assert not ACCEPTS.readonly

    @pytest.mark.parametrize("kind", ["ONEAPI", "METAL", "ROCM"])
    def test_other_devices_are_refused(self, own_door, kind):
        with pytest.raises(Unimplemented, match="Place is not supported"):
            own_door(described(np.ones(3), device=Device(DeviceType[kind], 0)))
        assert DeviceType[kind] not in ACCEPTS.devices

    def test_byte_offset_is_ignored(self):
        """Why arraybridge folds it into the pointer."""
        managed = Managed(byte_offset=8)
        x = paddle.utils.dlpack.from_dlpack(managed.capsule())
        assert x.data_ptr() == managed.struct.dl_tensor.data

    def test_a_tensor_without_a_context_is_never_deleted(self):
        """Why arraybridge gives every tensor one."""
        managed = Managed()
        x = paddle.utils.dlpack.from_dlpack(managed.capsule())
        del x
        gc.collect()
        assert managed.deleted == 0


def test_byte_offset_is_folded_into_the_pointer():
    managed = Managed(byte_offset=8)
    x = ab.convert(managed.capsule(), "paddle")
    assert x.data_ptr() == managed.struct.dl_tensor.data + 8


@pytest.mark.parametrize("to", ["numpy", "torch", "tvm_ffi"])
class TestSources:
    def test_its_own_negative_strides(self, to):
        x = paddle.arange(4.0)[::-1]
        assert x.strides == [-1]
        for _ in range(2):
            assert ab.explain(x, to).kind == ("kernel" if to == "torch" else "view")
            assert ab.convert(ab.convert(x, to), "numpy").tolist() == [3, 2, 1, 0]

    def test_gradients_are_not_cut(self, to):
        plain = paddle.ones([3])
        tracked = paddle.ones([3])
        tracked.stop_gradient = False
        for x in (tracked, tracked * 2, paddle.create_parameter([3], "float32")):
            for _ in range(2):
                ab.convert(plain, to)
                with pytest.raises(ab.ConversionError, match=r"x\.detach\(\)"):
                    ab.convert(x, to)
            assert ab.convert(x.detach(), to).shape == (3,)

    def test_sparse_tensors_are_refused_with_the_remedy(self, to):
        x = paddle.sparse.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], [2, 2])
        for _ in range(2):
            ab.convert(paddle.ones([2, 2]), to)
            with pytest.raises(ab.ConversionError, match=r"x\.to_dense\(\)"):
                ab.convert(x, to)

    @pytest.mark.parametrize("how", ["_clear_data", "_clear", "get_tensor"])
    def test_cleared_tensors_are_refused_with_a_remedy_that_works(self, to, how):
        x = paddle.ones([3])
        (x.get_tensor()._clear if how == "get_tensor" else getattr(x, how))()
        with pytest.raises(ab.ConversionError, match=r"paddle\.assign\(value, output=x\)"):
            ab.convert(x, to)
        paddle.assign(paddle.zeros([3]), output=x)
        assert ab.inspect(ab.convert(x, to)).shape == (3,)


def test_complex_numbers_stay_away_from_tvm_ffi():
    ab.convert(paddle.ones([1]), "tvm_ffi")
    with pytest.raises(ab.ConversionError, match="real and imaginary"):
        ab.convert(paddle.ones([1]).astype("complex64"), "tvm_ffi")


def test_symbolic_tensors_are_refused_with_the_remedy():
    paddle.enable_static()
    try:
        with paddle.static.program_guard(paddle.static.Program()):
            x = paddle.static.data("x", [2, 3])
            with pytest.raises(ab.ConversionError, match="executor"):
                ab.convert(x, "numpy")
    finally:
        paddle.disable_static()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_copies_are_freed():
    """200 copies of a megabyte leave less than 40 behind."""
    array = np.ones((512, 512), "f4")[::-1]
    ab.convert(array, "paddle")
    before = resident()
    for _ in range(200):
        ab.convert(array, "paddle")
    assert resident() - before < 40 << 20


# Its DeleterBridge calls a producer's deleter under a mutex that is not recursive

LOCKED = """
import faulthandler, gc, sys, threading, time, warnings
faulthandler.dump_traceback_later(60, exit=True)
warnings.simplefilter("ignore")
import numpy as np
import paddle
import arraybridge as ab
from arraybridge import dlpack

def gone(ref):
    time.sleep(0.001)
    return ref() is None
"""

ENDS_IN_PADDLE = {
    "adapt": """
        f = ab.adapt("numpy")(lambda x: x[1:])
        r = f(f(paddle.arange(8.)))
        assert r.tolist() == [2, 3, 4, 5, 6, 7]
        del r
        """,
    "an Array": """
        r = paddle.arange(8.)
        for _ in range(4):
            r = paddle.from_dlpack(ab.from_dlpack(r))
        del r
        """,
    "a cycle": """
        r = paddle.arange(8.)
        for _ in range(4):
            r = ab.convert(ab.convert(r, "numpy")[1:], "paddle")
        r = [r]
        r.append(r)
        del r
        gc.collect()
        """,
    "the end": """
        r = paddle.arange(8.)
        for _ in range(4):
            r = ab.convert(ab.convert(r, "numpy")[1:], "paddle")
        """,
}


@pytest.mark.parametrize("how", ENDS_IN_PADDLE)
def test_a_chain_that_ends_in_paddle_is_released(how):
    python(LOCKED + textwrap.dedent(ENDS_IN_PADDLE[how]), flags=())


def test_threads_that_convert_to_paddle():
    python(
        LOCKED
        + textwrap.dedent("""
        import weakref
        sys.setswitchinterval(1e-6)
        class Owner(np.ndarray): pass
        owners = []
        def work():
            for i in range(400):
                array = np.arange(8.0).view(Owner)
                owners.append(weakref.ref(array))
                capsule = dlpack.to_capsule(dlpack.acquire(array), versioned=i % 2 == 0)
                if i % 4 < 2:
                    x = ab.convert(capsule, "paddle", alias_readonly=True)
                else:
                    x = paddle.utils.dlpack.from_dlpack(capsule)
                assert x.shape == [8]
        threads = [threading.Thread(target=work) for _ in range(4)]
        [t.start() for t in threads]; [t.join() for t in threads]
        time.sleep(0.001)
        assert not any(ref() is not None for ref in owners)
        """),
        flags=(),
    )


def test_what_paddle_releases_goes_at_the_next_bytecode(own_door):
    class Owner(np.ndarray):
        pass

    array = np.arange(12.0).view(Owner)
    owner = weakref.ref(array)
    x = own_door(described(array))
    del array
    gc.collect()
    assert owner() is not None
    del x
    gc.collect()
    assert owner() is None
