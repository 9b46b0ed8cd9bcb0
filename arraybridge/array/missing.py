"""Methods of other arrays that Array lacks: their AttributeErrors name the replacement."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from types import FunctionType
from typing import Any


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


def _is_function(xp: Any, name: str) -> bool:
    return name in xp.__all__ and isinstance(getattr(xp, name), FunctionType)


def _advice(array: Any, name: str) -> str:
    """Return what to use instead, as the end of the message."""
    found = [_INSTEAD[name]] if name in _INSTEAD else []
    xp = getattr(type(array), "_namespace", None)
    if xp is None:
        return f": {(*found, 'what the standard has as functions is in ab.namespace(x)')[0]}"
    if _is_function(xp, name):
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
    **dict.fromkeys(
        ("permute", "transpose"),
        "the standard has permute_dims, in ab.namespace(x)",
    ),
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
