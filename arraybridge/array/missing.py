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


def refer_to_functions(cls: Any) -> None:
    """Make missing methods of a class refer to the functions of its namespace."""
    refer(cls, (name for name in cls._namespace.__all__ if _is_function(cls._namespace, name)))


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
