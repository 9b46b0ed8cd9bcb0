"""Kinds of arrays: the library, and whether they are native or Arrays."""

from __future__ import annotations

from typing import Any

import numpy

from ..containers import leaves
from ..dispatch.form import Form
from ..dispatch.library import Library
from ..dispatch.records import ConversionError, of_native
from ..dispatch.registry import RECORDS, UNKNOWN, TypeRecord
from ..dlpack import Device, is_capsule
from ..exchange import converted, inspect
from ..named import NamedTuple
from ..protocols.foreign import has_no_memory, speaks
from .carrier import Array
from .fallback import fallback_library
from .ingest import from_dlpack
from .native_array import NativeArray, array_class

_NEVER = (type(None), bool, int, float, complex, str, bytes, type, numpy.generic)


class Kind(NamedTuple):
    """A kind of arrays.

    Attributes
    ----------
    library : str
    wrapped : bool
        Whether they are :class:`Array` of the library, rather than its native arrays.
    """

    library: str
    wrapped: bool

    def brought(
        self,
        x: Any,
        *,
        device: Device | None = None,
        copy: bool | None = None,
        form: Form | None = None,
    ) -> Any:
        """Convert ``x`` to this kind; return ``x`` itself where it is one and that is allowed.

        Raises
        ------
        ConversionError
            As of :func:`arraybridge.convert`.
        """
        native = unwrapped(x)
        own = record_of(type(native)).kind == (self.library, False)
        if own and device is None and copy is not True and form is None:
            found = native  # as it is, whatever it is: a tracer has no memory to look at
        else:
            try:
                found = converted(native, self.library, form, device=device, copy=copy)
            except ConversionError as error:
                if native is x:
                    raise
                raise ConversionError(of_native(str(error)), error.route) from None
        if not self.wrapped:
            return found
        if found is native and isinstance(x, Array) and x.library == self.library:
            return x
        cls = array_class(self.library)
        return from_dlpack(found) if cls is None else cls._taken(found)


def is_array(x: Any) -> bool:
    """Whether adapt and unify treat ``x`` as an array.

    An array of a library, an Array, a DLPack capsule, or what speaks DLPack or an array interface;
    and what can only be refused: arrays that lie in no memory (graphs, files), and wrappers that
    answer for an array. Not NumPy's scalars; nor mere buffers, of which nobody can say whether they
    are meant as arrays.
    """
    known = record_of(type(x)).is_array
    if known is not None:
        return known
    return is_capsule(x) or speaks(x)


def record_of(cls: type) -> TypeRecord:
    """Return the record of a type, completed by this module.

    ``kind`` is the :class:`Kind` of all its instances, or None; ``is_array`` whether they are
    arrays, None where each must be asked; ``in_memory`` is False for graphs and files.
    """
    record = RECORDS[cls]
    if record.kind is UNKNOWN:
        _complete(record, cls)
    return record


def _complete(record: TypeRecord, cls: Any) -> None:
    library = record.library
    record.in_memory = not has_no_memory(cls)
    if issubclass(cls, _NEVER):
        record.is_array, kind = False, None
    elif issubclass(cls, Array):
        record.is_array = True
        kind = Kind(cls._library.name, True) if issubclass(cls, NativeArray) else None
    else:
        record.is_array = True if library is not None or not record.in_memory else None
        kind = None if library is None else Kind(library.name, False)
    record.kind = kind


def graphs_of(x: Any) -> Library | None:
    """Return the lazy library whose array ``x`` is; None for anything else."""
    return RECORDS[type(x)].lazy


def unwrapped(x: Any) -> Any:
    """Return the array underneath an Array; anything else as it is."""
    return x.__arraybridge__()[0] if isinstance(x, Array) else x


def kind_of(x: Any, source: Any = None) -> Kind:
    """Return the kind of an array; without a library, that of the one that computes on its device.

    Parameters
    ----------
    x : array
    source : array or tensor, optional
        What ``x`` was converted to before, so that its producer is not called again.

    Raises
    ------
    ImportError, BufferError
        If there is none; see :func:`arraybridge.array.fallback.fallback_library`.
    """
    known: Kind | None = record_of(type(x)).kind
    if known is not None:
        return known
    wrapped = isinstance(x, Array)
    if wrapped and x.library != "dlpack":
        return Kind(x.library, True)
    if source is not None:
        x, known = source, record_of(type(source)).kind
    return known or Kind(fallback_library(inspect(x).device), wrapped)


def place_of(x: Any) -> Device | None:
    """Return the device of an array; None if DLPack cannot name it or there is no memory."""
    try:
        return inspect(x).device
    except (ConversionError, RuntimeError, NotImplementedError):
        return None


def arrays_in(tree: Any) -> list[Any]:
    """List the arrays in nested containers, in order."""
    return [x for x in leaves(tree, is_array) if is_array(x)]
