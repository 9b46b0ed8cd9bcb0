"""Make the two namespaces of a library: over its native arrays and over Arrays.

The base is array-api-compat's module if it wraps the library, else the library's own namespace.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

from ..array.library_array import VERSIONS, LibraryArray
from ..array.operators import OPERATORS
from . import standard
from .asarray import from_dlpack_of_arrays, of_arrays, taking_any
from .corrections import Correction, direct
from .info import Info, listing_devices
from .retry import Retry
from .standard import EXTENSIONS, functions_of, linear_algebra_functions
from .standard.data_types import DATA_TYPES
from .wrap import Function, for_arrays


class NativeNamespace(NamedTuple):
    """The specification of a library's native namespace."""

    library: str
    # The base module: array-api-compat's if it wraps the library, else the library's.
    base: str
    corrections: tuple[Correction, ...]
    retries: tuple[Retry, ...] = ()
    # Returns the dtype to use for a requested one, or raises.
    check_dtype: Callable[[Any], Any] | None = None
    takes_nested: bool = True  # whether it stacks nested sequences of its own arrays
    # Attributes that flags of the library can change: extensions, the version of the standard.
    switched: tuple[str, ...] = ()

    @property
    def module(self) -> Any:
        """The base module."""
        return import_module(self.base)

    @property
    def applied(self) -> list[Correction]:
        """The corrections that the installed version of the library needs."""
        version = getattr(import_module(self.library), "__version__", "")
        return [entry for entry in self.corrections if entry.applies_to(version)]


def make_native_namespace(table: NativeNamespace) -> Any:
    """Make the namespace of a library's native arrays: the base with corrected functions."""
    xp: Any = _corrected(table)
    for module, path, name, template in functions_of(xp):
        public = getattr(module, name, None) or _missing(table.library, path, template)
        retries = tuple(retry for retry in table.retries if retry.serves(path, template))
        own = direct(public)
        if path == "asarray":
            own = taking_any(table.library, xp, own, table.check_dtype, table.takes_nested)
        elif table.check_dtype is not None and "dtype" in template.__annotations__:
            own = _checking_dtype(own, table.check_dtype)
        function = Function(path, own, xp, retries).retrying()
        if path == "asarray":  # takes more than the library's own
            vars(function)["__signature__"] = inspect.signature(own)
        setattr(module, name, public if function is direct(public) else _named(function, public))
    vars(xp)["__array_namespace_info__"] = listing_devices(xp.__array_namespace_info__)
    for name in linear_algebra_functions.__all__:  # of the extension as well
        setattr(xp.linalg, name, getattr(xp, name))
    xp._switched = table.switched
    xp._extensions = {name: vars(xp)[name] for name in EXTENSIONS}
    xp.__getattr__ = _following(xp, table.module, table.switched, xp.__getattr__)
    return xp


def _named(function: Any, public: Any) -> Any:
    """Give a function the metadata of the public one, and its attributes: of a ufunc, methods."""
    functools.update_wrapper(function, public)
    attributes = [name for name in dir(public) if not name.startswith("_")]
    vars(function).update({name: getattr(public, name) for name in attributes})
    return function


def _checking_dtype(own: Callable[..., Any], check: Callable[[Any], Any]) -> Callable[..., Any]:
    """Check the data type that a function receives by name or position."""
    names = list(inspect.signature(own).parameters)
    place = names.index("dtype") if "dtype" in names else sys.maxsize

    def function(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("dtype") is not None:
            kwargs["dtype"] = check(kwargs["dtype"])
        elif len(args) > place and args[place] is not None:
            args = (*args[:place], check(args[place]), *args[place + 1 :])
        return own(*args, **kwargs)

    return function


def _missing(library: str, path: str, template: Any) -> Callable[..., Any]:
    """Make a placeholder for a function that a library lacks, for retries to compute."""

    @functools.wraps(template)
    def function(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"{library} has no {path}")

    return function


def operators_of(xp: Any) -> dict[str, Callable[..., Any]]:
    """Return the functions of a native namespace by which its Arrays' operators compute."""
    return {op.function: getattr(xp, op.function) for op in OPERATORS}


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


def _following(
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


# The namespace over Arrays.


def open_namespace(cls: type[LibraryArray], doc: str | None = None) -> Any:
    """Make the array API namespace of a class of Arrays, and attach it to the class.

    ``arraybridge.xp.<library>`` can be imported from then on.
    """
    name = f"{__package__}.{cls._home.name}"
    module: Any = sys.modules.get(name)
    if module is None or "native" in vars(module):  # not one that `published` is filling
        module = ModuleType(name)
    module.__doc__ = doc
    native = cls._native_namespace
    module.__array_namespace_info__ = lambda: Info(cls, native)
    module.native = native
    _fill_all(module, cls, native)
    module.__array_api_version__ = VERSIONS[-1]
    module.__getattr__ = _following(module, native, native._switched, _lacking(name))
    cls._namespace = module
    sys.modules[name] = module
    setattr(sys.modules[f"{__package__}"], cls._home.name, module)
    return module


def _lacking(module: str) -> Callable[[str], Any]:
    def __getattr__(name: str) -> Any:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return __getattr__


def _fill_all(module: Any, cls: type[LibraryArray], native: Any) -> None:
    """Fill a module ``arraybridge.xp.<library>``: functions, extensions, constants, dtypes."""
    module.asarray, module.from_dlpack = of_arrays(cls, native), from_dlpack_of_arrays(cls)
    names: list[str] = []
    for chapter in standard.CHAPTERS:
        names += _fill(module, chapter, cls, native)
    for extension in EXTENSIONS:
        doc = import_module(f"{standard.__name__}.{extension}").__doc__
        inner: Any = ModuleType(f"{module.__name__}.{extension}", doc)
        inner.__all__ = _fill(inner, extension, cls, native._extensions[extension], main=module)
        setattr(module, extension, inner)
    dtypes = [name for name in DATA_TYPES if hasattr(native, name)]
    for name in dtypes:
        setattr(module, name, getattr(native, name))
    module.__all__ = [*names, *EXTENSIONS, *dtypes]


def _fill(module: Any, chapter: str, cls: Any, native: Any, main: Any = None) -> list[str]:
    """Put a chapter's functions and constants into a module; return their names."""
    templates: Any = import_module(f"{standard.__name__}.{chapter}")
    for name in templates.__all__:
        template = getattr(templates, name)
        if not inspect.isfunction(template):  # a constant
            setattr(module, name, template)
        elif template.__module__ != templates.__name__:  # an alias of a main function
            setattr(module, name, getattr(main, name))
        elif name in vars(module):  # made apart
            made = vars(module)[name]
            made.__name__ = made.__qualname__ = name
            made.__doc__, made.__module__ = template.__doc__, module.__name__
            made.__signature__ = inspect.signature(template)
        else:
            own = getattr(native, name)
            setattr(module, name, for_arrays(cls, own, template, module.__name__))
    names: list[str] = templates.__all__
    return names
