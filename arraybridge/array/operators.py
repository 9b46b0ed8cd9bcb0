"""The operators of the standard, generated from one table for each library's class of Arrays.

Array API standard 2025.12, "Array object".
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from ..native import C
from .promotion import out_of_bounds
from .promotion import side as side_of

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
    def plain(self) -> Function:
        """The operator as a function, ``operator.add``."""
        found: Function = getattr(operator, f"__{self.name}__")
        return found

    @property
    def in_place(self) -> Function:
        """The in-place operator as a function, ``operator.iadd``."""
        found: Function = getattr(operator, f"__i{self.name}__")
        return found


# In the order of the slots in `native/operators.c`.
OPERATORS = (
    Operator("lt", "less", "compare"),
    Operator("le", "less_equal", "compare"),
    Operator("eq", "equal", "compare"),
    Operator("ne", "not_equal", "compare"),
    Operator("gt", "greater", "compare"),
    Operator("ge", "greater_equal", "compare"),
    Operator("pos", "positive", "unary"),
    Operator("neg", "negative", "unary"),
    Operator("abs", "abs", "unary"),
    Operator("invert", "bitwise_invert", "unary"),
    Operator("add", "add", "arithmetic"),
    Operator("sub", "subtract", "arithmetic"),
    Operator("mul", "multiply", "arithmetic"),
    Operator("truediv", "divide", "arithmetic"),
    Operator("floordiv", "floor_divide", "arithmetic"),
    Operator("mod", "remainder", "arithmetic"),
    Operator("matmul", "matmul", "arithmetic"),
    Operator("and", "bitwise_and", "arithmetic"),
    Operator("or", "bitwise_or", "arithmetic"),
    Operator("xor", "bitwise_xor", "arithmetic"),
    Operator("lshift", "bitwise_left_shift", "arithmetic"),
    Operator("rshift", "bitwise_right_shift", "arithmetic"),
    Operator("pow", "pow", "arithmetic"),
)


class Slots:
    """The base class of Arrays; the C extension's has operators for `in_c`."""

    __slots__ = ("_native",)
    _native: Any


if C is not None and not TYPE_CHECKING:
    Slots = C.Slots

# The scalars of the standard; instances of subclasses, such as numpy.float64, take the slow path.
# A tuple, as torch.compile fails on a set of types.
SCALARS = (int, float, bool, complex)

# The result of comparing elements with an integer out of the dtype's range: below it, above it.
COMPARED = {
    "equal": (False, False),
    "not_equal": (True, True),
    "less": (False, True),
    "less_equal": (False, True),
    "greater": (True, False),
    "greater_equal": (True, False),
}


def methods(cls: Any) -> dict[str, Callable[..., Any]]:
    """Make every operator's methods for the Arrays of one library."""
    table: dict[str, Callable[..., Any]] = {}
    for op in OPERATORS:
        plain = _plain(op, cls)
        if op.forms == "unary":
            table[f"__{op.name}__"] = _unary(plain, op, cls)
            continue
        binary = _binary if cls._promotes else _binary_of_one_dtype
        table[f"__{op.name}__"] = made = binary(plain, op, cls)
        if op.forms == "compare":
            continue
        if op.function not in cls._corrected and not cls._promotes:
            plain = op.plain  # takes a number as the first operand
        table[f"__r{op.name}__"] = _reflected(plain, op, cls, made)
        if not cls._mutable or op.function in cls._corrected or op.name == "matmul":
            table[f"__i{op.name}__"] = _assigning(op, made, rebinds=not cls._mutable)
        else:
            own = op.in_place if cls._in_place is None else cls._in_place(op.in_place)
            table[f"__i{op.name}__"] = _in_place(own, op, cls)
    for name, method in table.items():
        method.__name__ = name
        method.__qualname__ = f"{cls.__qualname__}.{name}"
    return table


def in_c(cls: Any) -> None:
    """Put slots in C before a class's operators and its ``__getitem__``.

    Only for NumPy: torch.compile can only trace Python, and the operators of other libraries are
    too slow to gain.
    """
    if C is None:
        return
    own = vars(cls)
    rows = [
        (_plain(op, cls), own[f"__{op.name}__"], own.get(f"__r{op.name}__")) for op in OPERATORS
    ]
    C.slots_of(cls, *zip(*rows, (None, own["__getitem__"], None), strict=True))
    for name, slot in vars(Slots).items():
        if callable(slot):
            setattr(cls, name, slot)


def _plain(op: Operator, cls: Any) -> Function:
    """Return the function of an operator on native arrays."""
    return cls._corrected.get(op.function) or cls._operators.get(op.function) or op.plain


# The hot path of every operation: code is repeated rather than shared, and cls() makes instances
# (`python -m benchmarks.wrapper`). torch.compile always knows self.__class__, but not always cls.


def _unary(plain: Function, op: Operator, cls: Any) -> Any:
    native_type, errors = cls._native_type, cls._errors

    def method(self: Any) -> Any:
        try:
            result = plain(self._native)
        except errors as error:
            return self._recovered(error, op.function, self._native)
        if result.__class__ is not native_type:
            result = self._normal(result)
        array = self.__class__()
        array._native = result
        return array

    return method


# Integers from 0 to cls._held fit every dtype; others are checked, as some libraries wrap them.


