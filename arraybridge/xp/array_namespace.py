"""The Array namespace: each function of the standard over :class:`arraybridge.Array`.

Built from the templates in ``standard``, whose annotations show which arguments are arrays or
devices, and what is returned. The native namespace of the library does the work.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy

from ..array.array import Array
from ..array.dtypes import DType
from ..array.native_array import NativeArray
from ..array.operators import SCALARS
from ..array.promotion import check_number, scalar_of
from ..protocols.rejections import check_whole, no_array
from . import standard
from .asarray import from_dlpack_of_arrays, native_device, of_arrays
from .calls import Function, remembering
from .data_types import Corrected, refusing_other_dtypes
from .standard.data_types import DATA_TYPES

Wrapper = Callable[..., Any]


def build(module: Any, cls: type[NativeArray], native: Any) -> None:
    """Fill a module ``arraybridge.xp.<library>``: functions, extensions, constants, dtypes."""
    own = refusing_other_dtypes(native._functions["asarray"], lambda: cls._namespace)
    module.asarray, module.from_dlpack = of_arrays(cls, own), from_dlpack_of_arrays(cls)
    names: list[str] = []
    for chapter in standard.CHAPTERS:
        names += _fill(module, chapter, cls, native._functions)
    for extension in standard.EXTENSIONS:
        doc = import_module(f"{standard.__name__}.{extension}").__doc__
        inner: Any = ModuleType(f"{module.__name__}.{extension}", doc)
        inner.__all__ = _fill(inner, extension, cls, native._functions, main=module)
        setattr(module, extension, inner)
    dtypes = [name for name in DATA_TYPES if hasattr(native, name)]
    given = _same if cls._dtypes is None else cls._dtypes.given.__getitem__
    for name in dtypes:
        setattr(module, name, given(getattr(native, name)))
    module.__all__ = [*names, *standard.EXTENSIONS, *dtypes]


def _fill(
    module: Any, chapter: str, cls: Any, functions: dict[str, Function], main: Any = None
) -> list[str]:
    """Put a chapter's functions and constants into a module; return their names."""
    templates: Any = import_module(f"{standard.__name__}.{chapter}")
    prefix = "" if main is None else f"{chapter}."
    for name in templates.__all__:
        template = getattr(templates, name)
        if not inspect.isfunction(template):  # a constant
            setattr(module, name, template)
        elif template.__module__ != templates.__name__:  # an alias of a main function
            setattr(module, name, getattr(main, name))
        elif name in vars(module):
            _describe(vars(module)[name], template, module.__name__)
        else:
            native = refusing_other_dtypes(functions[prefix + name], lambda: cls._namespace)
            setattr(module, name, _wrapped(template, cls, native, module.__name__))
    names: list[str] = templates.__all__
    return names


def _describe(made: Any, template: Any, module: str) -> None:
    made.__name__ = made.__qualname__ = template.__name__
    made.__doc__ = template.__doc__
    made.__module__ = module
    made.__signature__ = inspect.signature(template)


def _wrapped(template: Any, cls: type[NativeArray], native: Function, module: str) -> Wrapper:
    """Wrap ``native`` for Arrays, with the signature and documentation of ``template``."""
    signature = inspect.signature(template)
    kinds = {p.name: _kind(p) for p in signature.parameters.values()}
    if native.path == "isdtype":
        made = remembering(native)
    else:
        made = _wrapper_for(signature, kinds)(native, cls, _wrap_for(cls, template), kinds)
    _describe(made, template, module)
    return made


def _kind(parameter: inspect.Parameter) -> str:
    """Classify an argument by its annotation: an array, arrays, a device or anything else."""
    annotation = str(parameter.annotation)
    if annotation.partition(" ")[0] == "Array":
        return "arrays" if parameter.kind is parameter.VAR_POSITIONAL else "array"
    if annotation.startswith("Sequence[Array]"):
        return "sequence"
    return "device" if annotation.startswith("Device") else "else"


