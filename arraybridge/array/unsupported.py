"""Errors for what an Array does not support, which name the replacement.

Methods of other arrays that Array lacks are descriptors whose AttributeError names what to call.

NumPy's functions and ufuncs (NEP 13, NEP 18) work on an Array if they only query it; others raise
TypeError with advice. Otherwise they would silently return NumPy arrays (``numpy.mean``) or fail
(``numpy.sum``), depending on how each is written. In packages that convert any array to NumPy,
often by such a call, the functions get the result of ``numpy.asarray`` instead. The operators of
NumPy's scalars and arrays, which call ufuncs as well, are left to the Array.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any

import numpy

from ..containers import mapped
from .indexing import elements_along
from .operators import OPERATORS

# Queries of an array or its memory, which return no array.
_ASK: dict[Any, Callable[..., Any]] = {
    numpy.shape: lambda a: a.shape,
    numpy.ndim: lambda a: a.ndim,
    numpy.size: lambda a, axis=None: elements_along(a.shape, axis),
    numpy.iscomplexobj: lambda x: numpy.iscomplexobj(numpy.asarray(x)),
    numpy.isrealobj: lambda x: numpy.isrealobj(numpy.asarray(x)),
    numpy.shares_memory: lambda a, b, max_work=-1: numpy.shares_memory(
        numpy.asarray(a), numpy.asarray(b), max_work
    ),
    numpy.may_share_memory: lambda a, b, max_work=0: numpy.may_share_memory(
        numpy.asarray(a), numpy.asarray(b), max_work
    ),
}

# Packages that accept arrays of any library, and NumPy, for its testing module.
CONVERTING = {"matplotlib", "numpy", "pandas", "scipy", "sklearn"}

# Packages that only store NumPy arrays and do not convert: what to pass.
_KEEPING = {"zarr": "zarr stores NumPy arrays: for xarray's objects pass x.as_numpy()"}

_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}

# The ufunc of a NumPy operator -> the method of its right operand.
_REFLECTED = {
    getattr(numpy, op.function): f"__{_MIRRORED.get(op.name, f'r{op.name}')}__"
    for op in OPERATORS
    if op.forms != "unary"
}
# Functions with another name and other arguments in the standard.
_NEAREST = {
    "cumprod": "cumulative_prod",
    "cumsum": "cumulative_sum",
    "dot": "matmul or vecdot",
    "hstack": "concat",
    "inner": "vecdot",
    "linalg.norm": "linalg.vector_norm or linalg.matrix_norm",
    "ravel": "reshape",
    "swapaxes": "permute_dims",
    "transpose": "permute_dims",
    "unique": "unique_values",
    "vstack": "concat or stack",
}
_OPERANDS: tuple[Any, ...] = (numpy.ndarray, numpy.generic)
COMPARISONS = [getattr(numpy, op.function) for op in OPERATORS if op.forms == "compare"]


def array_function(self: Any, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """``Array.__array_function__``."""
    ask = _ASK.get(func)
    if ask is not None:
        return ask(*args, **kwargs)
    if _converting():
        return func(*mapped(_taken, args), **mapped(_taken, kwargs))
    raise _refusal(self, func, f"{func.__module__}.{func.__name__}")


def array_ufunc(self: Any, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """``Array.__array_ufunc__``."""
    if method == "__call__" and not kwargs and len(inputs) == 2:
        left, right = inputs
        name = _REFLECTED.get(ufunc)
        if name is not None and right is self and isinstance(left, _OPERANDS):
            if ufunc in COMPARISONS and not left.ndim:
                left = left[()]  # NumPy compares its scalars as arrays of no dimensions
            return getattr(self, name)(left)
    if _converting():
        return getattr(ufunc, method)(*mapped(_taken, inputs), **mapped(_taken, kwargs))
    name = ufunc.__name__
    if getattr(numpy, name, None) is ufunc:
        name = f"numpy.{name}"
    if method != "__call__":
        name = f"{name}.{method}"
    raise _refusal(self, ufunc if method == "__call__" else None, name)


def _converting() -> bool:
    """Whether the call is from one of the `CONVERTING` packages."""
    return _caller(3) in CONVERTING


def _caller(frames: int) -> str:
    """Return the package of the function that many frames above."""
    name: str = sys._getframe(frames).f_globals.get("__name__", "")
    return name.partition(".")[0]


def _taken(x: Any) -> Any:
    return numpy.asarray(x) if hasattr(x, "__arraybridge__") else x


def _refusal(x: Any, function: Any, name: str) -> TypeError:
    remedies = []
    if own := _in_the_standard().get(function):
        remedies.append(f"use arraybridge.namespace(x).{own}")
    elif near := _NEAREST.get(name.removeprefix("numpy.")):
        remedies.append(f"use the nearest in arraybridge.namespace(x), {near}")
    host = getattr(x.device, "host", None)  # None for a JAX tracer
    if host:
        remedies.append("pass numpy.asarray(x)")
    elif host is False:
        remedies.append("pass a copy on the CPU, x.to('numpy', device='cpu')")
    advice = [", or ".join(remedies)] if remedies else []
    if keeping := _KEEPING.get(_caller(3)):
        advice.append(keeping)
    problem = f"{name} does not take an arraybridge Array"
    return TypeError(f"{problem}: {'; '.join(advice)}" if advice else problem)


@functools.cache
def _in_the_standard() -> dict[Any, str]:
    """Map NumPy's functions to their names in the standard: ``"linalg.qr"``."""
    from ..xp.standard import functions_of

    return {
        getattr(module, name): path
        for module, path, name, _ in functions_of(numpy)
        if hasattr(module, name)
    }


