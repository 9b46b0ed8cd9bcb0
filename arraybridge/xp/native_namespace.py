"""The native namespace: a library's namespace over its own arrays, with corrections applied.

The base is array-api-compat's module if it wraps the library, else the library's own namespace.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple, cast

from ..array.dtypes import DTypes, numpys
from ..core.registry import library_named
from . import asarray, fallback
from .calls import Function, recovering
from .corrections import Correction, direct
from .data_types import checking_astype, checking_dtype, dtype_checks, limits_errors
from .fallback import Handler
from .inspection import listing_devices
from .numbers import Wide, checks
from .standard import EXTENSIONS, functions_of, linear_algebra_functions


class NativeNamespace(NamedTuple):
    """The specification of a library's native namespace."""

    library: str
    # The base module: array-api-compat's if it wraps the library, else the library's.
    base: str
    corrections: tuple[Correction, ...]
    wide: Wide | None = None  # the Python integers that it does not accept
    # Other handlers for errors of its functions, tried in turn.
    handlers: tuple[Handler, ...] = ()
    # Returns the dtype to use for a requested one, or raises.
    check_dtype: Callable[[Any], Any] | None = None
    dtypes: DTypes | None = None  # the library's data types if they are not NumPy's
    # Whether its ``asarray`` copies NumPy arrays, to its default device.
    takes_numpy: bool = False
    takes_nested: bool = True  # whether it stacks nested sequences of its own arrays
    # By function name: a faster function for a single array; see `Function.alone`.
    alone: Mapping[str, Callable[[Any], Any]] = {}
    # Attributes that flags of the library can change: extensions, the version of the standard.
    switched: tuple[str, ...] = ()

    @property
    def module(self) -> Any:
        """The base module."""
        return import_module(self.base)

    @property
    def taken(self) -> Callable[[Any], Any]:
        """Return the function from a `DType` of another library to the library's data type."""
        return numpys if self.dtypes is None else self.dtypes.taken

    @property
    def checked_dtype(self) -> Callable[[Any], Any]:
        """Return the function from a requested data type to the one to use."""
        taken, check = self.taken, self.check_dtype
        return taken if check is None else lambda dtype: check(taken(dtype))

    @property
    def applied(self) -> list[Correction]:
        """The corrections that the installed version of the library needs."""
        version = getattr(import_module(self.library), "__version__", "")
        return [entry for entry in self.corrections if entry.applies_to(version)]


def make_native_namespace(table: NativeNamespace) -> Any:
    """Make the namespace of a library's native arrays.

    It is the base namespace with corrected functions. ``_functions`` are the functions of the
    standard by name, with their checks and handlers, for the namespace over Arrays.
    """
    xp: Any = _corrected(table)
    xp._functions = {function.path: function for function in _functions(table, xp)}
    for path, function in xp._functions.items():
        extension, _, name = path.rpartition(".")
        module = getattr(xp, extension) if extension else xp
        setattr(module, name, recovering(function, getattr(module, name, function.own)))
    # The check may accept more than the function.
    check = inspect.signature(xp._functions["asarray"].before)
    xp.asarray.__signature__ = check.replace(return_annotation=check.empty)
    vars(xp)["__array_namespace_info__"] = listing_devices(xp.__array_namespace_info__)
    for name in linear_algebra_functions.__all__:  # of the extension as well
        setattr(xp.linalg, name, getattr(xp, name))
    xp._switched = table.switched
    xp.__getattr__ = following(xp, table.module, table.switched, xp.__getattr__)
    return xp


