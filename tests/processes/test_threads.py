"""Several threads at one capsule, one block, one first call, with a switch at every turn."""

from __future__ import annotations

import gc
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import arraybridge as ab
from arraybridge import dlpack
from arraybridge.dlpack import ConsumedCapsuleError
from tests.support.exporters import KINDS, Owner
from tests.support.optional import needs, optional, with_needs
from tests.support.processes import python
from tests.support.producers import Managed

torch = optional("torch")


@pytest.fixture(autouse=True)
def switching() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def outcomes(work: Callable[[object], object], things: list, threads: int = 4) -> list[Counter]:
    """What became of each thing, where every thread does the work on all of them."""
    barrier = threading.Barrier(threads)
    found: list[list] = [[] for _ in things]

    def run():
        for place, thing in enumerate(things):
            if place % 50 == 0:
                barrier.wait()
            try:
                outcome = work(thing)
            except Exception as error:
                outcome = error
            found[place].append(outcome)

    running = [threading.Thread(target=run) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return [Counter(type(outcome) for outcome in each) for each in found]


CONSUMERS = {
    "from_capsule": dlpack.from_capsule,
    "convert": lambda capsule: ab.convert(capsule, "numpy"),
    "from_dlpack": ab.from_dlpack,
    "torch": lambda capsule: ab.convert(capsule, "torch", alias_readonly=True),
}


@KINDS
@pytest.mark.parametrize(
    "consumer",
    [pytest.param(name, marks=needs("torch") if name == "torch" else ()) for name in CONSUMERS],
)
def test_a_capsule_is_consumed_once(consumer, versioned):
    managed = [Managed(versioned) for _ in range(600)]
    capsules = [each.capsule() for each in managed]
    found = outcomes(CONSUMERS[consumer], capsules)
    assert {each[ConsumedCapsuleError] for each in found} == {3}
    assert all(len(each) == 2 for each in found), Counter(map(str, found))
    del capsules, found
    gc.collect()  # the errors' tracebacks
    assert Counter(each.deleted for each in managed) == {1: 600}


@needs("torch")
def test_a_capsule_that_another_library_consumes_meanwhile():
    owner = Owner()
    capsules = [dlpack.to_capsule(owner.tensor) for _ in range(1000)]

    def consume(capsule):
        if threading.get_native_id() % 2:  # (the other identifier is an address: always even)
            return dlpack.from_capsule(capsule)
        return torch.from_dlpack(capsule)

    for found in outcomes(consume, capsules):
        refused = found[ConsumedCapsuleError] + found[RuntimeError]
        assert (found.total(), refused) == (4, 3)


def test_threads_that_export_first():
    """The functions in machine code are made once, or more often without harm."""
    python(
        """
import sys, threading, weakref
sys.setswitchinterval(1e-6)
import numpy as np
from arraybridge import dlpack
class Owner(np.ndarray): pass
arrays = [np.ones(3).view(Owner) for _ in range(8)]
gone = [weakref.ref(array) for array in arrays]
barrier = threading.Barrier(8)
failed = []
def first(n):
    barrier.wait()
    try:
        tensor = dlpack.acquire(arrays[n])
        arrays[n] = None
        for _ in range(20):
            tensor = dlpack.from_capsule(dlpack.to_capsule(tensor))
    except BaseException as error:
        failed.append(error)
threads = [threading.Thread(target=first, args=(n,)) for n in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
assert not failed, failed
assert all(ref() is None for ref in gone)
"""
    )


@pytest.mark.parametrize("library", [*with_needs("torch"), "array_api_strict"])
def test_conversions_by_several_threads(library: str) -> None:
    array = np.arange(12.0).reshape(3, 4)

    def there_and_back(_):
        assert (ab.convert(ab.convert(array, library), "numpy") == array).all()
        assert (ab.contiguous(array.T) == array.T).all()
        assert (np.from_dlpack(ab.convert(array[::-1], library)) == array[::-1]).all()

    found = outcomes(there_and_back, list(range(300)))
    assert all(each == {type(None): 4} for each in found), found


OF_A_LIBRARY = """
import {0}
repeats, shapes = 2000, {{10000: (1000, 4), 0: (4, 1000)}}
def rebind():
    for start, shape in shapes.items():
        x.data = ({0}.arange(4000.0) + start).reshape(list(shape))
x = {0}.arange(4000.0)
rebind()
ways = dict(
    copy=lambda: ab.convert(x, 'numpy', copy=True),
    jax=lambda: ab.convert(x, 'jax'),
    view=lambda: ab.convert(ab.from_dlpack(x), 'numpy', copy=False),
    numpy=lambda: np.from_dlpack(ab.from_dlpack(x)),
    out=lambda: ab.contiguous(x, out=np.empty(x.shape, 'f4')),
)
"""
# PyTorch's functions that let go of the GIL are called on an alias: bits, and conjugation.
OF_A_DTYPE = """
import torch
repeats, shapes = 15000, {{100: (100, 1), 0: (1, 100)}}
def of(start):
    return (torch.arange(100) + start).to(torch.{0}).conj().reshape(shapes[start])
high, low = map(of, shapes)
def rebind():
    x.data = high
    x.data = low
x = low.clone()
array = ab.from_dlpack(x)
ways = dict(
    view=lambda: ab.convert(x, 'numpy'),
    copy=lambda: ab.convert(array, 'torch', copy=True),
    **{{"complex64": dict(numpy=lambda: np.from_dlpack(array))}}.get("{0}", {{}}),
)
"""


@pytest.mark.parametrize(
    ("library", "setup"),
    [
        ("torch", OF_A_LIBRARY.format("torch")),
        pytest.param("paddle", OF_A_LIBRARY.format("paddle"), marks=pytest.mark.heavy),
        *(("torch", OF_A_DTYPE.format(name)) for name in ("bfloat16", "complex64")),
    ],
    ids=["torch", "paddle", "bfloat16", "complex64"],
)
def test_an_array_that_is_given_other_memory_meanwhile(library: str, setup: str) -> None:
    """What comes is one or the other, whole."""
    pytest.importorskip(library)
    pytest.importorskip("jax")
    said = python(
        f"""
import sys, threading
import numpy as np
import arraybridge as ab
{setup}
first, going = [way() for way in ways.values()], True

def forever():
    while going:
        rebind()

thread = threading.Thread(target=forever, daemon=True)
thread.start()
sys.setswitchinterval(1e-6)
wrong = set()
for name, way in ways.items():
    for _ in range(repeats):
        try:
            found = ab.convert(way(), 'numpy', dtype='float64', casting='unsafe')
        except ab.ConversionError as error:
            if " has shape " not in str(error):  # of `out`, which was made for another
                wrong.add((name, str(error)))
            continue
        start = found.flat[0]
        if start not in shapes or (found.ravel() != np.arange(found.size) + start).any():
            wrong.add((name, "numbers"))
        if found.shape != shapes.get(start):
            wrong.add((name, "shape"))
going = False
thread.join()
print(wrong)
""",
        flags=("-W", "ignore"),
        env={"JAX_PLATFORMS": "cpu"},
    )
    assert said.splitlines()[-1] == "set()"
