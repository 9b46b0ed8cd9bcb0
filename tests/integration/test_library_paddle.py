"""Paddle: strided tensors of up to 9 axes, through its C exchange API."""

import gc
import sys
import textwrap

import numpy as np
import pytest

from tests.support.optional import optional

torch = optional("torch")

paddle = pytest.importorskip(
    "paddle", reason="Paddle is in the extra `heavy`, and has no wheels on some platforms"
)

import arraybridge as ab  # noqa: E402
from arraybridge.dlpack import exchange_api  # noqa: E402
from tests.support.processes import python, resident  # noqa: E402
from tests.support.producers import Managed  # noqa: E402

from .contract import ImporterContract, LibraryContract  # noqa: E402

pytestmark = pytest.mark.heavy


class TestPaddle(LibraryContract, ImporterContract):
    name = "paddle"
    door = staticmethod(exchange_api(paddle.Tensor).wrap)


def test_why_arraybridge_folds_the_offset_and_gives_every_tensor_a_context():
    managed = Managed(byte_offset=8)
    x = paddle.utils.dlpack.from_dlpack(managed.capsule())
    assert x.data_ptr() == managed.struct.dl_tensor.data
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
            assert ab.explain(x, to).kind == ("copy" if to == "torch" else "view")
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
    "a cycle": """
        r = paddle.arange(8.)
        for _ in range(4):
            r = ab.convert(ab.convert(r, "numpy")[1:], "paddle")
        r = [r]
        r.append(r)
        del r
        gc.collect()
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
