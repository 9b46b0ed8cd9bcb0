"""The native namespace: a library's namespace over its own arrays, with its corrections applied.

array-api-compat underneath where it wraps the library, the library's own namespace elsewhere.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from types import ModuleType
from typing import Any, cast

from ..array.dtypes import DTypes, numpys
from ..dispatch.registry import library_named
from ..named import NamedTuple
from .axes import Deviations
from .corrections import Correction, direct
from .dtypes import DtypeErrors, checking, needing, questions
from .flags import following
from .inspection import listing_devices
from .integers import Wide
from .placement import Placement
from .recovery import Function, Handler, recovering
from .scalars import CHECKS, Surroundings
from .sources import SharingErrors, taking_all
from .standard import EXTENSIONS, functions_of


class NativeNamespace(NamedTuple):
    """The specification of a library's native namespace.

    Attributes
    ----------
    library : str
    base : str
        The module underneath: array-api-compat's where it wraps the library, else the library's.
    corrections : tuple of Correction
    handlers : tuple of Handler
        What may be done when one of its functions raises, tried in turn.
    check_dtype : callable, optional
        Returns the dtype to use for a requested one; raises for one that the result would
        not have.
    dtypes : DTypes, optional
        The library's data types, if they are none of NumPy's.
    takes_numpy : bool
        Whether its ``asarray`` copies NumPy's arrays, to its default device.
    alone : mapping
        By the names of functions: what each does with a single array of the library's own type, in
        fewer steps; see `Function.alone`.
    switched : tuple of str
        What flags of the library change at any time: extensions, the version of the standard.
    """

    library: str
    base: str
    corrections: tuple[Correction, ...]
    handlers: tuple[Handler, ...] = ()
    check_dtype: Callable[[Any], Any] | None = None
    dtypes: DTypes | None = None
    takes_numpy: bool = False
    alone: Mapping[str, Callable[[Any], Any]] = {}
    switched: tuple[str, ...] = ()

    @property
    def module(self) -> Any:
        """The namespace underneath."""
        return import_module(self.base)

    @property
    def taken(self) -> Callable[[Any], Any]:
        """What gives the library a data type for the `DType` of another."""
        return numpys if self.dtypes is None else self.dtypes.taken

    @property
    def checked_dtype(self) -> Callable[[Any], Any]:
        """What gives the data type to use for a requested one."""
        taken, check = self.taken, self.check_dtype
        return taken if check is None else lambda dtype: check(taken(dtype))

    @property
    def applied(self) -> list[Correction]:
        """The corrections that the installed version of the library needs."""
        library = import_module(self.base.removeprefix("array_api_compat.").partition(".")[0])
        version = getattr(library, "__version__", "")
        return [entry for entry in self.corrections if entry.applies_to(version)]


def make_native_namespace(table: NativeNamespace) -> Any:
    """Make the namespace of a library's native arrays.

    Returns
    -------
    module
        Everything in the namespace underneath, with the corrected functions in place. Its
        ``_functions`` are those of the standard by name, with what surrounds a call of each: the
        namespace over Arrays calls them itself.
    """
    xp: Any = _corrected(table)
    xp._functions = {function.path: function for function in _functions(table, xp)}
    for path, function in xp._functions.items():
        extension, _, name = path.rpartition(".")
        module = getattr(xp, extension) if extension else xp
        setattr(module, name, recovering(function, getattr(module, name, function.own)))
    # The check may take more than the function.
    check = inspect.signature(xp._functions["asarray"].before)
    xp.asarray.__signature__ = check.replace(return_annotation=check.empty)
    vars(xp)["__array_namespace_info__"] = listing_devices(xp.__array_namespace_info__)
    _aliased(xp)
    xp._switched = table.switched
    xp.__getattr__ = following(xp, table.module, table.switched, xp.__getattr__)
    return xp


def _functions(table: NativeNamespace, xp: Any) -> list[Function]:
    """List the standard's functions in a library, with the checks and handlers of each."""
    library, taken, check_dtype = table.library, table.taken, table.checked_dtype
    handlers = (
        *table.handlers,
        DtypeErrors(library),
        Placement(library_named(library)),
        Deviations(),
        SharingErrors(),
    )
    wide = next((handler for handler in handlers if isinstance(handler, Wide)), None)
    befores = questions(library, xp.float32, taken)
    befores["asarray"] = taking_all(library, xp, check_dtype, table.takes_numpy)
    functions = []
    for module, path, name, template in functions_of(xp):
        public = getattr(module, name, None) or _missing(library, path, template)
        own = direct(public)
        parameters = inspect.signature(template).parameters
        before, dtype_at = befores.get(path), None
        if path in CHECKS:
            surroundings = Surroundings(
                xp,
                library_named(library).owns,
                wide.plain if wide else _itself,
                check_dtype,
            )
            before = CHECKS[path](surroundings)
        elif path == "astype":
            before = needing(check_dtype)
        elif not before and (_gives_dtype(template) or path in _ALSO_DTYPE):
            dtype_at = _dtype_at(public)
            before = checking(dtype_at, check_dtype)
        if before is not None:  # whose name Python puts into errors about the arguments
            cast("Any", before).__qualname__ = name
        serving = tuple(handler for handler in handlers if handler.serves(path, template))
        functions.append(
            Function(
                path,
                own,
                tuple(parameters),
                serving,
                before,
                dtype_at,
                wide.operands(path, template, xp) if wide in serving else None,
                xp,
                table.alone.get(path),
            )
        )
    return functions


