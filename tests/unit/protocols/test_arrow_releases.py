"""Arrow's structs that we hand out: released once, in any order, on any thread, at any time."""

from __future__ import annotations

import ctypes
import gc
import weakref
from typing import Any

import numpy as np
import pytest

from arraybridge.protocols import arrow_structs
from arraybridge.protocols.arrow_memory import Array, DeviceArray, Owned, Schema, Stream, taken
from tests.support.processes import python
from tests.support.threads import WAYS, noisy


class Owner:
    """What the memory of an array belongs to."""

    memory = np.arange(24.0)

    def export(self, *shape: int, device: tuple[int, int] | None = None) -> object:
        return arrow_structs.array(shape, self.memory.ctypes.data, self, device)

    def table(self) -> object:
        return arrow_structs.table([self.export(2, 3, 4), self.export(2)], 2)

    def stream(self) -> object:
        return arrow_structs.stream(fields, self.table())


def fields() -> object:
    """Make the type of an owner's table."""
    named = zip([(3, 4), ()], ["a", "ä" * 99], strict=True)
    return arrow_structs.table([arrow_structs.schema(shape, b"g", name) for shape, name in named])


def child_of(struct: Any) -> Any:
    address = ctypes.c_void_p.from_address(struct.children).value
    assert address
    return type(struct).from_address(address)


def moved_out(struct: Any) -> Owned:
    """Take a child as a consumer may: its bytes are copied, and the original is marked released."""
    child = child_of(struct)
    owned = Owned(type(struct))
    ctypes.memmove(ctypes.addressof(owned.struct), ctypes.addressof(child), ctypes.sizeof(child))
    child.release = None
    return owned


def values(struct: Any, count: int) -> list[float]:
    pointers = (ctypes.c_void_p * 2).from_address(struct.buffers)
    return list((ctypes.c_double * count).from_address(pointers[1] or 0))


@pytest.mark.parametrize("call", WAYS)
@pytest.mark.parametrize("shape", [(24,), (2, 3, 4)])
def test_on_any_thread(call, shape):
    owner = Owner()
    alive = weakref.ref(owner)
    held = [taken(owner.export(*shape), Array) for _ in range(50)]
    held += [taken(owner.export(*shape, device=(1, -1)), DeviceArray) for _ in range(50)]
    held += [taken(owner.table(), Array) for _ in range(50)]
    held += [taken(owner.stream(), Stream) for _ in range(50)]
    held += [taken(fields(), Schema) for _ in range(50)]
    held += [taken(arrow_structs.schema(shape[1:], b"g"), Schema) for _ in range(50)]
    del owner
    for owned in held:
        assert alive() is not None or isinstance(owned.struct, Schema)
        call(owned.struct.release, ctypes.addressof(owned.struct))
        assert not owned.struct.release
    gc.collect()
    assert alive() is None


def test_by_nanoarrow():
    nanoarrow = pytest.importorskip("nanoarrow")
    owners = [Owner()]
    alive = weakref.ref(owners[0])

    class Exported:
        def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
            return arrow_structs.schema((3, 4), b"g"), owners[0].export(2, 3, 4)

    found = nanoarrow.c_array(Exported())
    assert nanoarrow.Array(found).to_pylist() == Owner.memory.reshape(2, 3, 4).tolist()
    found = found.child(0).child(0)
    owners.clear()
    gc.collect()
    assert alive() is not None
    del found
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("first", ["parent", "child"])
def test_a_child_that_was_moved_out_lives_by_itself(first):
    owner = Owner()
    alive = weakref.ref(owner)
    parent = taken(owner.export(2, 3, 4), Array)
    child = moved_out(parent.struct)
    grandchild = moved_out(child.struct)
    del owner
    one, *others = (parent, child, grandchild) if first == "parent" else (child, parent, grandchild)
    one.release()
    gc.collect()
    reused = [bytes(size) for size in range(2000)]
    assert alive() is not None
    assert values(grandchild.struct, 24) == list(range(24))
    for owned in others:
        owned.release()
    del reused
    gc.collect()
    assert alive() is None