# Methods that an Array lacks.


class Missing:
    """A method that Array lacks.

    A ``__getattr__`` would serve every name, but slow down each look-up of ``x._native``.
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, array: Any, cls: type) -> None:
        if array is None:
            raise AttributeError(f"type object {cls.__name__!r} has no attribute {self.name!r}")
        raise AttributeError(
            f"an arraybridge Array has no {self.name!r}{_advice(array, self.name)}"
        )


def refer(cls: type, names: Iterable[str]) -> None:
    """Give a class of Arrays errors with replacements for the methods that it lacks."""
    for name in names:
        if not hasattr(cls, name):
            setattr(cls, name, Missing(name))


def _advice(array: Any, name: str) -> str:
    """Return what to use instead, as the end of the message."""
    found = [_INSTEAD[name]] if name in _INSTEAD else []
    xp = getattr(type(array), "_namespace", None)
    if xp is None:
        return f": {(*found, 'the functions of the standard are in ab.namespace(x)')[0]}"
    if name in xp.__all__ and isinstance(getattr(xp, name), FunctionType):
        call = _call(getattr(xp, name))
        found.append(f"the standard has it as a function, ab.namespace(x).{name}{call}")
    if hasattr(type(array._native), name):  # not the instance: some properties warn or raise
        found.append(f"the library's method is x.native.{name}")
    if not found:
        return f", and neither has its namespace or {array.library}"
    return f": {'; '.join(found)}"


def _call(function: Any) -> str:
    """Return how to call a function on ``x``, with its required arguments: ``"(x, shape)"``."""
    others = list(inspect.signature(function).parameters.values())[1:]
    needed = [p.name for p in others if p.default is p.empty and p.kind is not p.VAR_POSITIONAL]
    return f"({', '.join(['x', *needed])})"


# Methods without a function of the same name in the standard.
_INSTEAD = {
    "numpy": "use x.to('numpy')",
    "tolist": "use x.to('numpy').tolist()",
    "item": "use x.to('numpy').item()",
    "cpu": "use x.to(device='cpu')",
    "cuda": "use x.to(device='cuda')",
    "clone": "use x.to(copy=True)",
    "copy": "use x.to(copy=True)",
    "contiguous": "use arraybridge.contiguous(x)",
    "is_contiguous": "use x.info.c_contiguous",
    "dim": "use x.ndim",
    "numel": "use x.size",
    "data_ptr": "use x.info.pointer",
    "stride": "use x.strides, in elements",
    **dict.fromkeys(("flatten", "ravel"), "use ab.namespace(x).reshape(x, (-1,))"),
    "cumsum": "the standard has cumulative_sum, in ab.namespace(x)",
    "cumprod": "the standard has cumulative_prod, in ab.namespace(x)",
    "dot": "the standard has vecdot and matmul, in ab.namespace(x)",
    **dict.fromkeys(("permute", "transpose"), "the standard has permute_dims, in ab.namespace(x)"),
    "unsqueeze": "the standard has expand_dims, in ab.namespace(x)",
}

# The functions of the standard, listed, as reading them from its templates takes milliseconds.
FUNCTIONS = """
    __array_namespace_info__ abs acos acosh add all any arange argmax argmin argsort asarray
    asin asinh astype atan atan2 atanh bitwise_and bitwise_invert bitwise_left_shift bitwise_or
    bitwise_right_shift bitwise_xor broadcast_arrays broadcast_shapes broadcast_to can_cast ceil
    clip concat conj copysign cos cosh count_nonzero cumulative_prod cumulative_sum diff divide
    empty empty_like equal exp expand_dims expm1 eye finfo flip floor floor_divide from_dlpack
    full full_like greater greater_equal hypot iinfo imag isdtype isfinite isin isinf isnan less
    less_equal linspace log log10 log1p log2 logaddexp logical_and logical_not logical_or
    logical_xor matmul matrix_transpose max maximum mean meshgrid min minimum moveaxis multiply
    negative nextafter nonzero not_equal ones ones_like permute_dims positive pow prod real
    reciprocal remainder repeat reshape result_type roll round searchsorted sign signbit sin
    sinh sort sqrt square squeeze stack std subtract sum take take_along_axis tan tanh tensordot
    tile tril triu trunc unique_all unique_counts unique_inverse unique_values unstack var
    vecdot where zeros zeros_like
""".split()
