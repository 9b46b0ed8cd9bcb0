"""DLPack capsules and structs whose destructors and deleters are NumPy's own.

A deleter may run on any thread, with or without the GIL, with an exception pending, or after the
interpreter has ended: it cannot be a Python function. NumPy's takes the GIL and drops a reference
to the exported array; once the interpreter is ending it does nothing. So a NumPy array that refers
to the memory's owner is exported, and NumPy's struct is rewritten to describe that memory. Its
``manager_ctx`` and ``deleter`` stay.
"""

from ctypes import PYFUNCTYPE, c_char, c_void_p
from struct import Struct, pack_into
from typing import Any

import numpy as np

from . import C, pyapi


class Context(np.ndarray):
    """Extents and strides of a struct, and the owner of its memory."""

    __slots__ = ("owner",)
    owner: object


_new: Any = np.ndarray.__new__
_INT64 = np.dtype(np.int64)
_head = (c_char * 64).from_address
_versioned = Struct("=8xQQ8xQ").unpack_from  # manager_ctx, deleter, dl_tensor.data
_legacy = Struct("=Q40xQQ").unpack_from  # dl_tensor.data, manager_ctx, deleter


def export(
    owner: object, axes: tuple[int, ...], versioned: bool
) -> tuple[pyapi.CapsuleType, int, int, int, int]:
    """Make a capsule that keeps an owner alive; ``axes`` are its extents, then its strides.

    Return (capsule, address of its struct, manager_ctx, deleter, address of the axes). The struct
    describes a `Context`'s memory until it is rewritten; the axes live as long as the struct.
    """
    array = _new(Context, len(axes) or 1, _INT64)
    array.owner = owner
    pack_into(f"={len(axes)}q", array, 0, *axes)
    capsule = array.__dlpack__(max_version=(1, 0) if versioned else None)
    address = pyapi.capsule_pointer(capsule, pyapi.DLPACK_NAMES[bool(versioned)])
    if versioned:
        context, deleter, data = _versioned(_head(address))
    else:
        data, context, deleter = _legacy(_head(address))
    return capsule, address, context, deleter, data


_destructors = [
    pyapi.capsule_destructor(export(None, (), versioned)[0]) for versioned in (False, True)
]
# void (*)(DLManagedTensor[Versioned]* self). The GIL is kept: a deleter that needs it takes it
# again, and one that forgets to (a frequent bug, numpy#22507) is safe.
_DELETER = PYFUNCTYPE(None, c_void_p)


class Imported(list[pyapi.CapsuleType]):
    """Own a producer's struct: its deleter runs once, when this is freed.

    A pending exception is saved meanwhile, as for every ``__del__``. No Python code runs, so no
    other thread gets the GIL in between: ``clear`` drops a capsule.
    """

    __slots__ = ()
    __del__ = list.clear


def owner_of(address: int, versioned: bool) -> object:
    """Return an owner of a producer's struct."""
    name = pyapi.DLPACK_NAMES[versioned]
    return Imported((pyapi.new_capsule(address, name, _destructors[versioned]),))


def take(capsule: object, versioned: bool) -> tuple[int, object] | None:
    """Consume a capsule: return its pointer and an owner; None if it has another name.

    A pointer that cannot be an address has no owner.
    """
    address = pyapi.claim(capsule, versioned)
    if not address:
        return None
    return address, None if address < 4096 or address & 7 else owner_of(address, versioned)


if C is not None:
    export, owner_of, take = C.export, C.own, C.take


def release(owner: Any, versioned: bool) -> None:
    """Run the deleter of what `owner_of` or `take` returned now."""
    address = pyapi.claim(owner[0] if isinstance(owner, Imported) else owner, versioned)
    if address:
        deleter = c_void_p.from_address(address + (16 if versioned else 56)).value
        if deleter:
            _DELETER(deleter)(address)
