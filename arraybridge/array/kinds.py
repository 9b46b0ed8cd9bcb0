"""Kinds of arrays: of which library, and whether native or an ``Array``."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy

from ..containers import ByType, leaves
from ..dispatch.library import library_of_type, on_registration
from ..dispatch.records import ConversionError, of_native
from ..dlpack import Device, is_capsule
from ..exchange import convert, inspect
from ..libraries.foreign import has_no_memory, speaks
from .adoption import adopter
from .carrier import Array
from .ingest import from_dlpack
from .native import NativeArray, array_class

_NEVER = (type(None), bool, int, float, complex, str, bytes, type, numpy.generic)


class Kind(NamedTuple):
    """A kind of arrays.

    Attributes
    ----------
    library : str
    face : bool
        Whether they are :class:`Array` of the library, rather than its native arrays.
    """

    library: str
    face: bool

    def brought(self, x: Any, *, device: Device | None = None, copy: bool | None = None) -> Any:
        """``x`` as an array of this kind; itself where it is one and the policies allow.

        Raises
        ------
        ConversionError
            As of :func:`arraybridge.convert`.
        """
        native = unwrapped(x)
        own = KINDS[type(native)] == (self.library, False)
        if own and device is None and copy is not True:
            found = native  # as it is, whatever it is: a tracer has no memory to look at
        else:
            try:
                found = convert(native, self.library, device=device, copy=copy)
            except ConversionError as error:
                if native is x:
                    raise
                raise ConversionError(of_native(str(error)), error.route) from None
        if not self.face:
            return found
        if found is native and isinstance(x, Array) and x.library == self.library:
            return x
        cls = array_class(self.library)
        return from_dlpack(found) if cls is None else cls._taken(found)


def is_array(x: Any) -> bool:
    """Whether ``x`` is what adapt and unify take for an array.

    An array of a library, an Array, a DLPack capsule, or what speaks DLPack or an array interface;
    and what can only be refused: arrays that lie in no memory (graphs, files), and wrappers that
    answer for an array. Not NumPy's scalars; nor mere buffers, of which nobody can say whether they
    are meant as arrays.
    """
    known = _ARRAYS[type(x)]
    if known is not None:
        return known
    return is_capsule(x) or speaks(x)


def _are_arrays(cls: type) -> bool | None:
    """Whether the instances of a class are arrays; None where each must be asked."""
    if issubclass(cls, _NEVER):
        return False
    if hasattr(cls, "__arraybridge__") or library_of_type(cls) is not None:
        return True
    return True if OUT_OF_MEMORY[cls] else None


def _kind_of_type(cls: Any) -> Kind | None:
    """The kind of all instances of a class, or None."""
    if issubclass(cls, NativeArray):
        return Kind(cls._home.name, True)
    library = None if issubclass(cls, _NEVER) else library_of_type(cls)
    return None if library is None else Kind(library.name, False)


OUT_OF_MEMORY: ByType[bool] = ByType(has_no_memory)
_ARRAYS: ByType[bool | None] = ByType(_are_arrays)
KINDS: ByType[Kind | None] = ByType(_kind_of_type)
on_registration(OUT_OF_MEMORY.clear)
on_registration(_ARRAYS.clear)
on_registration(KINDS.clear)


def unwrapped(x: Any) -> Any:
    """What an Array stands on; anything else as it is."""
    return x.__arraybridge__()[0] if isinstance(x, Array) else x


def kind_of(x: Any, adopted: Any = None) -> Kind:
    """The kind of an array; what has no library counts with the one that serves its device.

    Parameters
    ----------
    x : array
    adopted : array or tensor, optional
        What stands for ``x``, if it was adopted before: a producer is not asked twice.

    Raises
    ------
    ImportError, BufferError
        If none does; see :func:`arraybridge.array.adoption.adopter`.
    """
    known = KINDS[type(x)]
    if known is not None:
        return known
    face = isinstance(x, Array)
    if face and x.library != "dlpack":
        return Kind(x.library, True)
    if adopted is not None:
        x, known = adopted, KINDS[type(adopted)]
    return known or Kind(adopter(inspect(x).device), face)


def place_of(x: Any) -> Device | None:
    """The device of an array; None where DLPack has no word for it, or there is no memory."""
    try:
        return inspect(x).device
    except (ConversionError, RuntimeError, NotImplementedError):
        return None


def arrays_in(tree: Any) -> list[Any]:
    """The arrays in nested containers, in order."""
    return [x for x in leaves(tree, is_array) if is_array(x)]
