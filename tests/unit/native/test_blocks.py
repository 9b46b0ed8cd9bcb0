"""Memory of results: reused once nobody sees it, within the limit, given back."""

import ctypes
import gc
import random
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import arraybridge as ab
from arraybridge.dlpack import DataType, DLManagedTensorVersioned, ManagedTensor
from arraybridge.native import C, blocks
from tests.support.optional import optional
from tests.support.processes import python, resident
from tests.support.threads import in_threads

torch = optional("torch")
LEAST = 64 << 10
BYTE = DataType.named("uint8")
pytestmark = pytest.mark.skipif(C is None, reason="NumPy allocates")


@pytest.fixture(autouse=True)
def limit():
    """Set the limit; nothing is kept before and after."""

    def set_limit(number):
        C.limit_blocks(number * LEAST)

    set_limit(512)
    gc.collect()
    ab.empty_block_cache()
    yield set_limit
    ab.empty_block_cache()
    C.limit_blocks(512 << 20)


def matrix(nbytes=4 << 20):
    """A matrix of at least so many bytes, whose transpose is no view in C order."""
    side = int((nbytes / 4) ** 0.5 + 1)
    return np.random.default_rng(0).integers(0, 2**32, (side, side + 3), np.uint32).T


def block(nbytes=LEAST):
    return ManagedTensor.allocate((nbytes,), BYTE)


COPIES = {
    "numpy": lambda x: ab.contiguous(x),
    "torch": lambda x: ab.contiguous(torch.from_numpy(x)),
    "numpy to torch": lambda x: ab.convert(x[::-1], "torch"),
    "Array": lambda x: ab.contiguous(ab.from_dlpack(x)),
}


@pytest.mark.parametrize("name", COPIES)
def test_a_dropped_result_is_used_again_and_a_seen_one_is_not(name):
    copy, x = COPIES[name], matrix()
    first = copy(x)
    address = ab.inspect(first).pointer
    expected = np.from_dlpack(first).copy()
    second = copy(x)
    assert ab.inspect(second).pointer != address
    assert blocks.idle_bytes() == 0
    del first
    assert 4 << 20 <= blocks.idle_bytes() < 5 << 20
    third = copy(x)
    assert ab.inspect(third).pointer == address
    assert blocks.idle_bytes() == 0
    assert np.array_equal(np.from_dlpack(third), expected)