def _functions(table: NativeNamespace, xp: Any) -> list[Function]:
    """List the standard's functions in a library, with the checks and handlers of each."""
    library, check_dtype, wide = table.library, table.checked_dtype, table.wide
    home = library_named(library)
    handlers = (
        *([wide.handler] if wide else []),
        *table.handlers,
        limits_errors(library),
        fallback.devices(home),
        fallback.DDOF,
        fallback.NO_COPY,
    )
    befores = {
        **dtype_checks(library, xp.float32, table.taken),
        **checks(xp, home.owns, wide.plain if wide else lambda value: value, check_dtype),
        "asarray": asarray.arguments(
            library, xp, check_dtype, table.takes_numpy, table.takes_nested
        ),
        "astype": checking_astype(check_dtype),
    }
    functions = []
    for module, path, name, template in functions_of(xp):
        public = getattr(module, name, None) or _missing(library, path, template)
        before, dtype_at = befores.get(path), -1
        kinds = template.__annotations__
        typed = ("dtype" in kinds and kinds["return"] == "Array") or path in _ALSO_DTYPE
        if not before and typed:
            dtype_at = _dtype_at(public)
            before = checking_dtype(dtype_at, check_dtype)
        if before is not None:  # Python's errors about arguments contain its name
            cast("Any", before).__qualname__ = name
        functions.append(
            Function(
                path,
                direct(public),
                tuple(inspect.signature(template).parameters),
                tuple(handler for handler in handlers if handler.serves(path, template)),
                before,
                dtype_at,
                wide.operands(path, template, xp) if wide else None,
                xp,
                table.alone.get(path),
            )
        )
    return functions


# Functions with a data type in libraries, though not in the standard.
_ALSO_DTYPE = frozenset({"mean", "linalg.matrix_norm", "linalg.vector_norm"})


def _dtype_at(function: Callable[..., Any]) -> int:
    """Return the position of a function's data type."""
    try:
        names = list(inspect.signature(function).parameters)
    except ValueError:  # PyTorch's builtins, which take it by keyword
        names = []
    return names.index("dtype") if "dtype" in names else sys.maxsize


def _missing(library: str, path: str, template: Any) -> Callable[..., Any]:
    """Make a placeholder for a function that a library lacks, for handlers to compute."""

    @functools.wraps(template)
    def function(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{library} has no {path}")

    return function


def corrected_operators(table: NativeNamespace, xp: Any) -> dict[str, Callable[..., Any]]:
    """Return the functions that correct the library's operators, by name in the standard."""
    return {entry.name: getattr(xp, entry.name) for entry in table.applied if entry.operators}


def _corrected(table: NativeNamespace) -> ModuleType:
    # With the library's own name, which array_api_compat.is_torch_namespace and the like (also in
    # vendored copies) check, and clients that delegate to the library.
    base = table.module
    xp = _clone(base, table.base.removeprefix("array_api_compat."))
    for extension in EXTENSIONS:
        own = _extension(base, extension)
        setattr(xp, extension, _clone(own, f"{xp.__name__}.{extension}"))
    for correction in table.applied:
        extension, _, name = correction.name.rpartition(".")
        setattr(getattr(xp, extension) if extension else xp, name, correction.function)
    return xp


def _extension(base: Any, name: str) -> Any:
    """Return the module of an extension, even if a flag of array-api-strict disables it."""
    for path in (f"{base.__name__}.{name}", f"{base.__name__}._{name}"):
        with suppress(ImportError):
            return import_module(path)
    return getattr(base, name)  # a registered library need not have a module for it


def _clone(module: Any, name: str) -> ModuleType:
    """Clone a module, including attributes that it creates on demand."""
    clone = ModuleType(name, module.__doc__)
    known = {k: v for k, v in vars(module).items() if not k.startswith("__") or k in _KEPT}
    vars(clone).update(known)
    vars(clone)["__getattr__"] = lambda attribute: getattr(module, attribute)
    vars(clone)["__dir__"] = lambda: sorted({*dir(module), *known})
    return clone


_KEPT = ("__all__", "__array_namespace_info__", "__array_api_version__", "__version__")


def following(
    module: Any, base: Any, names: tuple[str, ...], otherwise: Callable[[str], Any]
) -> Callable[[str], Any]:
    """Make ``__getattr__`` of a module that looks some attributes up in its base at each access.

    `module` loses the attributes, as Python calls ``__getattr__`` only for missing ones; `base`
    raises AttributeError for those that are switched off. Extensions among the names are the
    module's own as long as ``base`` has them; the others are those of ``base``. `otherwise` returns
    all other attributes.
    """
    if not names:
        return otherwise
    own = {name: vars(module).pop(name, None) for name in names}

    def __getattr__(name: str) -> Any:
        if name not in own:
            return otherwise(name)
        found = getattr(base, name)
        return own[name] if name in EXTENSIONS else found

    return __getattr__
