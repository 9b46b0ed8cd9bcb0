"""TensorFlow: immutable tensors, aligned C order only, and several ways to end the process."""

import numpy as np
import pytest

from tests.support.optional import optional

torch = optional("torch")

tf = pytest.importorskip(
    "tensorflow", reason="TensorFlow is in the extra `heavy`, and has no wheels on some platforms"
)
import ml_dtypes  # noqa: E402 - TensorFlow brings it

import arraybridge as ab  # noqa: E402
from arraybridge.dlpack import to_capsule  # noqa: E402
from arraybridge.libraries.tensorflow import LIBRARY  # noqa: E402
from tests.support.arrays import layouts, same  # noqa: E402
from tests.support.probe import DTYPES, aligned, described, ends_the_process, every_byte  # noqa: E402
from tests.support.producers import Managed  # noqa: E402

pytestmark = pytest.mark.heavy

ACCEPTS = LIBRARY.accepts
COPIED = sorted(ACCEPTS.copied)
Refusal = tf.errors.InvalidArgumentError

PROLOGUE = """
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np, tensorflow as tf
from arraybridge.dlpack import Device, to_capsule
from tests.support.probe import aligned, described
own_door = tf.experimental.dlpack.from_dlpack
"""


def own_door(tensor, versioned=False):
    return tf.experimental.dlpack.from_dlpack(to_capsule(tensor, versioned=versioned))


class TestTheRecordIsWhatTheImporterDoes:
    @pytest.mark.parametrize("dtype", [n for n in DTYPES if n != "float32x2"])
    def test_dtypes(self, dtype):
        tensor = every_byte(dtype)
        if dtype in ACCEPTS.dtypes - ACCEPTS.copied:
            info = LIBRARY.describe(own_door(tensor))
            assert (info.dtype, info.data) == (tensor.dtype, tensor.data)
        else:
            with pytest.raises(Refusal, match="Unsupported"):
                own_door(tensor)

    def test_lanes_are_not_looked_at(self):
        tensor = every_byte("float32x2")
        assert LIBRARY.describe(own_door(tensor)).dtype_name == "float32"
        assert tensor.dtype.name not in ACCEPTS.dtypes

    @pytest.mark.parametrize("layout", layouts())
    def test_strides(self, layout):
        array = layouts()[layout]
        if array.flags.c_contiguous:
            array = aligned(array)
            x = own_door(described(array))
            assert same(x.numpy(), array)
            if array.size:
                assert LIBRARY.describe(x).data == array.ctypes.data
            array.flags.writeable = False  # else it is copied, whatever the layout
            assert ab.explain(array, "tensorflow").kind == "view"
        else:
            with pytest.raises(Refusal, match="Invalid strides"):
                own_door(described(array))
            array.flags.writeable = False
            assert "C order" in ab.explain(array, "tensorflow").why

    @pytest.mark.parametrize("offset", [4, 32])
    def test_misaligned_data_ends_the_process(self, offset):
        code = f"t = described(aligned(np.ones(9, 'f4'), {offset}))\n"
        code += "x = own_door(to_capsule(t, versioned=False)); tf.reduce_sum(x + 1)"
        assert ends_the_process(PROLOGUE + code)
        assert offset % ACCEPTS.alignment

    def test_aligned_data_does_not(self):
        x = own_door(described(aligned(np.ones(9, "f4"), 64)))
        assert tf.reduce_sum(x + 1) == 18
        assert ACCEPTS.alignment == 64

    def test_strings_end_the_process(self):
        assert ends_the_process(PROLOGUE + "tf.constant('a').__dlpack__()")

    def test_rank_64(self):
        array = aligned(np.zeros((1,) * 64, "f4"))
        assert own_door(described(array)).ndim == ACCEPTS.ndim[1] == 64

    def test_readonly_stays_readonly(self):
        array = aligned(np.arange(3.0))
        x = own_door(described(array, readonly=True))
        assert LIBRARY.describe(x).readonly
        assert ACCEPTS.readonly

    def test_its_operations_never_reuse_the_memory_of_an_import(self):
        """TensorFlow writes the result of an operation to an input that nobody else needs."""
        array = aligned(np.arange(1000, dtype="f4"))
        before = array.copy()
        graph = tf.function(lambda x: tf.tensor_scatter_nd_update(-x, [[0]], [5.0]))
        for _ in range(3):
            graph(own_door(described(array)))
            tf.nn.relu(tf.negative(own_door(described(array))))
            tf.tensor_scatter_nd_update(own_door(described(array)), [[0]], [5.0])
        assert same(array, before)

    def test_versioned_capsules_and_byte_offsets_are_refused(self):
        with pytest.raises(Refusal, match="dltensor"):
            own_door(described(aligned(np.ones(3))), versioned=True)
        managed = Managed(versioned=False, byte_offset=64)
        with pytest.raises(Refusal, match="byte_offset"):
            tf.experimental.dlpack.from_dlpack(managed.capsule())


@pytest.mark.parametrize("dtype", COPIED)
def test_what_dlpack_lacks_is_copied_by_its_constructor(dtype):
    array = np.arange(12).astype(getattr(ml_dtypes, dtype)).reshape(3, 4)[:, ::2]
    route = ab.explain(array, "tensorflow", copy=False)
    assert route.kind == "refuse"
    assert "by copying it only" in route.why
    assert ab.explain(array, "tensorflow").kind == "kernel"
    x = ab.convert(array, "tensorflow")
    assert x.dtype.name == dtype
    back = ab.convert(x, "numpy", copy=False)
    assert same(back, array)
    assert not back.flags.writeable
    with pytest.raises(ab.ConversionError, match="by copying it only"):
        ab.convert(array, "tensorflow", copy=False)


class TestVariables:
    def test_a_view_is_a_snapshot(self):
        variable = tf.Variable([1.0, 2.0, 3.0])
        for change in (
            lambda: variable.assign_add([1, 1, 1]),
            lambda: variable.assign([7, 7, 7]),
            lambda: variable.scatter_nd_update([[0]], [9.0]),
            lambda: variable[1].assign(5.0),
        ):
            values = variable.numpy()
            view = ab.convert(variable, "numpy", copy=False)
            change()
            assert view.tolist() == values.tolist() != variable.numpy().tolist()

    def test_it_is_tensorflows_already(self):
        variable = tf.Variable([1.0])
        assert ab.convert(variable, "tensorflow") is variable


def test_symbolic_tensors_are_refused_with_the_remedy():
    refusals = []

    @tf.function(autograph=False)
    def traced(x):
        with pytest.raises(ab.ConversionError, match=r"outside tf\.function") as caught:
            ab.convert(x, "numpy")
        refusals.append(caught.value)
        return x

    traced(tf.constant([1.0]))
    assert len(refusals) == 1