@pytest.mark.parametrize(
    "view_of",
    [
        lambda y: y[5:, ::2],
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
    others = [ab.contiguous(matrix()) for _ in range(3)]
    assert address not in [other.ctypes.data for other in others]
    del view
    assert blocks.idle_bytes() > 0


@pytest.mark.parametrize("versioned", [True, False])
def test_a_deleter_that_is_called_without_the_gil(versioned):
    made = block()
    data = made.data
    struct = made.to_struct(versioned)
    del made
    # The struct begins with the tensor, or with version, context and deleter.
    if versioned:
        deleter = DLManagedTensorVersioned.from_address(struct).deleter
    else:
        deleter = ctypes.c_uint64.from_address(struct + 56).value
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(deleter)(struct)  # lets the GIL go
    assert blocks.idle_bytes() == LEAST
    assert block().data == data


@given(st.integers(LEAST, 1 << 26))
def test_a_block_serves_all_sizes_of_its_class(nbytes):
    """Eight classes to each power of two: at most an eighth of a block is too much."""
    C.limit_blocks(1 << 30)
    ab.empty_block_cache()
    owner, address, fresh = C.new_block(nbytes)
    assert fresh
    assert address % blocks.ALIGNMENT == 0
    del owner
    size = blocks.idle_bytes()
    assert nbytes <= size <= nbytes * 9 // 8 + 8
    owner, again, fresh = C.new_block(size)
    assert (again, fresh, blocks.idle_bytes()) == (address, False, 0)
    other, another, fresh = C.new_block(size + 1)
    assert fresh
    assert another != address
    del owner, other
    assert C.new_block(nbytes)[1:] == (address, False)


def test_nothing_is_kept_beyond_the_limit(limit):
    limit(4)
    held = [block() for _ in range(5)]
    large = block(5 * LEAST)
    held.clear()
    assert blocks.idle_bytes() == 4 * LEAST
    del large
    assert blocks.idle_bytes() == 4 * LEAST
    held = [block() for _ in range(4)]
    addresses = [made.data for made in held]
    for _ in range(4):
        del held[0]
    data = block(2 * LEAST).data  # the oldest make room
    assert blocks.idle_bytes() == 4 * LEAST
    assert block(2 * LEAST).data == data
    held = [block(), block()]
    assert {made.data for made in held} == set(addresses[2:])
    held.clear()
    limit(3)
    assert blocks.idle_bytes() <= 3 * LEAST
    limit(0)
    block()
    assert blocks.idle_bytes() == 0


def test_what_stays_unused_is_given_up(limit):
    """A program that made large results once does not keep their memory while it goes on."""
    limit(4096)
    held = [block(48 * LEAST) for _ in range(5)]
    held.clear()
    assert blocks.idle_bytes() == 240 * LEAST
    for _ in range(3000):
        block()
    assert blocks.idle_bytes() == 241 * LEAST
    for _ in range(1500):
        block()
    assert blocks.idle_bytes() == LEAST


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_system_may_take_what_is_much(limit):
    def lent():
        with open("/proc/self/smaps_rollup") as file:
            return next(int(line.split()[1]) << 10 for line in file if line.startswith("LazyFree"))

    limit(1 << 12)
    half = 32 << 20
    held = [block(half) for _ in range(4)]
    views = [np.frombuffer((ctypes.c_uint8 * half).from_address(b.data), np.uint8) for b in held]
    for view in views:
        view[:] = 7
    before = lent()
    del held[:2]
    assert lent() - before < 1 << 20
    assert all((view == 7).all() for view in views[2:])
    held.clear()
    assert lent() - before > half // 2
    assert blocks.idle_bytes() == 4 * half
    assert block(half).data  # usable as before


def test_memory_is_given_back_on_request(limit):
    limit(4096)
    x = matrix(256 * LEAST)
    made = [ab.contiguous(x) for _ in range(3)]
    nbytes = made[0].nbytes
    before = resident()
    made.clear()
    assert abs(resident() - before) < nbytes // 2
    assert ab.empty_block_cache() >= 3 * nbytes
    assert resident() < before - 2.9 * nbytes
    assert ab.empty_block_cache() == 0


def test_the_limit_holds_under_threads_that_take_and_drop(limit):
    limit(6)
    over, wrong = [], []

    def work(seed):
        rng = random.Random(seed)
        held = []
        for turn in range(60):
            size = rng.choice([LEAST, LEAST + 8192, 2 * LEAST])
            made = block(size)
            mark = seed * 1000 + turn
            view = np.frombuffer((ctypes.c_uint8 * size).from_address(made.data), np.uint16)
            view[:: LEAST // 64] = view[-1] = mark
            held.append((made, view, mark))
            if len(held) > 3:
                made, view, mark = held.pop(rng.randrange(4))
                if not ((view[:: LEAST // 64] == mark).all() and view[-1] == mark):
                    wrong.append(mark)
            if blocks.idle_bytes() > 6 * LEAST:
                over.append(blocks.idle_bytes())
            if turn % 40 == 39:
                ab.empty_block_cache()

    in_threads(work, range(8))
    assert (wrong, over) == ([], [])


def test_the_limit_of_the_environment():
    script = "import arraybridge as ab; print(ab.get_block_cache_limit())"
    assert 0 < int(python(script, env={"ARRAYBRIDGE_BLOCK_CACHE": ""})) <= 512 << 20
    assert int(python(script, env={"ARRAYBRIDGE_BLOCK_CACHE": "12345678"})) == 12345678


PRELUDE = """
import os, resource, threading
import numpy as np
import arraybridge as ab
from arraybridge.dlpack import DataType, ManagedTensor
from arraybridge.native import blocks
LEAST = 4 << 20
def allocate(n):
    return ManagedTensor.allocate((n * LEAST,), DataType("uint8"))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_what_is_kept_is_given_up_before_memory_runs_out():
    script = PRELUDE + """
def room(nbytes):
    with open("/proc/self/statm") as file:
        now = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (now + nbytes, resource.RLIM_INFINITY))
held = [allocate(3) for _ in range(8)]
held.clear()
assert blocks.idle_bytes() == 24 * LEAST
room(2 * LEAST)
assert allocate(20).data  # only without the others
assert blocks.idle_bytes() == 20 * LEAST
try:
    allocate(40)
except MemoryError as error:
    assert "bytes" in str(error)
else:
    raise AssertionError("so much?")
assert blocks.idle_bytes() == 0
"""  # fmt: skip
    # So that malloc maps large blocks, and unmaps them when they are freed.
    mapped = {"MALLOC_MMAP_THRESHOLD_": "1000000", "ARRAYBRIDGE_BLOCK_CACHE": str(256 << 20)}
    python(script, env=mapped)


def test_forks_beside_threads_that_drop_blocks():
    """A child keeps nothing at first, and never writes to its parent's blocks."""
    python(
        PRELUDE + """
x = np.ones((1200, 1200), np.float32).T
stop, seen = [], ab.contiguous(x)
def work():
    while not stop:
        held = [allocate(1) for _ in range(4)]
threads = [threading.Thread(target=work) for _ in range(2)]
[thread.start() for thread in threads]
for turn in range(50):
    child = os.fork()
    if child == 0:
        kept = blocks.idle_bytes()
        data = allocate(1).data
        again = allocate(1).data
        ab.contiguous(x)[:] = 3
        os._exit(kept != 0 or data != again or bool((seen != 1).any()))
    assert os.waitpid(child, 0)[1] == 0
stop.append(1)
[thread.join() for thread in threads]
assert (seen == 1).all()
""",
        flags=("-X", "faulthandler"),
    )  # fmt: skip
