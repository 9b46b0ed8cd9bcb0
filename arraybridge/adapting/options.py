"""The options of an adapted function."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from inspect import Parameter, signature
from types import BuiltinFunctionType
from typing import Any

from ..array.array_types import ArrayType
from ..conversion import converted
from ..core.library import Library
from ..core.registry import library_named
from ..core.request import Cast
from ..dlpack import Device

_POSITIONAL = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.POSITIONAL_ONLY)


class Options:
    """The options of an adapted function; see :func:`arraybridge.adapt`.

    `function` is its name for messages; `library` the name of the library that it is written for;
    `own_type` the type of that library's arrays; `method_of` the module and name of the class that
    it is defined in. `convert` converts an argument with the options `conversion` and `cast`; with
    `converts_own` also the arguments of the function's library. `moves_results`: results may be
    sent to another device. `memo`: what a library stores about the function.
    """

    def __init__(
        self,
        function: Any,
        library: str = "numpy",
        device: Device | None = None,
        copy: bool | None = None,
        result: Any = "caller",
        alias_readonly: bool = False,
        cast: Cast | None = None,
        result_cast: Cast | None = None,
        result_like: str | int | None = None,
        differentiable: bool = False,
        callback: bool = False,
        result_shape_dtypes: Any = None,
        vmap_method: str | None = "sequential",
        method_of: tuple[str, str] | None = None,
    ) -> None:
        self.function = name_of(function)
        self.library = library
        self.copy = copy
        self.result = result
        self.result_cast = result_cast
        self.result_like = None if result_like is None else Argument(function, result_like)
        self.differentiable, self.callback = differentiable, callback or differentiable
        self.result_shape_dtypes, self.vmap_method = result_shape_dtypes, vmap_method
        self.method_of = method_of
        self.moves_results = device is not None
        self.converts_own = self.moves_results or copy is True or cast is not None
        given = {"device": device, "copy": copy, "alias_readonly": alias_readonly or None}
        self.conversion: dict[str, Any] = {k: v for k, v in given.items() if v is not None}
        self.cast = cast
        self.convert: Callable[[Any], Any] = partial(
            converted, to=library, cast=cast, **self.conversion
        )
        self.own_type = ArrayType(library, False)
        self.memo: dict[str, Any] = {}
        self._function = function

    @cached_property
    def address(self) -> Callable[[Any], int] | None:
        """The function that returns an array's address, if an array's memory can be replaced."""
        library = library_named(self.library)
        return None if type(library).address is Library.address else library.address

    @cached_property
    def out(self) -> Argument:
        """The argument ``out``, if the function has one."""
        return Argument(self._function, "out", optional=True)

    def split_self(self, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Split positional arguments into ``self`` of a method, if it is one, and the rest."""
        if self.method_of is not None and args:
            classes = ((cls.__module__, cls.__qualname__) for cls in type(args[0]).__mro__)
            if self.method_of in classes:
                return args[:1], args[1:]
        return (), args

    def add_note(self, error: BaseException, what: str = "an argument") -> None:
        """Add the call to the error of a conversion."""
        error.add_note(f"Raised for {what} of {self.function}, adapted by arraybridge.")


class Argument:
    """An argument of a function, by name or position; ValueError if the function has none.

    An optional one may be missing, and counts only if it has a default, as NumPy's ``out=None``: an
    ``out`` without one has another meaning.
    """

    __slots__ = ("given", "name", "position")

    def __init__(self, function: Any, name: str | int, *, optional: bool = False) -> None:
        self.given = name
        self.name: str | None = None if isinstance(name, int) else name
        self.position: int | None = name if isinstance(name, int) else None
        try:
            parameters = list(signature(function).parameters.values())
        except (TypeError, ValueError):  # some builtins have no known signature
            return
        for position, p in enumerate(parameters):
            at = position if p.kind in _POSITIONAL else None
            if name in (p.name, at) and p.kind in (*_POSITIONAL, p.KEYWORD_ONLY):
                if optional and p.default is p.empty:
                    self.name = None
                else:
                    self.name = None if p.kind is p.POSITIONAL_ONLY else p.name
                    self.position = at
                return
        rest = Parameter.VAR_POSITIONAL if isinstance(name, int) else Parameter.VAR_KEYWORD
        if (isinstance(name, int) and name < 0) or all(p.kind is not rest for p in parameters):
            if not optional:
                known = ", ".join(p.name for p in parameters) or "none"
                raise ValueError(
                    f"{name_of(function)} has no argument {name!r}; its arguments are {known}"
                )
            self.name = None

    def of(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the value that a call passes for it, or None."""
        if self.name is not None and self.name in kwargs:
            return kwargs[self.name]
        if self.position is not None and self.position < len(args):
            return args[self.position]
        return None


def name_of(function: Any) -> str:
    """Return the name of a function for messages."""
    if isinstance(function, BuiltinFunctionType):  # torch.sum's __qualname__ has a hidden class
        return function.__name__
    return getattr(function, "__qualname__", None) or repr(function)
