"""``namespace``: the array-API namespace of some arrays; ``unify``: arrays in one library."""

from __future__ import annotations

from typing import Any

from .array.carrier import Array
from .array.native import VERSIONS
from .dispatch.library import library_of_type
from .exchange import convert, inspect
from .xp.native import BASES, native_face

_SCALARS = (bool, int, float, complex, type(None))
_namespaces: dict[type, Any] = {}


def namespace(*xs: Any, api_version: str | None = None) -> Any:
    """The array-API namespace of some arrays, cached by type.

    Parameters
    ----------
    *xs : array or scalar
        Arrays of one library; Python scalars and None are ignored.
    api_version : str, optional
        A version of the standard that the namespace must serve, such as ``"2024.12"``.

    Returns
    -------
    module
        For native arrays the library's native face (array-api-compat's namespace with what it gets
        wrong put right), which takes and gives native arrays; for :class:`Array` the module
        ``arraybridge.xp.<library>``.

    Raises
    ------
    TypeError
        If the arrays are of several libraries (``arraybridge.unify`` brings them into one), or
        there is no array.
    """
    if len(xs) == 1 and api_version is None:
        xp = _namespaces.get(type(xs[0]))
        if xp is not None:
            return xp
    return _namespace_of(xs, api_version)


def _namespace_of(xs, api_version):
    found: dict[int, tuple[Any, type]] = {}
    for x in xs:
        if not isinstance(x, _SCALARS):
            xp = _namespaces.get(type(x)) if api_version is None else None
            xp = xp or _look_up(x, api_version)
            found.setdefault(id(xp), (xp, type(x)))
    if len(found) == 1:
        return next(iter(found.values()))[0]
    if not found:
        raise TypeError(
            "namespace() needs at least one array; got "
            + (", ".join(type(x).__name__ for x in xs) or "nothing")
        )
    kinds = ", ".join(f"{kind.__module__}.{kind.__qualname__}" for _, kind in found.values())
    raise TypeError(
        f"arrays of several libraries ({kinds}): bring them into one with "
        "`xp, *arrays = arraybridge.unify(...)`"
    )


def _look_up(x, api_version):
    xp = x.__array_namespace__() if isinstance(x, Array) else _of_native(x)
    if api_version is not None and api_version not in VERSIONS:
        raise ValueError(
            f"api_version is {api_version!r}; {xp.__name__} serves {', '.join(VERSIONS)}"
        )
    if api_version is None and type(x) is not Array:  # whose memory may be anywhere
        _namespaces[type(x)] = xp
    return xp


def _of_native(x):
    library = library_of_type(type(x))
    if library is not None and library.name in BASES:
        return native_face(library.name)
    import array_api_compat

    try:
        return array_api_compat.array_namespace(x)
    except TypeError as error:
        kind = f"{type(x).__module__}.{type(x).__qualname__}"
        raise TypeError(
            f"{kind} has no array-API namespace ({error}): convert it first, such as with "
            "arraybridge.convert(x, 'numpy')"
        ) from error


def unify(*xs: Any, like: Any = None) -> tuple[Any, ...]:
    """``(xp, x1, x2, ...)``: every array in one library and on one device.

    Parameters
    ----------
    *xs : array or scalar
        Python scalars and None come back as they are.
    like : array, optional
        The array whose library, and device, all others are brought to; by default the first array's
        library. Only ``like`` asks for copies across devices.

    Returns
    -------
    tuple
        The namespace, then ``xs`` converted, in order.

    Raises
    ------
    TypeError
        If there is no array, or the library has no array-API namespace.
    ConversionError
        If an array cannot be converted; see :func:`arraybridge.convert`.
    """
    model = like
    if model is None:
        model = next((x for x in xs if not isinstance(x, _SCALARS)), None)
    if model is None:
        raise TypeError("unify() needs at least one array")
    info = inspect(model)
    if library_of_type(type(model)) is None:
        model = convert(model, "numpy")
        info = inspect(model)
    device = None if like is None else info.device
    arrays = tuple(
        x if isinstance(x, _SCALARS) else convert(x, info.library, device=device) for x in xs
    )
    return (namespace(model), *arrays)
