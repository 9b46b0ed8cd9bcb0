"""What a library tells of its differentiation, as the caller's and as the function's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from ..named import NamedTuple

if TYPE_CHECKING:
    from .followed import Flat


class Shape(NamedTuple):
    """The shape of an array and the name of its data type, such as ``"float32"``."""

    shape: tuple[int, ...]
    dtype: str


class Outcome(NamedTuple):
    """What a `Flat` gives.

    Attributes
    ----------
    floats : sequence of array
        What can be differentiated.
    others : sequence of array
        Integers and booleans.
    rebuilt : callable
        Makes the function's result of arrays in place of these two.
    """

    floats: Sequence[Any]
    others: Sequence[Any]
    rebuilt: Callable[[Sequence[Any], Sequence[Any]], Any]


class Differentiation:
    """How a library differentiates; `arraybridge.dispatch.library.Library.differentiation` has it.

    Cotangents that cross are gradients in PyTorch's sense: of complex numbers, the conjugates of
    what JAX pulls back. This class itself is that of a library without gradients.

    Attributes
    ----------
    traces : bool
        Whether what is followed has no values yet, so that ``callback=True`` is for it as well.
    """

    traces = False

    # As the library of the caller:

    def follows(self, x: Any) -> bool:
        """Whether ``x`` is followed: its gradient, or its trace, would be lost in a conversion."""
        return False

    def cast(self, x: Any, dtype: str) -> Any:
        """Cast an array that is followed, as an operation of this library."""
        raise NotImplementedError

    def recorded(self, flat: Flat, arrays: list[Any]) -> Any:
        """Call ``flat`` as an operation of this library; return the function's result."""
        raise NotImplementedError

    # As the library of the function:

    def borrows(self, function: Callable[..., Any]) -> bool:
        """Whether `linearized` is done with the memory of its arguments when it returns.

        So are the gradients' cotangents, and nobody else has the memory of the results. Then both
        are views, although the caller may write to its arrays, or to the results, later on.
        """
        return False

    def is_float(self, x: Any) -> bool:
        """Whether an array, or a `Shape`, can be differentiated."""
        return False

    def silent(self) -> AbstractContextManager[Any]:
        """Return a context in which the library records nothing, of arrays that it may later."""
        return nullcontext()

    def linearized(
        self, flat: Flat, arrays: list[Any]
    ) -> tuple[Outcome, Callable[[Sequence[Any]], Sequence[Any]]]:
        """Call ``flat``, and return with its outcome the function of cotangents to gradients.

        A cotangent may be None: zero. There is a gradient for each of the arrays.
        """
        raise NotImplementedError

    def gradients(
        self, flat: Flat, primals: list[Any], cotangents: Sequence[Any], wanted: Sequence[bool]
    ) -> Sequence[Any]:
        """Return the gradients at the wanted ones of ``primals``; they can be differentiated."""
        raise NotImplementedError

    def shapes(self, flat: Flat, arguments: Sequence[Shape]) -> Outcome | None:
        """Tell the shapes of the outcome from those of the arguments, without any elements.

        None: this library cannot.
        """
        return None

    def vectorized(self, flat: Flat, axes: Sequence[int | None]) -> Callable[..., Outcome]:
        """Map ``flat`` over an axis of each of the arrays, to the first axis of the outcome's."""
        raise NotImplementedError

    def mapped(
        self, pull: Callable[[Sequence[Any]], Sequence[Any]], axes: Sequence[int | None]
    ) -> Callable[[Sequence[Any]], Sequence[Any]]:
        """Map what pulls cotangents back over an axis of each of them, to the first of gradients'.

        Those that are None, zero, are not mapped, and have None as their axis.
        """
        raise NotImplementedError


NO_GRADIENTS = Differentiation()
