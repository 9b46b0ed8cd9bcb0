"""Release callbacks of the structs of Arrow's C data interface, and destructors of their capsules.

They may run on any thread, with or without the GIL, or once the interpreter has begun to end: then
the memory is left to the operating system. ``private_data`` is a reference to a Python object.

Importing this module imports Numba. Source: Apache Arrow, "The Arrow C data interface", "Release
callback semantics".
"""

from __future__ import annotations

from typing import Any

from numba import cfunc, njit, types

from arraybridge.kernels.cpu.nest import set_word, word

_ADDRESS, _INT = types.int64, types.int32
_FUNCTIONS = {
    "PyGILState_Ensure": _INT(),
    "PyGILState_Release": types.void(_INT),
    "Py_DecRef": types.void(_ADDRESS),
    "Py_IsInitialized": _INT(),
    "PyCapsule_GetContext": _ADDRESS(_ADDRESS),
    "PyCapsule_GetName": _ADDRESS(_ADDRESS),
    "PyCapsule_GetPointer": _ADDRESS(_ADDRESS, _ADDRESS),
}
_ensure, _release, _drop, _is_initialized, _context, _name, _pointer = (
    types.ExternalFunction(name, signature) for name, signature in _FUNCTIONS.items()
)

# Offsets in bytes of each struct's fields; a stream has no children.
_PLACES = {"array": (32, 48, 64, 72), "schema": (32, 40, 56, 64), "stream": (0, 0, 24, 32)}


def compiled(function: str, struct: str) -> Any:
    """Compile a callback with Numba's ``cfunc``.

    "release" takes a struct ("array", "schema", "stream"); "destroy" is the destructor of a capsule
    with one, whose context is a reference to the memory of the struct.
    """
    n_children, children, callback, private = _PLACES[struct]

    @njit
    def release(top):  # type: ignore[no-untyped-def]
        # Each struct has at most one child, which the consumer may have moved out.
        while word(top, callback):
            last = top
            while n_children and word(last, n_children):
                child = word(word(last, children), 0)
                if not word(child, callback):
                    break
                last = child
            owner = word(last, private)
            set_word(last + callback, 0)
            _drop(owner)

    @cfunc(types.void(_ADDRESS))
    def released(self):  # type: ignore[no-untyped-def]
        if _is_initialized():
            state = _ensure()
            release(self)
            _release(state)
        else:
            set_word(self + callback, 0)

    @cfunc(types.void(_ADDRESS))
    def destroyed(capsule):  # type: ignore[no-untyped-def]
        self = _pointer(capsule, _name(capsule))
        if word(self, callback):
            release(self)
        _drop(_context(capsule))

    return released if function == "release" else destroyed
