"""Adapted functions that write in place: the blocks of a Dask array stay as they are."""

import pickle

import numpy as np
import pytest

import arraybridge as ab

da = pytest.importorskip("dask.array")
torch = pytest.importorskip("torch")

from tests.support.dasks import here  # noqa: E402, F401

pytestmark = pytest.mark.usefixtures("here")

NUMBERS = np.arange(6.0)


def blocks(kind):
    from arraybridge.libraries.dask.arrays import convert_blocks

    library, _, wrapped = kind.partition(" ")
    x = convert_blocks(da.from_array(NUMBERS, chunks=3), library, wrapped=bool(wrapped))
    return x.persist()  # what is computed from one graph and from the next is the same memory


def doubled(t):
    t *= 2
    return t


def lost(t):
    result = t + 1
    t *= 2
    return result


CALLS = {
    "blockwise": {"blockwise": {"dtype": "f8"}},
    "inferred": {"blockwise": True},
    "signature": {"signature": "()->()", "blockwise": {"output_dtypes": ["f8"]}},
    "depth": {"depth": 0, "boundary": "none"},
}
KINDS = ("numpy", "torch", "torch Arrays", "numpy Arrays")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("function", [doubled, lost])
@pytest.mark.parametrize("keywords", [{}, {"copy": True}], ids=["", "copy"])
def test_blocks_are_not_written(kind, library, call, function, keywords):
    x = blocks(kind)
    expected = function(NUMBERS.copy())
    call = ab.adapt(library, **CALLS[call], **keywords)(function)
    returned = function is doubled and (library == "torch" or kind.startswith("torch"))
    if keywords or returned:
        np.testing.assert_array_equal(ab.convert(call(x).compute(), "numpy"), expected)
    else:
        with pytest.raises((ab.ConversionError, ValueError), match=r"read-only|which other tasks"):
            call(x).compute()
    np.testing.assert_array_equal(ab.convert(x, "numpy").compute(), NUMBERS)


def test_functions_that_only_read_get_views():
    x = blocks("torch")
    seen = []
    call = ab.adapt("torch", blockwise={"dtype": "f8"}, alias_readonly=True)
    call(lambda t: seen.append(t.data_ptr()) or t + 1)(x).compute()
    native = {block.native.data_ptr() for block in x.dask.values()}
    assert native <= set(seen)
    same = ab.adapt("numpy", blockwise={"dtype": "f8"})(lambda a: a)(blocks("numpy"))
    assert same.blocks[0].compute().flags.writeable


def test_arrays_for_every_block_are_not_written():
    x, other = blocks("numpy"), np.zeros(3)

    def function(t, other):
        other += 1
        return t

    with pytest.raises(ValueError, match="read-only"):
        ab.adapt("numpy", blockwise={"dtype": "f8"})(function)(x, other=other).compute()
    assert not other.any()


def test_gradients_cross_the_copies():
    x = torch.ones(4, requires_grad=True)
    y = ab.adapt("torch", blockwise=True)(lambda t: t.mul_(2))(ab.convert(x, "dask"))
    y.sum().compute().backward()
    assert x.grad.tolist() == [2.0] * 4


def test_what_is_called_travels():
    from arraybridge.libraries.dask.applied import ReadOnly

    again = pickle.loads(pickle.dumps(ReadOnly(np.negative, "numpy", True)))
    assert again(NUMBERS).tolist() == (-NUMBERS).tolist()
