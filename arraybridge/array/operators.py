"""The operators of the standard, generated from one table for each library's class of Arrays.

Array API standard 2025.12, "Array object".
"""

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from .scalars import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self, TypeAlias

    Operand: TypeAlias = "ArrayObject | complex"

Function = Callable[..., Any]


class Operator(NamedTuple):
    """One operator of the language."""

    # The method's name without underscores: ``"add"`` for ``__add__``, ``__radd__``, ``__iadd__``.
    name: str
    function: str  # the equivalent function of the standard
    # "unary"; "compare" (reflected by its mirror image); "arithmetic" (all three forms).
    forms: str

    @property
    def methods(self) -> tuple[str, ...]:
        """The names of its methods."""
        forms = ("", "r", "i") if self.forms == "arithmetic" else ("",)
        return tuple(f"__{form}{self.name}__" for form in forms)

    @property
    def reflected(self) -> str:
        """The right operand's method, for a left operand that leaves the operation to it."""
        if self.forms == "arithmetic":
            return f"__r{self.name}__"
        return f"__{MIRROR.get(self.name, self.name)}__"

    @property
    def plain(self) -> Function:
        """The operator as a function, ``operator.add``."""
        found: Function = getattr(operator, f"__{self.name}__")
        return found


MIRROR = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_TABLE = {  # methods and functions by forms
    "compare": "lt=less le=less_equal eq=equal ne=not_equal gt=greater ge=greater_equal",
    "unary": "pos=positive neg=negative abs=abs invert=bitwise_invert",
    "arithmetic": "add=add sub=subtract mul=multiply truediv=divide floordiv=floor_divide "
    "mod=remainder matmul=matmul and=bitwise_and or=bitwise_or xor=bitwise_xor "
    "lshift=bitwise_left_shift rshift=bitwise_right_shift pow=pow",
}
OPERATORS = tuple(
    Operator(name, function, forms)
    for forms, pairs in _TABLE.items()
    for name, _, function in (pair.partition("=") for pair in pairs.split())
)


def methods(cls: Any) -> dict[str, Function]:
    """Make every operator's methods for the Arrays of one library."""
    table: dict[str, Function] = {}
    for op in OPERATORS:
        function = cls._operators.get(op.function) or op.plain  # the library's own if it is right
        table[f"__{op.name}__"] = method = _method(function, cls, unary=op.forms == "unary")
        if op.forms == "arithmetic":
            table[f"__r{op.name}__"] = _method(lambda x, y, f=function: f(y, x), cls)
            table[f"__i{op.name}__"] = _in_place(method, op)
    for name, method in table.items():
        method.__name__ = name
        method.__qualname__ = f"{cls.__qualname__}.{name}"
    return table


def _method(function: Function, cls: Any, unary: bool = False) -> Function:
    """Make a method of an operator, from its function on native arrays.

    The hot path of every operation (`python -m benchmarks.wrapper`). ``self.__class__()`` makes the
    instance, as torch.compile does not always know `cls`.
    """
    native_type = cls._native_type

    def method(self: Any, other: Any = None) -> Any:
        if unary:
            result = function(self._native)
        else:
            if other.__class__ is cls:
                other = other._native
            elif other.__class__ not in KINDS:
                other = self._operand(other)
                if other is NotImplemented:
                    return other
            result = function(self._native, other)
        if result.__class__ is not native_type:
            result = self._normal(result)
        array = self.__class__()
        array._native = result
        return array

    return method


def _in_place(method: Function, op: Operator) -> Function:
    """Make an in-place operator from the plain one.

    The result is computed apart: an operation that fails, or whose operands overlap, never leaves
    half of it in the array. An Array of a library whose arrays never change refers to the result.
    """

    def in_place(self: Any, other: Any) -> Any:
        result = method(self, other)
        if result is NotImplemented:
            return result
        if result.shape != self.shape:
            raise ValueError(
                f"in-place {op.function} would change the shape {self.shape} to {result.shape}"
            )
        if result.dtype != self.dtype:
            raise TypeError(
                f"in-place {op.function} would change the dtype {self.dtype} to {result.dtype}: "
                "write x = x + y, or cast the right operand to the dtype of the left one"
            )
        if self._mutable:
            self[...] = result
        else:
            self._native = result._native
        return self

    return in_place


class ArrayObject:
    """Declares, for type checkers, what `methods`, `LibraryArray` and `device_namespace` define."""

    __slots__ = ("_native",)
    _native: Any

    if TYPE_CHECKING:

        def _unary(self) -> Self: ...
        def _binary(self, other: Operand, /) -> Self: ...

        __pos__ = __neg__ = __abs__ = __invert__ = _unary

        def __eq__(self, other: Operand, /) -> Self: ...  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        def __ne__(self, other: Operand, /) -> Self: ...  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]

        __lt__ = __le__ = __gt__ = __ge__ = _binary
        __add__ = __radd__ = __iadd__ = _binary
        __sub__ = __rsub__ = __isub__ = _binary
        __mul__ = __rmul__ = __imul__ = _binary
        __truediv__ = __rtruediv__ = __itruediv__ = _binary
        __floordiv__ = __rfloordiv__ = __ifloordiv__ = _binary
        __mod__ = __rmod__ = __imod__ = _binary
        __pow__ = __rpow__ = __ipow__ = _binary
        __matmul__ = __rmatmul__ = __imatmul__ = _binary
        __and__ = __rand__ = __iand__ = _binary
        __or__ = __ror__ = __ior__ = _binary
        __xor__ = __rxor__ = __ixor__ = _binary
        __lshift__ = __rlshift__ = __ilshift__ = _binary
        __rshift__ = __rrshift__ = __irshift__ = _binary

        def __bool__(self) -> bool: ...
        def __int__(self) -> int: ...
        def __float__(self) -> float: ...
        def __complex__(self) -> complex: ...
        def __index__(self) -> int: ...
        def __len__(self) -> int: ...
        def __iter__(self) -> Iterator[Self]: ...
        def __contains__(self, value: Operand, /) -> bool: ...
        def __getitem__(self, key: Any, /) -> Self: ...
        def __setitem__(self, key: Any, value: Operand, /) -> None: ...
        def __copy__(self) -> Self: ...
        def __deepcopy__(self, memo: dict[int, Any], /) -> Self: ...
        def __array_namespace__(self, *, api_version: str | None = None) -> Any: ...
        def to_device(self, device: Any, /, *, stream: Any = None) -> Self: ...
        @property
        def T(self) -> Self: ...
        @property
        def mT(self) -> Self: ...
