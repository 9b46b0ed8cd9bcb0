"""What was imported is released once, after its last view; what was exported keeps its owner alive.

Deleters are counted wherever they may run: consumers that never came or failed, threads that Python
does not know, with an exception pending. Whole processes: `test_ownership_processes`.
"""

import ctypes
import gc
import weakref

import numpy as np
import pytest

from arraybridge import convert, dlpack
from arraybridge.dlpack import ManagedTensor
from tests.support.exporters import KINDS, Exported, Owner
from tests.support.optional import optional
from tests.support.producers import Managed, Producer
from tests.support.threads import WAYS, in_threads, noisy, on_a_thread_of_c

torch = optional("torch")

# Capsules


@KINDS
def test_our_unconsumed_capsule_releases_the_owner(versioned):
    owner = Owner()
    alive = weakref.ref(owner)
    capsules = [dlpack.to_capsule(owner.tensor, versioned=versioned) for _ in range(3)]
    del owner
    while capsules:
        assert alive() is not None
        capsules.pop()
    assert alive() is None


@KINDS
def test_our_consumed_capsule_releases_nothing(versioned):
    owner = Owner()
    alive = weakref.ref(owner)
    capsule = dlpack.to_capsule(owner.tensor, versioned=versioned)
    del owner
    tensor = dlpack.from_capsule(capsule)
    del capsule
    assert alive() is not None
    assert list((ctypes.c_float * 4).from_address(tensor.data)) == [1, 2, 3, 4]
    del tensor
    assert alive() is None


@pytest.mark.parametrize("steps", [0, 1, 2, 5])
def test_a_chain_of_exports_releases_once_at_its_end(steps):
    managed = Managed()
    tensor = dlpack.from_capsule(managed.capsule())
    for step in range(steps):
        tensor = dlpack.from_capsule(dlpack.to_capsule(tensor, versioned=step % 2 == 0))
    assert managed.deleted == 0
    del tensor
    assert managed.deleted == 1


def test_the_last_of_many_views_releases():
    managed = Managed()
    tensor = dlpack.from_capsule(managed.capsule())
    views = [np.from_dlpack(Exported(tensor)), torch.from_dlpack(Exported(tensor))]
    views += [dlpack.to_capsule(tensor), convert(tensor, "numpy"), convert(tensor, "torch")]
    views += [views[0][1:], views[1].T]
    del tensor
    while views:
        assert managed.deleted == 0
        views.pop(0)
    assert managed.deleted == 1


def test_an_owner_in_a_cycle_is_collected():
    managed = Managed()
    tensor = dlpack.from_capsule(managed.capsule())
    loop = [tensor]
    loop.append(loop)
    del tensor, loop
    gc.collect()
    assert managed.deleted == 1


def test_a_block_that_moved_out_outlives_everything_of_ours():
    block = ManagedTensor.allocate((1000,), dlpack.DataType.named("float64"))
    array = np.from_dlpack(_Once(dlpack.to_capsule(block, move=True)))
    del block
    gc.collect()
    array[:] = 3
    assert array.sum() == 3000


class _Once:
    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack_device__(self):
        return (1, 0)

    def __dlpack__(self, **_):
        return self.capsule


# Consumers that fail

HANDLES = {"dtype": (3, 64, 1)}  # an opaque type, which no library has
FAILING = {
    "numpy": (np.from_dlpack, HANDLES),
    "torch": (torch.from_dlpack, HANDLES),
    "jax": (lambda x: pytest.importorskip("jax").dlpack.from_dlpack(x), HANDLES),
    "jax, strides": (
        lambda x: pytest.importorskip("jax").dlpack.from_dlpack(x, copy=False),
        {"strides": (100, 9)},
    ),
}