def test_a_parent_releases_the_children_that_are_left():
    owner = Owner()
    alive = weakref.ref(owner)
    parent = taken(owner.export(2, 3, 4), Array)
    child = child_of(parent.struct)
    assert child.release
    assert child_of(child).release
    del owner
    parent.release()
    gc.collect()
    assert alive() is None


def test_types_whose_children_are_moved_out():
    capsule = arrow_structs.schema((3, 4), b"g")
    parent = taken(capsule, Schema)
    child = moved_out(parent.struct)
    grandchild = moved_out(child.struct)
    parent.release()
    child.release()
    del capsule
    reused = [b"\xa5" * size for size in range(2000)]
    assert (grandchild.struct.format, grandchild.struct.name) == (b"g", b"item")
    assert (grandchild.struct.n_children, grandchild.struct.flags) == (0, 2)
    del reused


def test_a_capsule_lets_go_of_what_nobody_took_with_an_exception_pending():
    seen: list[BaseException] = []
    # len() drops its argument, the only reference to the capsule, after the error is set.
    for shape in (24,), (2, 3, 4):
        with pytest.raises(TypeError, match=r"object of type 'PyCapsule' has no len\(\)"):
            len(noisy(Owner, seen).export(*shape))  # type: ignore[arg-type]
    assert len(seen) == 2
    with pytest.raises(TypeError, match="no len"):
        len(arrow_structs.schema((3,), b"g"))  # type: ignore[arg-type]


def test_fields_that_a_consumer_moves_out_of_a_table():
    owner = Owner()
    alive = weakref.ref(owner)
    table, kinds = taken(owner.table(), Array), taken(fields(), Schema)
    del owner
    columns = (ctypes.c_void_p * 2).from_address(table.struct.children)
    last = Owned(Array)
    ctypes.memmove(ctypes.addressof(last.struct), columns[1] or 0, ctypes.sizeof(Array))
    Array.from_address(columns[1] or 0).release = None
    first = moved_out(kinds.struct)
    table.release()
    kinds.release()
    gc.collect()
    assert alive() is not None
    assert (values(last.struct, 2), first.struct.name, first.struct.format) == (
        [0, 1],
        b"a",
        b"+w:3",
    )
    last.release()
    first.release()
    gc.collect()
    assert alive() is None


AFTER = """
import ctypes, sys
import numpy as np
from arraybridge.native import pyapi
from arraybridge.protocols import arrow_structs
from arraybridge.protocols.arrow_memory import Array, Schema, Stream, taken

class Owner:
    def __del__(self, write=sys.stdout.write):
        write("gone too early or too late")

memory, libc = np.arange(24.0), ctypes.CDLL(None)
for shape in (24,), (2, 3, 4):
    capsules = [
        (arrow_structs.array(shape, memory.ctypes.data, Owner()), Array),
        (arrow_structs.schema(shape[1:], b"g"), Schema),
        (arrow_structs.stream(lambda: None, arrow_structs.table([
            arrow_structs.array(shape, memory.ctypes.data, Owner())], shape[0])), Stream),
    ]
    for capsule, kind in capsules:
        owned = taken(capsule, kind)
        pyapi.incref(owned)
        function, argument = owned.struct.release, ctypes.addressof(owned.struct)
        assert libc.__cxa_atexit(ctypes.c_void_p(function), ctypes.c_void_p(argument), None) == 0
"""


def test_after_the_interpreter_has_ended():
    assert python(AFTER, env={"PYTHONMALLOC": "debug", "MALLOC_PERTURB_": "165"}) == ""


LATE = """
import os, sys
import numpy as np
from arraybridge.protocols import arrow_structs

class Late:
    def __del__(self, write=os.write):
        self.held.clear()
        write(1, b"ended")

memory, sys.late = np.arange(24.0), Late()
shapes = (24,), (2, 3, 4)
sys.late.held = [arrow_structs.array(shape, memory.ctypes.data, memory) for shape in shapes]
sys.late.held += [arrow_structs.schema(shape[1:], b"g") for shape in shapes]
sys.late.held += [arrow_structs.stream(lambda: None, arrow_structs.table(sys.late.held[:1], 24))]
"""


def test_when_the_modules_are_gone():
    env = {"PYTHONMALLOC": "debug", "MALLOC_PERTURB_": "165"}
    assert python(LATE, env=env) == "ended"
