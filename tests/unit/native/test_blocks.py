"""Blocks of large results: used again once nobody sees them, within the bound, given back."""

import ctypes
import gc
import random

import numpy as np
import pytest

import arraybridge as ab
from arraybridge.dlpack import DataType, DLManagedTensorVersioned, ManagedTensor
from arraybridge.native import blocks
from tests.support.processes import resident
from tests.support.threads import in_threads

torch = pytest.importorskip("torch")
LEAST = blocks.LEAST
BYTE = DataType.named("uint8")


@pytest.fixture(autouse=True)
def _empty():
    """Nothing kept before, and the bound as it was after."""
    gc.collect()
    before = ab.get_block_cache_limit()
    ab.set_block_cache_limit(16 * LEAST)
    ab.empty_block_cache()
    yield
    ab.set_block_cache_limit(before)
    ab.empty_block_cache()


def matrix(nbytes=LEAST, fill=1):
    """A matrix of at least so many bytes, whose transpose is no view in C order."""
    side = int((nbytes / 4) ** 0.5 + 1)
    return np.full((side, side + 3), fill, np.float32).T


def block(nbytes=LEAST):
    return ManagedTensor.allocate((nbytes,), BYTE)


COPIES = {
    "numpy": lambda x: ab.contiguous(x),
    "torch": lambda x: ab.contiguous(torch.from_numpy(x)),
    "numpy to torch": lambda x: ab.convert(x[::-1], "torch"),
    "torch, copied": lambda x: ab.convert(torch.from_numpy(x), "torch", copy=True),
    "jax": lambda x: ab.convert(x, "jax"),
    "Array": lambda x: ab.contiguous(ab.from_dlpack(x)),
}


def address_of(y):
    return int(y.unsafe_buffer_pointer()) if hasattr(y, "unsafe_buffer_pointer") else (
        ab.inspect(y).pointer
    )  # fmt: skip


@pytest.mark.parametrize("name", COPIES)
def test_a_dropped_result_is_used_again_and_a_seen_one_is_not(name):
    if name == "jax":
        pytest.importorskip("jax")
    copy, x = COPIES[name], matrix()
    first = copy(x)
    address = address_of(first)
    second = copy(x)
    assert address_of(second) != address
    assert blocks.kept() == 0
    del first
    gc.collect()
    assert LEAST <= blocks.kept() < 1.2 * LEAST
    third = copy(x)
    assert address_of(third) == address
    assert blocks.kept() == 0
    assert np.array_equal(np.asarray(third), np.asarray(second))


@pytest.mark.parametrize(
    "view_of",
    [
        lambda y: y[5:, ::2],
        lambda y: torch.from_numpy(y).view(-1)[7:],
        lambda y: ab.convert(y, "torch")[3],
        lambda y: memoryview(y),
        lambda y: ab.from_dlpack(y).__dlpack__(),
    ],
)
def test_a_view_of_a_result_keeps_its_block(view_of):
    y = ab.contiguous(matrix())
    address = y.ctypes.data
    view = view_of(y)
    del y
    gc.collect()
    assert blocks.kept() == 0
    others = [ab.contiguous(matrix()) for _ in range(3)]
    assert address not in [other.ctypes.data for other in others]
    del view
    gc.collect()
    assert blocks.kept() > 0


def test_a_result_that_torch_moved_to_another_thread():
    t = ab.convert(matrix()[::-1], "torch")
    address, held = t.data_ptr(), [t]
    del t
    in_threads(list.clear, [held])
    assert ab.contiguous(matrix()).ctypes.data == address


@pytest.mark.parametrize("versioned", [True, False])
def test_a_deleter_that_is_called_without_the_gil(versioned):
    made = block()
    data = made.data
    struct = made.hand_over(versioned)
    # The struct begins with the tensor, or with version, context and deleter.
    if versioned:
        deleter = DLManagedTensorVersioned.from_address(struct).deleter
    else:
        deleter = ctypes.c_uint64.from_address(struct + 56).value
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(deleter)  # lets the GIL go
    call(struct)
    assert blocks.kept() == LEAST
    assert block().data == data


# Which block is handed out


@pytest.mark.parametrize(
    "view",
    [lambda x: x.T, lambda x: x[:, 5:-7], lambda x: x[::-1, ::-1], lambda x: x.T[:, ::2]],
)
def test_fresh_and_used_memory_get_the_same_bytes(view):
    ab.set_block_cache_limit(64 * LEAST)
    x = view(np.random.default_rng(0).integers(0, 2**32, (3001, 3333), np.uint32))
    fresh = ab.contiguous(x)
    assert np.array_equal(fresh, x)
    address = fresh.ctypes.data
    fresh[:] = 0
    del fresh
    again = ab.contiguous(x)
    assert again.ctypes.data == address
    assert np.array_equal(again, x)
    plain = again.copy()
    copies = [ab.convert(plain, "torch", copy=True) for _ in range(2)]  # one run of bytes
    assert all(np.array_equal(copy.numpy(), plain) for copy in copies)


