"""Apache Arrow: tensors of numbers as a target; tensors, arrays and chunks of them as sources."""

import numpy as np
import pyarrow as pa
import pytest

import arraybridge as ab
from arraybridge.libraries.pyarrow import LIBRARY
from tests.support.exporters import Exported
from tests.support.probe import described
from tests.support.producers import Managed, Producer

from .contract import ImporterContract, LibraryContract


class TestPyArrow(LibraryContract, ImporterContract):
    name = "pyarrow"
    door = staticmethod(lambda tensor: pa.Tensor.from_dlpack(Exported(tensor)))


def test_legacy_capsules_are_refused():
    with pytest.raises(ValueError, match="incorrect name"):
        pa.Tensor.from_dlpack(Exported(described(np.arange(3.0)), versioned=False))


def test_byte_offset_is_kept():
    managed = Managed(byte_offset=8)
    x = pa.Tensor.from_dlpack(Producer(managed))
    assert LIBRARY.describe(x).data == managed.struct.dl_tensor.data + 8


# Views, copies and refusals of each kind of its arrays are drawn by `tests/properties`.


@pytest.mark.parametrize("start", [0, 3, 8, 11])
def test_packed_booleans_are_copied(start):
    values = [i % 3 == 0 for i in range(21)]
    x = pa.array(values)[start:]
    assert ab.inspect(x).pending == ("bitpacked",)
    route = ab.explain(x, "numpy")
    assert (route.kind, route.nbytes) == ("copy", 21 - start)
    result = ab.convert(x, "numpy")
    assert (result.dtype, result.tolist(), result.flags.writeable) == (bool, values[start:], True)
    assert ab.contiguous(x) is ab.convert(x, "pyarrow", order="C") is x
    with pytest.raises(ab.ConversionError, match="packed eight to a byte"):
        ab.convert(x, "numpy", copy=False)


def test_chunks_stay_in_arrow():
    x = pa.chunked_array([[1.0, 2.0], [3.0]])
    assert ab.convert(x, "pyarrow") is x
    assert ab.contiguous(x).to_pylist() == [1, 2, 3]
    assert ab.convert(x, "pyarrow", copy=True).to_numpy().tolist() == [1, 2, 3]