def _binary(plain: Function, op: Operator, cls: Any) -> Any:
    native_type, errors = cls._native_type, cls._errors
    compares, held = op.forms == "compare", cls._held

    def method(self: Any, other: Any) -> Any:
        if other.__class__ is cls:
            other = other._native
        else:
            if other.__class__ not in SCALARS:
                given, other = other, self._operand(other)
                if other is NotImplemented:
                    return self._incomparable(given) if compares else other
            if other.__class__ is int and not 0 <= other <= held:
                settled = self._settled(op.function, other)
                if settled is not None:
                    return settled
        try:
            result = plain(self._native, other)
        except errors as error:
            return self._recovered(error, op.function, self._native, other)
        if result.__class__ is not native_type:
            result = self._normal(result)
        array = cls()
        array._native = result
        return array

    return method


def _binary_of_one_dtype(plain: Function, op: Operator, cls: Any) -> Any:
    """Make a binary operator for a library whose own is only right for arrays of one dtype."""
    native_type, errors = cls._native_type, cls._errors
    mixed = getattr(cls._native_namespace, op.function)
    compares, held = op.forms == "compare", cls._held

    def method(self: Any, other: Any) -> Any:
        native = self._native
        function = plain
        if other.__class__ is cls:
            other = other._native
            if other.dtype is not native.dtype:
                function = mixed
        else:
            if other.__class__ not in SCALARS:
                given, other = other, self._operand(other)
                if other is NotImplemented:
                    return self._incomparable(given) if compares else other
                if getattr(other, "dtype", native.dtype) is not native.dtype:
                    function = mixed
            if other.__class__ is int and not 0 <= other <= held:
                settled = self._settled(op.function, other)
                if settled is not None:
                    return settled
        try:
            result = function(native, other)
        except errors as error:
            if function is mixed:  # nothing else to try
                raise
            return self._recovered(error, op.function, native, other)
        if result.__class__ is not native_type:
            result = self._normal(result)
        array = self.__class__()
        array._native = result
        return array

    return method


def _reflected(plain: Function, op: Operator, cls: Any, binary: Function) -> Any:
    native_type, errors, held = cls._native_type, cls._errors, cls._held

    def method(self: Any, other: Any) -> Any:
        if other.__class__ not in SCALARS:
            other = self._operand(other)
            if other is NotImplemented:
                return other
            if other.__class__ is native_type:
                return binary(cls._of(other), self)
        if other.__class__ is int and not 0 <= other <= held:
            self._settled(op.function, other)
        try:
            result = plain(other, self._native)
        except errors as error:
            return self._recovered(error, op.function, other, self._native)
        if result.__class__ is not native_type:
            result = self._normal(result)
        array = self.__class__()
        array._native = result
        return array

    return method


def compared(function: str, value: int, x: Any, namespace: Any) -> Any:
    """Compare a native array with an integer out of its dtype's range.

    None if the dtype holds the integer. OverflowError if `function`, a name of the standard, is
    not a comparison.
    """
    side = side_of(value, x.dtype)
    if not side or function == "divide":  # its results are not integers
        return None
    answers = COMPARED.get(function)
    if answers is None:
        raise out_of_bounds(value, x.dtype)
    return namespace.full_like(x, answers[side > 0], dtype=namespace.bool)


def _in_place(in_place: Function, op: Operator, cls: Any) -> Any:
    errors, narrows = cls._errors, cls._narrows

    def method(self: Any, other: Any) -> Any:
        native = self._native
        if other.__class__ is cls:
            other = other._native
            if other.dtype is not native.dtype:  # some libraries would narrow it
                _check_dtype(op, native.dtype, cls._native_namespace.result_type(native, other))
        else:
            if other.__class__ not in SCALARS:
                other = self._operand(other)
                if other is NotImplemented:
                    return other
                if hasattr(other, "dtype"):
                    _check_dtype(op, native.dtype, cls._native_namespace.result_type(native, other))
            if other.__class__ is int and (
                not 0 <= other <= 127 or (narrows and native.dtype.num > 255)  # not NumPy's own
            ):
                self._settled(op.function, other)
        try:
            self._native = in_place(native, other)
        except errors as error:
            result = self._recovered(error, op.function, self._native, other)
            _check_fits(op, self, result)
            self[...] = result
        return self

    return method


def _assigning(op: Operator, binary: Function, *, rebinds: bool) -> Any:
    """Make an in-place operator from the plain one, if the library's own is wrong or missing.

    If native arrays are immutable (`rebinds`), the Array refers to the result afterwards.
    """

    def method(self: Any, other: Any) -> Any:
        result = binary(self, other)
        if result is NotImplemented:
            return result
        _check_fits(op, self, result)
        if rebinds:
            self._native = result._native
        else:
            self[...] = result
        return self

    return method


def _check_fits(op: Operator, left: Any, result: Any) -> None:
    """Check that an in-place operator keeps the shape and the dtype of its left operand."""
    if result.shape != left.shape:
        raise ValueError(
            f"in-place {op.function} would change the shape {left.shape} to {result.shape}: "
            "the right operand must broadcast to the left one"
        )
    _check_dtype(op, left.dtype, result.dtype)


def _check_dtype(op: Operator, before: Any, after: Any) -> None:
    if after != before:
        raise TypeError(
            f"in-place {op.function} would change the dtype {before} to {after}: "
            "write x = x + y, or cast the right operand to the dtype of the left one"
        )


class ArrayObject(Slots):
    """Declares, for type checkers, what `methods`, `NativeArray` and `fallback` define."""

    __slots__ = ()

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
        def conj(self) -> Self: ...
        @property
        def T(self) -> Self: ...
        @property
        def mT(self) -> Self: ...
        @property
        def real(self) -> Self: ...
        @property
        def imag(self) -> Self: ...
