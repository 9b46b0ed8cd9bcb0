"""What an Array does not support, and the errors that name the replacement.

Methods of other arrays that Array lacks are descriptors whose AttributeError says what to call.

NumPy's functions and ufuncs (NEP 13, NEP 18) on an Array: pure queries work, others are refused
with advice. Otherwise they would silently return NumPy's arrays (``numpy.mean``) or fail
(``numpy.sum``), depending on how each is written. The error is for the author of the call; inside
packages that convert any array to NumPy themselves, often by such a call, it would help nobody.
There the functions get the result of ``numpy.asarray``. The operators of NumPy's scalars and arrays
end in ufuncs as well: they are left to the Array.
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

# What is asked of an array, or of where it lies, and makes no other.
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

# Packages that take arrays of any library, and NumPy's own testing module.
CONVERTING = {"matplotlib", "numpy", "pandas", "scipy", "sklearn"}

# Packages that keep NumPy's arrays alone, and do not ask for them: what to give them.
_KEEPING = {"zarr": "zarr stores NumPy's arrays: xarray's objects give theirs by x.as_numpy()"}

_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}

# The ufunc that an operator of NumPy's ends in -> the method of its right operand.
_REFLECTED = {
    getattr(numpy, op.function): f"__{_MIRRORED.get(op.name, f'r{op.name}')}__"
    for op in OPERATORS
    if op.forms != "unary"
}
# What the standard has under another name, with other arguments.
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
    """Whether the call comes from one of those packages."""
    return _caller(3) in CONVERTING


def _caller(frames: int) -> str:
    """Return the package of the function so many frames above."""
    name: str = sys._getframe(frames).f_globals.get("__name__", "")
    return name.partition(".")[0]


def _taken(x: Any) -> Any:
    return numpy.asarray(x) if hasattr(x, "__arraybridge__") else x


def _refusal(x: Any, function: Any, name: str) -> TypeError:
    remedies = []
    if own := _in_the_standard().get(function):
        remedies.append(f"the array's own is arraybridge.namespace(x).{own}")
    elif near := _NEAREST.get(name.removeprefix("numpy.")):
        remedies.append(f"the nearest in the array's own namespace is {near}")
    host = getattr(x.device, "host", None)  # of a JAX tracer it is None
    if host:
        remedies.append("NumPy's takes numpy.asarray(x)")
    elif host is False:
        remedies.append("NumPy's takes a copy on the CPU, x.to('numpy', device='cpu')")
    if keeping := _KEEPING.get(_caller(3)):
        remedies.append(keeping)
    return TypeError("; ".join([f"{name} does not take an arraybridge Array", *remedies]))


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

    A ``__getattr__`` would do this for every name, but slow down each look-up of ``x._native``.
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
    """Make a class of Arrays name replacements for the methods that it lacks."""
    for name in names:
        if not hasattr(cls, name):
            setattr(cls, name, Missing(name))


def _advice(array: Any, name: str) -> str:
    """Return what to use instead, as the end of the message."""
    found = [_INSTEAD[name]] if name in _INSTEAD else []
    xp = getattr(type(array), "_namespace", None)
    if xp is None:
        return f": {(*found, 'what the standard has as functions is in ab.namespace(x)')[0]}"
    if name in xp.__all__ and isinstance(getattr(xp, name), FunctionType):
        call = _call(getattr(xp, name))
        found.append(f"the standard has it as a function, ab.namespace(x).{name}{call}")
    if hasattr(type(array._native), name):  # of an instance, some properties warn or raise
        found.append(f"the library's own is x.native.{name}")
    if not found:
        return f", and neither do its namespace and {array.library}"
    return f": {'; '.join(found)}"


def _call(function: Any) -> str:
    """Return how to call a function on ``x``, with its required arguments: ``"(x, shape)"``."""
    others = list(inspect.signature(function).parameters.values())[1:]
    needed = [p.name for p in others if p.default is p.empty and p.kind is not p.VAR_POSITIONAL]
    return f"({', '.join(['x', *needed])})"


# Methods without a function of the same name in the standard.
_INSTEAD = {
    "numpy": "x.to('numpy') is NumPy's array",
    "tolist": "x.to('numpy').tolist() gives Python's numbers",
    "item": "x.to('numpy').item() gives Python's number",
    "cpu": "x.to(device='cpu') is on the CPU",
    "cuda": "x.to(device='cuda') is on the GPU",
    "clone": "x.to(copy=True) is a copy",
    "copy": "x.to(copy=True) is a copy",
    "contiguous": "arraybridge.contiguous(x) is contiguous",
    "is_contiguous": "x.info.c_contiguous tells",
    "dim": "x.ndim tells",
    "numel": "x.size tells",
    "data_ptr": "x.info.pointer tells",
    "stride": "x.strides tells, in elements",
    **dict.fromkeys(("flatten", "ravel"), "ab.namespace(x).reshape(x, (-1,)) is flat"),
    "cumsum": "the standard has cumulative_sum, in ab.namespace(x)",
    "cumprod": "the standard has cumulative_prod, in ab.namespace(x)",
    "dot": "the standard has vecdot and matmul, in ab.namespace(x)",
    **dict.fromkeys(("permute", "transpose"), "the standard has permute_dims, in ab.namespace(x)"),
    "unsqueeze": "the standard has expand_dims, in ab.namespace(x)",
}

# The functions of the standard, by name: to read them from its templates takes milliseconds.
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
