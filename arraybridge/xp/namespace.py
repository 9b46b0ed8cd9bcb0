"""What makes the modules ``arraybridge.xp.<library>``: the class of Arrays, and both faces."""

from __future__ import annotations

from typing import Any

from ..array import indexing, operators
from ..array.native import CLASSES, VERSIONS, NativeArray, register
from ..dispatch.library import library_named
from .entrance import ENTRANCES
from .face import build
from .inspection import Info
from .integers import writing_wide_integers
from .native import corrections_of, native_face, table_of


def open_namespace(
    module: Any,
    library: str,
    *,
    native_type: type,
    normal: Any = None,
    get: Any = indexing.get,
    set: Any = indexing.set_in_place,
    direct: dict[str, Any] | None = None,
    mutable: bool = True,
    errors: tuple[type[Exception], ...] = (),
    mixes: bool = True,
    in_place: Any = None,
    members: dict[str, Any] | None = None,
) -> type[NativeArray]:
    """Fill the module of one library's namespace, and make the class of its Arrays.

    Parameters
    ----------
    module : module
        ``arraybridge.xp.<library>``, while it is imported.
    library : str
    native_type : type
        The type of most of its arrays.
    normal : callable, optional
        A native array for a result that is not of ``native_type``.
    get, set : callable
        Elements by index, read and written; see ``arraybridge.array.indexing``.
    direct : dict, optional
        Functions that do what an operator does, but quicker.
    mutable : bool
        Whether its arrays can be written.
    errors : tuple of exception types
        What its operators raise for types that they lack: the functions are tried then.
    mixes : bool
        Whether its operators promote arrays of two dtypes as the standard has it.
    in_place : callable, optional
        What makes its in-place operators right where they are not.
    members : dict, optional
        Whatever else its class is to have.
    """
    native = native_face(library)
    if wide := getattr(table_of(library), "WIDE", None):
        set = writing_wide_integers(set, wide)
    cls = type(
        CLASSES[library],
        (NativeArray,),
        {
            "__slots__": (),
            "__hash__": None,  # as every array whose == is elementwise
            "__module__": module.__name__,
            "__doc__": f"An array of {library}, as the standard has it; see Array.",
            "_home": library_named(library),
            "_library": library_named(library),
            "_namespace": module,
            "_normal": staticmethod(normal or _itself),
            "_devices": {},
            **(members or {}),
        },
    )
    replaced = {c.name: getattr(native, c.name) for c in corrections_of(library) if c.operators}
    made = operators.methods(
        cls,
        native_type,
        replaced,
        direct or {},
        mutable,
        errors,
        None if mixes else native,
        in_place,
    )
    made |= indexing.methods(cls, native_type, get, set)
    for name, method in made.items():
        setattr(cls, name, method)
    for name, entrance in ENTRANCES.items():
        setattr(module, name, entrance(cls, native))
    module.__array_namespace_info__ = lambda: Info(cls, native)
    module.native = native
    build(module, cls, native)
    module.__array_api_version__ = VERSIONS[-1]
    register(cls)
    return cls


def _itself(native: Any) -> Any:
    return native