def _wrap_for(cls: type[NativeArray], template: Any) -> Callable[[Any], Any]:
    """Return the function that makes Arrays of a native result, by the standard's annotation."""

    def array(result: Any) -> Any:
        if result.__class__ is tuple:  # where(condition), which only NumPy has: nonzero
            return arrays(result)
        return cls._of(cls._normal(result))

    def arrays(results: Any) -> tuple[Any, ...]:
        return tuple([array(x) for x in results])

    annotation, table = template.__annotations__["return"], cls._dtypes
    if annotation == "Array":
        return array
    if annotation.startswith("tuple[Array"):
        return arrays
    if annotation.endswith("Result"):
        named = getattr(import_module(template.__module__), annotation)
        return lambda results: named(*arrays(results))
    if table is not None and annotation == "DType":
        return table.given.__getitem__
    if table is not None and annotation in ("FInfo", "IInfo"):
        return lambda result: Corrected(result, dtype=table.given[result.dtype])
    return _same


def _same(result: Any) -> Any:
    return result


def unwrapped(x: Any, cls: type[NativeArray]) -> Any:
    """Return the native array of an Array; Python scalars, dtypes and None unchanged."""
    if x.__class__ is cls:
        return x._native
    if isinstance(x, Array):
        return cls._same(x)
    if x is None or x.__class__ in SCALARS:
        return x
    if isinstance(x, numpy.generic):
        check_number(x)
        return cls._scalar(x)
    kind = type(x)
    if not hasattr(kind, "__dlpack__"):
        if hasattr(kind, "__array__") or hasattr(kind, "__array_function__"):
            check_whole(x)  # NumPy would compute a graph, or drop a unit
        if hasattr(kind, "toarray"):  # a sparse matrix; NumPy would make an object array
            raise no_array(x)
        return scalar_of(x)
    raise TypeError(
        f"{cls._namespace.__name__} takes arraybridge Arrays, got {type(x).__module__}."
        f"{type(x).__qualname__}: wrap it with asarray, or use arraybridge.namespace(x)"
    )


def _wrapper_for(
    signature: inspect.Signature, kinds: dict[str, str]
) -> Callable[[Function, Any, Any, dict[str, str]], Wrapper]:
    """Return the fastest wrapper that a signature allows."""
    found = list(kinds.values())
    if signature.return_annotation == "Array":
        if found[0] == "array" and {"else"}.issuperset(found[1:]):
            return _of_one
        first, *others = signature.parameters.values()
        if found == ["array", "array"] and others[0].kind is first.kind:
            return _of_two
        if found == ["array"] * 3 and all(other.kind is first.kind for other in others):
            return _of_three
    return _general


def _final_type(cls: Any) -> Any:
    """Return the type of results that do not need `_normal`; None if all do."""
    return None if cls._weakly_typed else cls._native_type


def _of_one(native: Function, cls: Any, wrap: Any, kinds: dict[str, str]) -> Wrapper:
    native_type, normal, own = _final_type(cls), cls._normal, native.own
    errors, recover = native.errors, native.recovery()
    before: Any = native.before
    alone = own if native.alone is None else native.alone
    dtype_at = native.dtype_at
    asked = before is not None and dtype_at < 0

    def function(x: Any, /, *args: Any, **kwargs: Any) -> Any:
        if x.__class__ is cls and not (args or kwargs or asked):  # the most common call
            x = x._native
            try:
                result = alone(x)
            except errors as error:
                result = recover(error, (x,), kwargs)
        else:
            x = x._native if x.__class__ is cls else unwrapped(x, cls)
            if before is not None and (len(args) >= dtype_at or "dtype" in kwargs):
                changed = before(x, *args, **kwargs)
                if changed is not None:
                    (x, *args), kwargs = changed
            try:
                result = own(x, *args, **kwargs)
            except errors as error:
                result = recover(error, (x, *args), kwargs)
        if result.__class__ is not native_type:
            result = normal(result)
        array = cls()
        array._native = result
        return array

    return function