def test_a_block_serves_what_is_a_little_smaller():
    data = block(8 * LEAST).data
    assert block(8 * LEAST - 100).data == data
    assert block(8 * LEAST - LEAST).data == data
    assert blocks.kept() == 8 * LEAST
    small = block(6 * LEAST)
    assert small.data != data
    assert blocks.kept() == 8 * LEAST
    tight = block(8 * LEAST - LEAST)
    assert (tight.data, blocks.kept()) == (data, 0)
    del tight
    assert blocks.kept() == 8 * LEAST


def test_the_smallest_block_that_fits_and_the_latest_of_those():
    made = [block(size * LEAST) for size in (5, 4, 4)]
    five, old, new = (each.data for each in made)
    made.pop(0)
    made.pop(0)
    made.pop(0)
    again = [block(4 * LEAST) for _ in range(2)]
    assert [each.data for each in again] == [new, old]
    assert block(5 * LEAST).data == five


def test_sizes_that_nobody_wants_make_room():
    ab.set_block_cache_limit(4 * LEAST)
    for _ in range(4):
        block()
    held = [block() for _ in range(4)]
    held.clear()
    assert blocks.kept() == 4 * LEAST
    data = block(3 * LEAST).data
    assert blocks.kept() == 4 * LEAST  # three of the four are gone
    assert block(3 * LEAST).data == data


def test_the_oldest_goes_first():
    ab.set_block_cache_limit(8 * LEAST)
    held = [block(2 * LEAST), block(3 * LEAST)]
    held.pop(0)
    held.pop(0)
    made = block(5 * LEAST)
    assert blocks.kept() == 3 * LEAST
    del made
    assert blocks.kept() == 8 * LEAST


def test_small_results_are_mallocs():
    y = ab.contiguous(matrix(LEAST // 2))
    del y
    assert blocks.kept() == 0


# The bound


@pytest.mark.parametrize("wrong", [-1, 1.5, "1", True, 2**62])
def test_limits_that_are_none(wrong):
    with pytest.raises(ValueError, match="number of bytes"):
        ab.set_block_cache_limit(wrong)
    assert ab.get_block_cache_limit() == 16 * LEAST


def test_a_limit_may_be_an_integer_of_numpy():
    ab.set_block_cache_limit(np.int64(2 * LEAST))
    assert ab.get_block_cache_limit() == 2 * LEAST


def test_nothing_is_kept_beyond_the_limit():
    ab.set_block_cache_limit(2 * LEAST)
    held = [block() for _ in range(5)]
    large = block(3 * LEAST)
    held.clear()
    assert blocks.kept() == 2 * LEAST
    del large
    assert blocks.kept() == 2 * LEAST
    ab.set_block_cache_limit(LEAST)
    assert blocks.kept() == LEAST
    ab.set_block_cache_limit(0)
    assert blocks.kept() == 0
    block()
    assert blocks.kept() == 0


def test_memory_is_given_back_on_request():
    x = matrix(16 * LEAST)
    ab.set_block_cache_limit(64 * LEAST)
    made = [ab.contiguous(x) for _ in range(3)]
    nbytes = made[0].nbytes
    before = resident()
    made.clear()
    assert abs(resident() - before) < nbytes // 2
    assert ab.empty_block_cache() >= 3 * nbytes
    assert resident() < before - 2.9 * nbytes
    assert (blocks.kept(), ab.empty_block_cache()) == (0, 0)


def test_the_bound_holds_under_threads_that_take_and_drop():
    ab.set_block_cache_limit(6 * LEAST)
    ab.contiguous(matrix())
    over, wrong = [], []

    def work(seed):
        rng = random.Random(seed)
        held = []
        for turn in range(150):
            size = rng.choice([LEAST, LEAST + 8192, 2 * LEAST])
            made = block(size)
            mark = seed * 1000 + turn
            view = np.frombuffer((ctypes.c_uint8 * size).from_address(made.data), np.uint16)
            view[:: LEAST // 64] = mark
            view[-1] = mark
            held.append((made, view, mark))
            if len(held) > 3:
                made, view, mark = held.pop(rng.randrange(4))
                if not ((view[:: LEAST // 64] == mark).all() and view[-1] == mark):
                    wrong.append(mark)
            if blocks.kept() > 6 * LEAST:
                over.append(blocks.kept())
            if turn % 40 == 39:
                ab.empty_block_cache()

    in_threads(work, range(8))
    assert (wrong, over) == ([], [])
    assert 0 <= blocks.kept() <= 6 * LEAST
    ab.empty_block_cache()
    assert blocks.kept() == 0
