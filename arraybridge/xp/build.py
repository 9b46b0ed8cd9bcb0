"""Make the two namespaces of a library: over its native arrays and over Arrays.

The base is array-api-compat's module if it wraps the library, else the library's own namespace.
"""

import functools
import inspect
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

from ..array.library_array import VERSIONS, LibraryArray
from ..array.operators import OPERATORS
from . import standard
from .asarray import from_dlpack_of_arrays, of_arrays, taking_any
from .info import Info
from .standard import EXTENSIONS, functions_of, linear_algebra_functions
from .standard.data_types import DATA_TYPES
from .wrap import Function, for_arrays

_NONE: Mapping[str, Callable[..., Any]] = {}


def make_native_namespace(
    library: str,
    base: str,
    corrections: Mapping[str, Callable[..., Any]] = _NONE,
    retries: tuple[Callable[..., Any], ...] = (),
    check_dtype: Callable[[Any], Any] | None = None,
) -> Any:
    """Make the namespace of a library's native arrays: the base with corrected functions.

    `base` names a module. `corrections` are functions by their names in the standard, such as
    ``"linalg.qr"``. Each of `retries` takes that name, the template, and the function, and returns
    another way to compute calls that raise (`retry.Retry`), or None. `check_dtype` returns the
    dtype to use for a requested one, or raises.
    """
    module = import_module(base)
    # With the library's own name, which array_api_compat.is_torch_namespace and the like (also in
    # vendored copies) check, and clients that delegate to the library.
    xp: Any = _clone(module, base.removeprefix("array_api_compat."))
    for extension in EXTENSIONS:
        # array-api-strict's flags may switch extensions off
        own = getattr(module, extension, None) or import_module(f"{base}._{extension}")
        setattr(xp, extension, _clone(own, f"{xp.__name__}.{extension}"))
    for path, function in corrections.items():
        extension, _, name = path.rpartition(".")
        setattr(getattr(xp, extension) if extension else xp, name, function)
    xp._functions = {}  # of which the functions over Arrays are made
    for module, path, name, template in functions_of(xp):
        public = getattr(module, name, None) or _missing(library, path, template)
        own = direct(public)
        if path == "asarray":
            own = taking_any(library, xp, own, check_dtype)
        elif check_dtype is not None and "dtype" in template.__annotations__:
            own = _checking_dtype(own, check_dtype)
        ways = [make(path, template, own) for make in retries]
        xp._functions[path] = entry = Function(own, [way for way in ways if way is not None])
        made = entry.retrying()
        if made is direct(public):
            made = public
        else:
            if path == "asarray":  # takes more than the library's own
                vars(made)["__signature__"] = inspect.signature(own)
            functools.update_wrapper(made, public)
        setattr(module, name, made)
    for name in linear_algebra_functions.__all__:  # of the extension as well
        setattr(xp.linalg, name, getattr(xp, name))
    return xp


def direct(function: Callable[..., Any]) -> Callable[..., Any]:
    """Unwrap a function of array-api-compat from the wrapper that passes it the module."""
    if getattr(function, "__code__", None) is None or function.__code__.co_name != "wrapped_f":
        return function
    f, xp = (inspect.getclosurevars(function).nonlocals.get(name) for name in ("f", "xp"))
    return function if f is None or xp is None else functools.partial(f, xp=xp)


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


def _clone(module: Any, name: str) -> ModuleType:
    """Clone a module, including attributes that it creates on demand."""
    clone = ModuleType(name, module.__doc__)
    known = {k: v for k, v in vars(module).items() if not k.startswith("__") or k in _KEPT}
    vars(clone).update(known)
    vars(clone)["__getattr__"] = lambda attribute: getattr(module, attribute)
    vars(clone)["__dir__"] = lambda: sorted({*dir(module), *known})
    return clone


_KEPT = ("__all__", "__array_namespace_info__", "__array_api_version__", "__version__")


# The namespace over Arrays.


def open_namespace(cls: type[LibraryArray], doc: str | None = None) -> Any:
    """Make and attach the namespace of a class; ``arraybridge.xp.<library>`` can be imported."""
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
    cls._namespace = module
    sys.modules[name] = module
    setattr(sys.modules[f"{__package__}"], cls._home.name, module)
    return module


def _fill_all(module: Any, cls: type[LibraryArray], native: Any) -> None:
    """Fill a module ``arraybridge.xp.<library>``: functions, extensions, constants, dtypes."""
    module.asarray, module.from_dlpack = of_arrays(cls, native), from_dlpack_of_arrays(cls)
    names: list[str] = []
    for chapter in standard.CHAPTERS:
        names += _fill(module, chapter, cls)
    for extension in EXTENSIONS:
        doc = import_module(f"{standard.__name__}.{extension}").__doc__
        inner: Any = ModuleType(f"{module.__name__}.{extension}", doc)
        inner.__all__ = _fill(inner, extension, cls, main=module)
        setattr(module, extension, inner)
    dtypes = [name for name in DATA_TYPES if hasattr(native, name)]
    for name in dtypes:
        setattr(module, name, getattr(native, name))
    module.__all__ = [*names, *EXTENSIONS, *dtypes]


def _fill(module: Any, chapter: str, cls: Any, main: Any = None) -> list[str]:
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
            path = name if main is None else f"{chapter}.{name}"
            own = cls._native_namespace._functions[path]
            setattr(module, name, for_arrays(cls, own, template, module.__name__))
    names: list[str] = templates.__all__
    return names
