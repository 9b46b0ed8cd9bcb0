"""TensorFlow: immutable tensors, aligned C order only, and several ways to end the process."""

import numpy as np
import pytest

tf = pytest.importorskip(
    "tensorflow", reason="TensorFlow is in the extra `heavy`, and has no wheels on some platforms"
)
import ml_dtypes  # noqa: E402 - TensorFlow brings it
import torch  # noqa: E402

import arraybridge as ab  # noqa: E402
from arraybridge.dlpack import to_capsule  # noqa: E402
from arraybridge.libraries.tensorflow import LIBRARY  # noqa: E402
from tests.support.arrays import same  # noqa: E402
from tests.support.probe import aligned, described, ends_the_process  # noqa: E402

from .contract import ImporterContract, LibraryContract  # noqa: E402

pytestmark = pytest.mark.heavy

PROLOGUE = """
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np, tensorflow as tf
from arraybridge.dlpack import to_capsule
from tests.support.probe import aligned, described
own_door = tf.experimental.dlpack.from_dlpack
"""


def own_door(tensor):
    return tf.experimental.dlpack.from_dlpack(to_capsule(tensor, versioned=False))


class TestTensorFlow(LibraryContract, ImporterContract):
    name = "tensorflow"
    door = staticmethod(own_door)
    unasked = frozenset({"float32x2"})  # it does not look at lanes, and takes it for float32
    test_it_takes_the_devices_of_the_record = None  # another device ends the process


def test_alignment():
    for offset in (4, 32):
        code = f"t = described(aligned(np.ones(9, 'f4'), {offset}))\n"
        code += "x = own_door(to_capsule(t, versioned=False)); tf.reduce_sum(x + 1)"
        assert ends_the_process(PROLOGUE + code)
    assert tf.reduce_sum(own_door(described(aligned(np.ones(9, "f4"), 64))) + 1) == 18
    assert LIBRARY.accepts.alignment == 64
    assert ends_the_process(PROLOGUE + "tf.constant('a').__dlpack__()")


def test_its_operations_never_reuse_the_memory_of_an_import():
    """TensorFlow writes the result of an operation to an input that nobody else needs."""
    array = aligned(np.arange(1000, dtype="f4"))
    before = array.copy()
    graph = tf.function(lambda x: tf.tensor_scatter_nd_update(-x, [[0]], [5.0]))
    for _ in range(3):
        graph(own_door(described(array)))
        tf.nn.relu(tf.negative(own_door(described(array))))
        tf.tensor_scatter_nd_update(own_door(described(array)), [[0]], [5.0])
    assert same(array, before)


@pytest.mark.parametrize("dtype", sorted(LIBRARY.accepts.copied))
def test_what_dlpack_lacks_is_copied_by_its_constructor(dtype):
    array = np.arange(12).astype(getattr(ml_dtypes, dtype)).reshape(3, 4)[:, ::2]
    assert ab.explain(array, "tensorflow").kind == "copy"
    x = ab.convert(array, "tensorflow")
    assert x.dtype.name == dtype
    back = ab.convert(x, "numpy", copy=False)
    assert same(back, array)
    assert not back.flags.writeable
    with pytest.raises(ab.ConversionError, match="by copying it only"):
        ab.convert(array, "tensorflow", copy=False)


def test_a_view_of_a_variable_is_a_snapshot():
    variable = tf.Variable([1.0, 2.0, 3.0])
    assert ab.convert(variable, "tensorflow") is variable
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


@pytest.mark.parametrize("mode", ["tape", "variable", "accumulator"])
def test_gradients_are_not_cut(mode):
    """By no call, while TensorFlow records; what it does not record is converted."""
    start = tf.constant([1.0, 2.0])
    before = ab.from_dlpack(start)
    recording = tf.autodiff.ForwardAccumulator(start, start) if mode == "accumulator" else None
    with recording or tf.GradientTape() as recorder:
        if mode == "tape":
            recorder.watch(start)
        x = tf.Variable(start) if mode == "variable" else start
        calls = [lambda to=to: ab.convert(x * x, to) for to in ("numpy", "torch", "jax", "pyarrow")]
        calls += [lambda: ab.convert(x, "numpy", copy=True), lambda: ab.adapt("numpy")(np.sin)(x)]
        calls += [lambda: ab.tree.convert([x], "numpy"), lambda: ab.copyto(np.ones(2, "f4"), x)]
        if mode != "variable":
            calls += [lambda: np.asarray(before), lambda: torch.from_dlpack(before)]
        for call in calls * 2:
            with pytest.raises(ab.ConversionError, match=r"gradients .* tf\.stop_gradient\(x"):
                call()
        assert ab.explain(x, "numpy").kind == "refuse"
        assert ab.convert(tf.stop_gradient(x * x), "numpy").tolist() == [1, 4]
        assert ab.convert(tf.argmax(x), "numpy") == 1
        wide = ab.convert(ab.adapt("tensorflow")(tf.square)(x), "tensorflow", dtype="float64")
    if mode == "accumulator":
        assert recorder.jvp(wide).numpy().tolist() == [2, 8]
    else:
        assert recorder.gradient(wide, x).numpy().tolist() == [2, 4]
    assert ab.convert(x * x, "numpy").tolist() == [1, 4]
