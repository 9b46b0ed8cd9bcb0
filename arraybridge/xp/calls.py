"""One wrapper per function of a library: checks before a call, handlers after an error.

A call that the library accepts costs one more frame and a ``try``; an error leads to the handlers
of `fallback`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from .fallback import Handler

Arguments: TypeAlias = tuple[tuple[Any, ...], dict[str, Any]]
Check: TypeAlias = Callable[..., Arguments | None]

# From operands of two types: both in a form that the library takes, and the result if it is known.
Operands: TypeAlias = Callable[[Any, Any], tuple[Any, Any, Any]]


class Function(NamedTuple):
    """A function of the standard in one library, with its checks and handlers."""

    path: str  # its name in the standard, such as ``"linalg.qr"``
    own: Callable[..., Any]  # the library's function, or its correction
    parameters: tuple[str, ...]  # the names of its parameters in the standard
    handlers: tuple[Handler, ...] = ()  # tried in turn when it raises
    # Called first with the arguments: raises, or returns the arguments for ``own`` (None: the
    # same). For arguments that the library accepts with a wrong result.
    before: Check | None = None
    # The position of the data type if ``before`` is only called when one is given; -1: always.
    dtype_at: int = -1
    # Called first if the two operands have different types: see `numbers.Wide.operands`.
    operands: Operands | None = None
    namespace: Any = None  # the native namespace that it belongs to
    # A faster ``own`` for a single array of the library's own type without other arguments.
    alone: Callable[[Any], Any] | None = None

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """The exceptions that the handlers accept."""
        return tuple(dict.fromkeys(kind for handler in self.handlers for kind in handler.errors))

    def recovery(self) -> Callable[[Exception, tuple[Any, ...], dict[str, Any]], Any]:
        """Make the function that computes a call that raised in another way, or raises an error.

        If an attempt fails, its error remains, as it is about arguments in a form that the library
        takes, with a note on the error of the original call. A function, which torch.compile
        supports better than a method.
        """

        def recover(error: Exception, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            first = error
            for handler in self.handlers:
                if isinstance(error, handler.errors):
                    try:
                        result = handler.retry(self, error, args, kwargs)
                    except Exception as another:
                        if handler.attempt:
                            first_error = f"{self.path} raised {type(error).__name__}: {error}"
                            another.add_note(f"tried with {handler.attempt}: {first_error}")
                        error = another
                    else:
                        if result is not NotImplemented:
                            return result
            if error is first and error.__traceback__ is not None:
                raise error.with_traceback(error.__traceback__.tb_next)
            raise error from None

        return recover


def recovering(function: Function, own: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of the native namespace, with the metadata of the library's ``own``.

    That is ``own`` itself if it has no checks or handlers.
    """
    if not (function.handlers or function.before or function.operands):
        return own
    made = remembering(function) if function.path == "isdtype" else _wrapper(function)
    functools.update_wrapper(made, own)
    # Other attributes of the library's function: `jax.numpy.add` is a ufunc with methods.
    vars(made).update({name: getattr(own, name) for name in dir(own) if not name.startswith("_")})
    return made


def _wrapper(function: Function) -> Callable[..., Any]:
    own, errors, recover = function.own, function.errors, function.recovery()
    before, operands, dtype_at = function.before, function.operands, function.dtype_at

    if operands is not None:

        def of_two(x1: Any, x2: Any, /, *args: Any, **kwargs: Any) -> Any:
            if x1.__class__ is not x2.__class__:  # not two arrays
                x1, x2, settled = operands(x1, x2)
                if settled is not None:
                    return settled
            try:
                if args or kwargs:
                    return own(x1, x2, *args, **kwargs)
                return own(x1, x2)
            except errors as error:
                return recover(error, (x1, x2, *args), kwargs)

        return of_two

    # A single array is the most common call, and is passed on without packing it.
    alone = function.alone or own
    if before is None:

        def plain(x: Any = _NONE, /, *args: Any, **kwargs: Any) -> Any:
            try:
                if args or kwargs:
                    return own(**kwargs) if x is _NONE else own(x, *args, **kwargs)
                return own() if x is _NONE else alone(x)
            except errors as error:
                return recover(error, args if x is _NONE else (x, *args), kwargs)

        return plain

    if dtype_at < 0:

        def checked(*args: Any, **kwargs: Any) -> Any:
            args, kwargs = before(*args, **kwargs) or (args, kwargs)
            try:
                return own(*args, **kwargs)
            except errors as error:
                return recover(error, args, kwargs)

        return checked

    def typed(x: Any = _NONE, /, *args: Any, **kwargs: Any) -> Any:
        if args or kwargs or x is _NONE:
            if x is not _NONE:
                args = (x, *args)
            if "dtype" in kwargs or len(args) > dtype_at:
                args, kwargs = before(*args, **kwargs) or (args, kwargs)
            try:
                return own(*args, **kwargs)
            except errors as error:
                return recover(error, args, kwargs)
        try:
            return alone(x)
        except errors as error:
            return recover(error, (x,), kwargs)

    return typed


def remembering(function: Function) -> Callable[..., Any]:
    """Cache the results of a function of only data types and names."""
    call = _wrapper(function)
    known: dict[Any, Any] = {}

    def asked(*given: Any, **options: Any) -> Any:
        if not options:
            try:
                return known[given]
            except (KeyError, TypeError):  # TypeError: an unhashable array, for which it raises
                pass
        result = call(*given, **options)
        if not options:
            if len(known) >= _MOST:
                known.clear()
            known[given] = result
        return result

    return asked


_MOST = 1024  # cached results
_NONE: Any = object()  # stands for a missing first positional argument