@KINDS
@pytest.mark.parametrize("consumer", FAILING)
def test_a_consumer_that_fails(consumer, versioned):
    consume, fields = FAILING[consumer]
    managed = Managed(**fields)
    tensor = dlpack.from_capsule(managed.capsule())
    exported = Exported(tensor, versioned)
    del tensor
    with pytest.raises(Exception) as caught:  # noqa: PT011 - of whatever type
        consume(exported)
    assert managed.deleted == 0
    del exported, caught
    gc.collect()
    assert managed.deleted == 1


@pytest.mark.parametrize("fields", [HANDLES, {"device": (2, 0)}, {"ndim": -1}, {"version": (2, 0)}])
@pytest.mark.parametrize("library", ["numpy", "torch", "jax"])
def test_a_conversion_that_is_refused(library, fields):
    pytest.importorskip(library)
    managed = Managed(**fields)
    managed.struct.dl_tensor.data += -managed.struct.dl_tensor.data % 64  # JAX views aligned memory
    producer = Producer(managed)
    with pytest.raises(BufferError) as caught:
        convert(producer, library)
    if managed.deleted == 0:  # refused for what it is; the error's traceback still holds it
        del caught
        gc.collect()
    assert managed.deleted == 1


def test_what_a_producer_fails_with_leaves_nothing():
    managed = Managed()

    class Failing(Producer):
        def __dlpack__(self, **_):
            capsule = self.managed.capsule()
            raise RuntimeError(f"after {capsule!r}")

    with pytest.raises(RuntimeError) as caught:
        dlpack.acquire(Failing(managed))
    del caught
    gc.collect()
    assert managed.deleted == 1


# Threads


@KINDS
@pytest.mark.parametrize("call", WAYS)
def test_our_deleter_on_any_thread(call, versioned):
    kind = dlpack.DLManagedTensorVersioned if versioned else dlpack.DLManagedTensor
    managed = Managed()
    tensor = dlpack.from_capsule(managed.capsule())
    structs = [tensor.to_struct(versioned) for _ in range(50)]
    del tensor
    for address in structs:
        assert managed.deleted == 0
        call(kind.from_address(address).deleter, address)
    assert managed.deleted == 1


@KINDS
def test_the_deleter_of_a_moved_block_on_a_thread_of_c(versioned):
    for _ in range(50):
        block = ManagedTensor.allocate((64, 64), dlpack.DataType.named("float64"))
        address = block.hand_over(versioned)
        kind = dlpack.DLManagedTensorVersioned if versioned else dlpack.DLManagedTensor
        on_a_thread_of_c(kind.from_address(address).deleter, address)


def test_many_threads_at_once():
    managed = [Managed() for _ in range(8)]

    def work(mine):
        tensor = dlpack.from_capsule(mine.capsule())
        for _ in range(200):
            array = np.from_dlpack(Exported(tensor))
            tensor = dlpack.acquire(array)
            assert tensor.shape == (2, 3)

    in_threads(work, managed)
    assert [mine.deleted for mine in managed] == [1] * len(managed)


# An exception pending


@KINDS
def test_our_capsule_dies_while_an_exception_is_pending(versioned):
    managed = Managed()
    tensor = dlpack.from_capsule(managed.capsule())
    make, kept = dlpack.to_capsule, [tensor]
    del tensor
    # len() drops its argument, the only reference to the capsule, after the error is set. A
    # destructor in Python fails here: numpy#32697.
    with pytest.raises(TypeError, match=r"object of type 'PyCapsule' has no len\(\)"):
        len(make(kept.pop(), versioned=versioned))
    assert managed.deleted == 1


def test_an_owner_whose_end_runs_python_while_an_exception_is_pending():
    seen: list[BaseException] = []
    with pytest.raises(TypeError, match="no len"):
        len(dlpack.to_capsule(noisy(Owner, seen).tensor))
    assert len(seen) == 1


def test_an_imported_tensor_dies_while_an_exception_is_pending():
    managed = Managed()
    with pytest.raises(TypeError, match="no len"):
        len(dlpack.from_capsule(managed.capsule()))
    assert managed.deleted == 1
