"""What was imported is released once, after its last view; what was exported keeps its owner alive.

Deleters are counted wherever they may run: consumers that never came or failed, threads that Python
does not know, with an exception pending. Whole processes: `test_ownership_processes`.
"""

import gc
import weakref

import numpy as np
import pytest

from arraybridge import convert, dlpack
from tests.support.exporters import KINDS, Exported, Owner
from tests.support.optional import optional
from tests.support.producers import Managed, Producer
from tests.support.threads import WAYS, noisy

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