# What libraries take a data type for, though the standard does not.
_ALSO_DTYPE = frozenset({"mean", "linalg.matrix_norm", "linalg.vector_norm"})


def _gives_dtype(template: Any) -> bool:
    """Whether a function of the standard takes the data type of its result."""
    kinds = template.__annotations__
    return "dtype" in kinds and kinds["return"] == "Array"


def _dtype_at(function: Callable[..., Any]) -> int:
    """Return where a function takes the data type by position."""
    try:
        names = list(inspect.signature(function).parameters)
    except ValueError:  # of PyTorch's builtins, which take it by name
        names = []
    return names.index("dtype") if "dtype" in names else sys.maxsize


def _missing(library: str, path: str, template: Any) -> Callable[..., Any]:
    """Make a placeholder for a function that a library lacks, for handlers to implement."""

    @functools.wraps(template)
    def function(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{library} has no {path}")

    return function


def corrected_operators(table: NativeNamespace, xp: Any) -> dict[str, Callable[..., Any]]:
    """Return the functions that correct the library's operators, by their names in the standard."""
    return {entry.name: getattr(xp, entry.name) for entry in table.applied if entry.operators}


def _itself(value: Any) -> Any:
    return value


def _corrected(table: NativeNamespace) -> ModuleType:
    # The library's own name: array_api_compat.is_torch_namespace and its like, in whatever package
    # carries a copy of them, go by it, and so do clients that delegate to the library.
    base = table.module
    xp = _clone(base, table.base.removeprefix("array_api_compat."))
    for extension in EXTENSIONS:
        own = _extension(base, extension)
        setattr(xp, extension, _clone(own, f"{xp.__name__}.{extension}"))
    for correction in table.applied:
        extension, _, name = correction.name.rpartition(".")
        setattr(getattr(xp, extension) if extension else xp, name, correction.function)
    return xp


def _aliased(xp: Any) -> None:
    """Make aliases refer to the same function."""
    for extension, names in _ALIASES.items():
        for name in names:
            setattr(getattr(xp, extension), name, getattr(xp, name))


def _extension(base: Any, name: str) -> Any:
    """Return the module of an extension, also of array-api-strict with the extension disabled."""
    for path in (f"{base.__name__}.{name}", f"{base.__name__}._{name}"):
        with suppress(ImportError):
            return import_module(path)
    return getattr(base, name)


_ALIASES = {"linalg": ("matmul", "matrix_transpose", "tensordot", "vecdot")}


def _clone(module: Any, name: str) -> ModuleType:
    """Clone a module, including the attributes that it creates on demand."""
    clone = ModuleType(name, module.__doc__)
    known = {k: v for k, v in vars(module).items() if not k.startswith("__") or k in _KEPT}
    vars(clone).update(known)
    vars(clone)["__getattr__"] = lambda attribute: getattr(module, attribute)
    vars(clone)["__dir__"] = lambda: sorted({*dir(module), *known})
    return clone


_KEPT = ("__all__", "__array_namespace_info__", "__array_api_version__", "__version__")