def _of_two(native: Function, cls: Any, wrap: Any, kinds: dict[str, str]) -> Wrapper:
    native_type, normal, own = _final_type(cls), cls._normal, native.own
    errors, recover, operands = native.errors, native.recovery(), native.operands

    def function(x1: Any, x2: Any, /) -> Any:
        x1 = x1._native if x1.__class__ is cls else unwrapped(x1, cls)
        x2 = x2._native if x2.__class__ is cls else unwrapped(x2, cls)
        if operands is not None and x1.__class__ is not x2.__class__:
            x1, x2, settled = operands(x1, x2)
            if settled is not None:
                return cls._of(normal(settled))
        try:
            result = own(x1, x2)
        except errors as error:
            result = recover(error, (x1, x2), {})
        if result.__class__ is not native_type:
            result = normal(result)
        array = cls()
        array._native = result
        return array

    return function


def _of_three(native: Function, cls: Any, wrap: Any, kinds: dict[str, str]) -> Wrapper:
    """Make ``where``, which needs its check only if the choices are not two arrays."""
    native_type, own = cls._native_type, native.own
    errors, recover = native.errors, native.recovery()
    general = _general(native, cls, wrap, kinds)

    def function(*given: Any, **kwargs: Any) -> Any:
        if len(given) != 3 or kwargs:
            return general(*given, **kwargs)
        condition, x1, x2 = given
        if not (x1.__class__ is x2.__class__ is condition.__class__ is cls):
            return general(*given)
        condition, x1, x2 = condition._native, x1._native, x2._native
        if not (x1.__class__ is x2.__class__ is native_type):
            return general(*given)
        try:
            result = own(condition, x1, x2)
        except errors as error:
            result = recover(error, (condition, x1, x2), {})
        return wrap(result)

    return function


def _reading(before: Any, check: Any) -> Any:
    def checked(x: Any, *args: Any, **kwargs: Any) -> Any:
        check(x, read=True)
        return before(x, *args, **kwargs)

    return checked


def _general(native: Function, cls: Any, wrap: Any, kinds: dict[str, str]) -> Wrapper:
    own, errors, recover = native.own, native.errors, native.recovery()
    before, dtype_at = native.before, native.dtype_at
    positions = list(kinds.values())
    rest = "arrays" if "arrays" in positions else "else"
    last = positions.index(rest) if rest == "arrays" else len(positions)

    if native.path == "astype" and before is not None:
        before = _reading(before, cls._home.check_supported)

    # The functions for which a NumPy scalar has a dtype.
    whole: Any = {"result_type": _same, "astype": lambda x: cls._namespace.asarray(x)._native}
    whole = whole.get(native.path)

    def argument(x: Any, kind: str) -> Any:
        given = type(x)
        if given is cls:  # also for "else": SciPy passes arrays of no dimensions as fill values
            return x._native
        if given is DType:  # early, as isinstance reads its slow __class__
            return x
        if whole is not None and isinstance(x, numpy.generic):
            return whole(x)
        if kind in ("array", "arrays"):
            return unwrapped(x, cls)
        if kind == "sequence":
            return [unwrapped(each, cls) for each in x]
        if kind == "device":
            return native_device(cls, x)
        return x

    def function(*given: Any, **kwargs: Any) -> Any:
        args = tuple([argument(x, positions[i] if i < last else rest) for i, x in enumerate(given)])
        for name, x in kwargs.items():
            kwargs[name] = argument(x, kinds.get(name, "else"))
        if before is not None and (len(args) > dtype_at or "dtype" in kwargs):
            args, kwargs = before(*args, **kwargs) or (args, kwargs)
        try:
            result = own(*args, **kwargs)
        except errors as error:
            result = recover(error, args, kwargs)
        return wrap(result)

    return function
