"""The options of an adapted function."""

from __future__ import annotations

from functools import partial
from inspect import Parameter, signature
from types import BuiltinFunctionType
from typing import Any

from ..dispatch.form import Form
from ..dispatch.library import Library
from ..dispatch.registry import UNKNOWN, library_named
from ..dlpack import Device
from .kinds import Kind

_PLACED = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.POSITIONAL_ONLY)


class Terms:
    """The options of an adapted function; see :func:`arraybridge.adapt`."""

    __slots__ = (
        "_find_out",
        "_out",
        "address",
        "asks",
        "callback",
        "copy",
        "differentiable",
        "function",
        "home",
        "library",
        "like",
        "memo",
        "options",
        "own",
        "quick",
        "result",
        "result_form",
        "sends",
        "shapes",
        "vmap_method",
    )

    def __init__(
        self,
        function: Any,
        library: Any = "numpy",
        device: Device | None = None,
        copy: bool | None = None,
        result: Any = "caller",
        alias_readonly: bool = False,
        form: Form | None = None,
        result_form: Form | None = None,
        result_like: str | int | None = None,
        differentiable: bool = False,
        callback: bool = False,
        result_shape_dtypes: Any = None,
        vmap_method: str | None = "sequential",
        own: tuple[str, str] | None = None,
    ) -> None:
        self.function = spelled(function)
        self.library = library
        self.result = result
        self.copy = copy
        self.sends = device is not None  # whether results may be sent to another device
        self.asks = (
            self.sends or copy is True or form is not None
        )  # for more than its own library's arrays
        self.options: dict[str, Any] = {} if device is None else {"device": device}
        if copy is not None:
            self.options["copy"] = copy
        if alias_readonly:
            self.options["alias_readonly"] = True
        if form is not None:
            self.options["form"] = form
        self.like = None if result_like is None else Argument(function, result_like)
        self.result_form = result_form
        self.quick = not (self.options or result != "caller" or self.like or result_form)
        self.own = own  # (module, name) of the class that the function belongs to
        self.home: Kind | None = None
        self.address: Any = None  # if arrays may be given other memory
        self.differentiable, self.callback = differentiable, callback or differentiable
        self.shapes, self.vmap_method = result_shape_dtypes, vmap_method
        self.memo: dict[str, Any] = {}  # what a library keeps of the function
        self._out: Any = UNKNOWN  # the argument `out`, None where there is none
        self._find_out = partial(_out_of, function)

    def find_home(self) -> Kind:
        """Return the kind of the function's own arrays; called late, as it may load the library."""
        library = library_named(self.library)
        self.home = Kind(library.name, False)
        if type(library).address is not Library.address:
            self.address = library.address
        return self.home

    def out_of(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return what a call has for ``out``, or None."""
        if self._out is UNKNOWN:
            self._out = self._find_out()
        return None if self._out is None else self._out.of(args, kwargs)

    def is_own(self, x: Any) -> bool:
        """Whether ``x`` is the object on which the function, a method, is called."""
        return any((cls.__module__, cls.__qualname__) == self.own for cls in type(x).__mro__)


class Argument:
    """An argument of a function, by its name or position.

    Parameters
    ----------
    function : callable
    name : str or int
    optional : bool, default False
        Whether it may be missing, and counts only where it has a default, as NumPy's ``out=None``:
        a function of ``out`` and ``target`` is of other arguments.

    Raises
    ------
    ValueError
        For a name or a position that the function does not have.
    """

    __slots__ = ("name", "position", "spelled")

    def __init__(self, function: Any, name: str | int, *, optional: bool = False) -> None:
        self.spelled = name
        self.name: str | None = None
        self.position: int | None = None
        try:
            parameters = list(signature(function).parameters.values())
        except (TypeError, ValueError):  # of some builtins nobody knows
            self.name, self.position = (None, name) if isinstance(name, int) else (name, None)
            return
        if isinstance(name, int):
            self.position = name
            placed = [p for p in parameters if p.kind in _PLACED]
            if 0 <= name < len(placed):
                self.name = placed[name].name
            elif name < 0 or all(p.kind is not p.VAR_POSITIONAL for p in parameters):
                raise ValueError(_no_argument(function, name, parameters))
            return
        for position, p in enumerate(parameters):
            if p.name == name and p.kind in (*_PLACED, p.KEYWORD_ONLY):
                if optional and p.default is p.empty:
                    return
                self.name = None if p.kind is p.POSITIONAL_ONLY else name
                self.position = None if p.kind is p.KEYWORD_ONLY else position
                return
        if any(p.kind is p.VAR_KEYWORD for p in parameters):
            self.name = name
        elif not optional:
            raise ValueError(_no_argument(function, name, parameters))

    def of(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return what a call has for it, or None."""
        if self.name is not None and self.name in kwargs:
            return kwargs[self.name]
        if self.position is not None and self.position < len(args):
            return args[self.position]
        return None


def _out_of(function: Any) -> Argument | None:
    """Return the argument ``out`` of a function, or None."""
    out = Argument(function, "out", optional=True)
    return None if out.name is None and out.position is None else out


def _no_argument(function: Any, name: object, parameters: list[Parameter]) -> str:
    known = ", ".join(p.name for p in parameters) or "none"
    return f"{spelled(function)} has no argument {name!r}; its arguments are {known}"


def spelled(function: Any) -> str:
    """Return the name of a function for messages."""
    if isinstance(function, BuiltinFunctionType):  # that of torch.sum has a hidden class in it
        return function.__name__
    return getattr(function, "__qualname__", None) or repr(function)
