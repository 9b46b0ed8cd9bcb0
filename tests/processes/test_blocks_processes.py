"""Blocks of large results in processes of their own: peaks, the environment, forks, ends."""

import os
import sys

import pytest

from tests.support.processes import python

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def test_the_default_is_a_part_of_memory_or_what_the_environment_says():
    script = "import arraybridge as ab; print(ab.get_block_cache_limit())"
    told = {"ARRAYBRIDGE_BLOCK_CACHE": ""}
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 0 < int(python(script, env=told)) <= min(memory // 16, 512 << 20)
    told = {"ARRAYBRIDGE_BLOCK_CACHE": "12345678"}
    assert int(python(script, env=told)) == 12345678


@pytest.mark.parametrize("variable", ["ARRAYBRIDGE_BLOCK_CACHE", "ARRAYBRIDGE_NUM_THREADS"])
def test_a_variable_that_holds_no_number_is_a_warning_and_the_default(variable):
    python(
        """
import os, sys, warnings
variable = sys.argv[1]
import numpy as np
import arraybridge as ab
def results():
    x = np.ones((2000, 2000), np.float32)
    made = ab.convert(x[::-1], "numpy", copy=True), ab.contiguous(x.T), ab.contiguous(x[:, ::-1])
    assert all(each.sum() == x.size for each in made)
    return ab.get_block_cache_limit(), ab.get_num_threads()
found = []
for text in ("much", "-1", "1.5", "1e6", "9" * 5000 + "x", "0x10", " none "):
    os.environ[variable] = text
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if found:
            ab.set_block_cache_limit(None), ab.set_num_threads(None)
        found.append(results())
    (one,) = caught
    assert one.category is RuntimeWarning and len(str(one.message)) < 200
    assert str(one.message).startswith(f"{variable}='{text.strip()[:40]}"), one.message
    assert "is ignored, the default is used: expected a whole number" in str(one.message)
del os.environ[variable]
ab.set_block_cache_limit(None), ab.set_num_threads(None)
assert {results(), *found} == {found[0]}
""",
        variable,
        env={"ARRAYBRIDGE_BLOCK_CACHE": "", "ARRAYBRIDGE_NUM_THREADS": ""},
    )


PEAK = """
import sys
import numpy as np
import arraybridge as ab
def peak():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if "VmHWM" in line)
bound, ours = int(sys.argv[1]), sys.argv[2] == "ours"
ab.set_block_cache_limit(bound)
copy = ab.contiguous if ours else (lambda x: ab.contiguous(x, out=np.empty(x.shape, x.dtype)))
xs = [np.ones((side, side), np.float32).T for side in (2100, 2110, 2900, 1500, 4000, 2880, 3990)]
copy(xs[3])
for _ in range(6):
    for x in xs:
        y = copy(x)
held = [copy(x) for x in xs]
print(peak())
"""


def test_resident_memory_is_never_more_than_the_bound_above_numpys():
    python(PEAK, "0", "ours")  # the kernels are compiled
    numpys = int(python(PEAK, "0", "numpy"))
    for bound in (0, 128 << 20):
        assert int(python(PEAK, str(bound), "ours")) <= numpys + bound + (2 << 20)


#: So that malloc maps large blocks, and unmaps them when they are freed.
MAPPED = {"MALLOC_MMAP_THRESHOLD_": "1000000"}

PRELUDE = """
import ctypes, os, resource, sys, threading
import numpy as np
import arraybridge as ab
from arraybridge.dlpack import DataType, DLManagedTensorVersioned, ManagedTensor
from arraybridge.native import blocks
LEAST, BYTE = blocks.LEAST, DataType.named("uint8")
x = np.ones((1200, 1200), np.float32).T
"""


def test_a_deleter_after_the_interpreter_has_ended():
    pytest.importorskip("torch")
    out = python(PRELUDE + """
libc = ctypes.CDLL(None)
libc.__cxa_atexit.argtypes = [ctypes.c_void_p] * 3
address = lambda function: ctypes.cast(function, ctypes.c_void_p).value
text = ctypes.create_string_buffer(b"last")
ctypes.pythonapi.Py_IncRef(ctypes.py_object(text))
libc.__cxa_atexit(address(libc.puts), ctypes.addressof(text), None)
for limit in (0, 1 << 30):
    ab.set_block_cache_limit(limit)
    struct = ManagedTensor.allocate((LEAST,), BYTE).hand_over()
    libc.__cxa_atexit(DLManagedTensorVersioned.from_address(struct).deleter, struct, None)
sys.held = ab.contiguous(x)
import torch
torch.held = ab.convert(x[::-1], "torch")
    """)  # fmt: skip
    assert out == "last\n"


def test_what_is_kept_is_given_up_before_memory_runs_out():
    python(PRELUDE + """
def room(nbytes):
    with open("/proc/self/statm") as file:
        now = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (now + nbytes, resource.RLIM_INFINITY))
def allocate(n):
    return ManagedTensor.allocate((n * LEAST,), BYTE)
ab.set_block_cache_limit(64 * LEAST)
held = [allocate(3) for _ in range(8)]
held.clear()
assert blocks.kept() == 24 * LEAST
room(2 * LEAST)
assert allocate(20).data  # only without the others
assert blocks.kept() == 20 * LEAST
room(2 * LEAST)
try:
    allocate(40)
except MemoryError as error:
    assert "bytes" in str(error)
else:
    raise AssertionError("so much?")
assert blocks.kept() == 0
    """, env=MAPPED)  # fmt: skip


def test_an_exception_at_any_line_loses_no_block_and_leaves_the_cache_on():
    """As an interrupt may come anywhere; memory is as it was, and the next block is used again."""
    python(PRELUDE + """
import gc
class Stop(BaseException):
    pass
def allocate(nbytes=LEAST):
    return ManagedTensor.allocate((nbytes,), BYTE)
def mapped():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0])
def work():
    held = [allocate(), allocate(2 * LEAST), allocate(3 * LEAST)]
    del held[1:]
    held += [allocate(2 * LEAST - 9000), allocate(3 * LEAST), allocate(4 * LEAST)]
    held.clear()
    blocks.kept(), ab.empty_block_cache()
    allocate()
    allocate(LEAST + 9000)
def trace(frame, event, arg):
    global left, place
    if not frame.f_code.co_filename.endswith(os.path.join("native", "blocks.py")):
        return None
    left -= 1
    if left == 0:
        place = frame.f_code.co_name, frame.f_lineno, event
        sys.settrace(None)
        raise Stop
    return trace if left > 0 else None
ab.set_block_cache_limit(6 * LEAST)
work(), work()
ab.empty_block_cache()
before, number, places = mapped(), 0, set()
while True:
    number, place = number + 1, None
    left = number
    sys.settrace(trace)
    try:
        work()
    except Stop:
        pass
    sys.settrace(None)
    if place is None:
        break
    places.add(place[0])
    ab.empty_block_cache()
    grown = (mapped() - before) * os.sysconf("SC_PAGE_SIZE")  # Python itself takes less
    assert blocks.kept() == 0 and grown < LEAST, place
    data = allocate().data
    assert allocate().data == data and blocks.kept() == LEAST, place
    assert ab.empty_block_cache() == LEAST, place
assert number > 100 and places >= {"new_block", "_reused", "_fresh", "_add", "_shrink"}, places
    """, env=MAPPED)  # fmt: skip


def test_two_hundred_forks_beside_threads_that_drop_blocks():
    """A child keeps nothing at first; what it keeps later it counts, uses again and gives up."""
    python(PRELUDE + """
ab.set_block_cache_limit(8 * LEAST)
stop, seen = [], ab.contiguous(x)
def work():
    held = []
    while not stop:
        held.append(ManagedTensor.allocate((LEAST + len(held) * 4096,), BYTE))
        if len(held) > 3:
            held.clear()
threads = [threading.Thread(target=work) for _ in range(3)]
[thread.start() for thread in threads]
wrong = set()
for turn in range(200):
    child = os.fork()
    if child == 0:
        found = [blocks.kept()]
        data = ManagedTensor.allocate((LEAST,), BYTE).data
        found.append(blocks.kept() - LEAST)
        found.append(ManagedTensor.allocate((LEAST,), BYTE).data - data)
        found.append(ab.empty_block_cache() - LEAST)
        found += [blocks.kept(), ab.empty_block_cache()]
        first, second = ab.contiguous(x), ab.contiguous(x)
        first[:] = 3
        found.append((second != 1).any() or (seen != 1).any())
        del seen, first  # the parent's and the child's own, released here
        found.append(ab.empty_block_cache() == 0)
        os._exit(sum(1 << bit for bit, each in enumerate(found) if each))
    made = ab.contiguous(x)
    made[:] = 7
    wrong.add(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
stop.append(1)
[thread.join() for thread in threads]
ab.empty_block_cache()
assert wrong == {0} and blocks.kept() == 0, (wrong, blocks.kept())
assert (made == 7).all() and (seen == 1).all()
    """, flags=("-X", "faulthandler"))  # fmt: skip
