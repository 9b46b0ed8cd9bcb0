"""Calls that another library follows: its gradients cross to the function's library and back.

PyTorch follows tensors that require gradients, JAX its tracers. Such a call is reduced to a `Flat`,
a function of the followed arrays alone; the caller's library makes an operation of its own of it,
and asks the function's library for the gradient. Either half knows nothing of the other: both are a
`Differentiation`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..containers import leaves, mapped
from ..dispatch.casting import allowed, data_type_named
from ..dispatch.form import Form
from ..dispatch.records import ConversionError
from ..dispatch.registry import library_named
from ..dlpack import DataType, Device
from ..exchange import convert, converted, imported, inspect
from .differentiation import NO_GRADIENTS, Differentiation, Outcome, Shape
from .kinds import Kind, arrays_in, is_array, kind_of, place_of, record_of, unwrapped
from .terms import Terms

_PLAIN = (bool, int, float, complex)
_NUMBERS = (*_PLAIN, np.generic)


class Slot:
    """The place of a followed array in the arguments of a call."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index


class Flat:
    """A function of the followed arrays of a call, as arrays of the function's library.

    Parameters
    ----------
    terms : Terms
    differentiation : Differentiation
        Of the function's library.
    place : Device or None
        Where the caller's arrays lie, if they are sent to another device.
    run : callable, optional
        The function of a list of arrays, which gives an Outcome; by default what was `call`-ed.
    """

    def __init__(
        self,
        terms: Terms,
        differentiation: Differentiation,
        place: Device | None,
        run: Callable[[Sequence[Any]], Outcome] | None = None,
    ) -> None:
        self.terms, self.differentiation, self.place = terms, differentiation, place
        self.run = run
        self.shapes: Outcome | None = None  # of the result, where the caller gave them
        self.call: tuple[Any, Any, Any] | None = None  # the function, its arguments with slots
        self.borrows = False  # see `Differentiation.borrows`
        self.constants: list[Any] = []  # the caller's, as views: they are not to be written either

    def __call__(self, arrays: Sequence[Any]) -> Outcome:
        return _called(self, arrays) if self.run is None else self.run(arrays)

    def is_float(self, x: Any) -> bool:
        """Whether a gradient may be asked with respect to an array, or a `Shape`."""
        return self.terms.differentiable and self.differentiation.is_float(x)

    def into(self, x: Any) -> Any:
        """Convert an array that is not followed any more for the function."""
        if not self.borrows:
            return self.constant(x, None)
        try:
            return imported(x, self.terms.library)
        except BufferError as error:
            error.add_note(
                f"That was an argument of {self.terms.function}, adapted by arraybridge."
            )
            raise

    def constant(self, x: Any, form: Form | None) -> Any:
        """Convert an array that nobody follows for the function, as `adapt` has it."""
        options = {key: value for key, value in self.terms.options.items() if key != "form"}
        try:
            return converted(x, self.terms.library, form, **options)
        except BufferError as error:
            error.add_note(
                f"That was an argument of {self.terms.function}, adapted by arraybridge."
            )
            raise

    @property
    def cast(self) -> Callable[[Any], Any]:
        """What gives an array of the outcome the data type that ``result_dtype=`` asks for."""
        form, own = self.terms.result_form, self.differentiation
        if own is NO_GRADIENTS:
            return partial(converted, to=self.terms.library, form=form)
        return partial(cast, form, own, self.terms.function, "result_dtype")

    def back(self, x: Any, library: str) -> Any:
        """Convert an array of the outcome, or a gradient, to the caller's library and device."""
        try:
            if self.borrows:
                return convert(x, library, alias_readonly=True)
            copy = False if self.terms.copy is False else None
            return convert(x, library, device=self.place, copy=copy)
        except BufferError as error:
            raise of_result(self.terms, error, x) from None

    def derived(self, run: Callable[[Sequence[Any]], Outcome]) -> Flat:
        """Return another function of the same call."""
        return Flat(self.terms, self.differentiation, self.place, run)

    def gradient(self, wanted: Sequence[bool], given: Sequence[bool]) -> Flat:
        """Return the function of the arrays and cotangents that gives the gradients.

        Parameters
        ----------
        wanted : sequence of bool
            At which of the arrays.
        given : sequence of bool
            Which of the outcome's floats have a cotangent.
        """
        count = len(wanted)

        def run(arrays: Sequence[Any]) -> Outcome:
            rest = iter(arrays[count:])
            cotangents = [next(rest) if there else None for there in given]
            primals = list(arrays[:count])
            found = self.differentiation.gradients(self, primals, cotangents, wanted)
            return Outcome(found, [], lambda floats, others: list(floats))

        return self.derived(run)

    def vectorized(self, axes: Sequence[int | None]) -> Flat:
        """Return the function mapped over an axis of the arrays that have one there."""
        return self.derived(self.differentiation.vectorized(self, axes))


def follower(terms: Terms, args: Any, kwargs: Any) -> tuple[Differentiation, list[Any]] | None:
    """Find the library that follows arrays among the arguments, and those arrays.

    Returns
    -------
    tuple or None
        None where the function's own library follows them, or nobody.
    """
    home = (terms.home or terms.find_home()).library
    found: dict[int, Any] = {}
    first: Any = None
    for x in leaves((args, kwargs), is_array):
        record = record_of(type(x))
        if record.is_array is False:
            continue
        native = unwrapped(x)
        library = record.library if native is x else record_of(type(native)).library
        if library is None or library.name == home:
            continue
        differentiation = library.differentiation()
        if differentiation is None or not differentiation.follows(native):
            continue
        if not (terms.differentiable or differentiation.traces):
            continue
        if first is not None and differentiation is not first:
            raise ConversionError(
                f"{terms.function} was called with arrays that two libraries follow: no gradient "
                "crosses more than one border. Detach those of one library"
            )
        first = differentiation
        found[id(x)] = x
    return None if first is None else (first, [*found.values()])


def followed_call(
    terms: Terms, function: Callable[..., Any], differentiation: Differentiation,
    followed: list[Any], args: Any, kwargs: Any,
) -> Any:  # fmt: skip
    """Call the function as an operation of the caller's library; see `follower`."""
    home = library_named(terms.library)
    own = home.differentiation() or NO_GRADIENTS
    form = terms.options.get("form")
    change = partial(cast, form, differentiation, terms.function, "dtype")
    natives = [change(unwrapped(x)) for x in followed]
    goal = _goal(terms, kind_of(followed[0], natives[0]), args, kwargs)
    place = place_of(natives[0]) if terms.sends else None
    flat = Flat(terms, own, place)
    flat.borrows = not terms.options and own.borrows(function)
    method = terms.own is not None and args and terms.is_own(args[0])
    slots = {id(x): Slot(index) for index, x in enumerate(followed)}

    def put(x: Any) -> Any:
        if not is_array(x):
            return x
        if id(x) in slots:
            return slots[id(x)]
        native = unwrapped(x)
        if record_of(type(native)).kind == terms.home and not terms.asks:
            return native
        if flat.borrows and kind_of(x, native).library == goal.library:
            flat.constants.append(native)
            return flat.into(native)
        return flat.constant(x, form)

    with own.silent():
        slotted = mapped(put, args[1:] if method else args, is_array)
        named = mapped(put, kwargs, is_array)
    flat.call = function, (args[0], *slotted) if method else slotted, named
    if terms.shapes is not None:
        flat.shapes = _told(flat, natives)
    result = differentiation.recorded(flat, natives)
    return mapped(lambda x: _wrapped(goal, x), result, is_array) if goal.wrapped else result


def _goal(terms: Terms, followed: Kind, args: Any, kwargs: Any) -> Kind:
    """Return the kind of the results, which are followed as well, or raise the error."""
    if arrays_in(terms.out_of(args, kwargs)):
        raise ConversionError(
            f"{terms.function} cannot write to out in a call that {followed.library} follows. "
            "Leave out= away, and take what is returned"
        )
    if terms.like is None:
        return followed
    for x in arrays_in(terms.like.of(args, kwargs)):
        goal = kind_of(x, unwrapped(x))
        if goal.library == followed.library:
            return goal
        break
    raise ConversionError(
        f"{terms.function} was adapted with result_like={terms.like.spelled!r}, and that argument "
        f"is no array of {followed.library}, which follows this call and its results"
    )


def cast(
    form: Form | None, differentiation: Differentiation, function: str, keyword: str, x: Any
) -> Any:
    """Give an array that is followed the data type that a keyword of `adapt` asks for."""
    if form is None:
        return x
    given = data_type_named(x.dtype)
    wanted = form.wanted(given)
    if wanted == given:
        return x
    if not allowed(given, wanted, form.casting):
        raise ConversionError(
            f"{function} is adapted with {keyword}= {wanted.name}, and casting={form.casting!r} "
            f"does not allow that from {given.name}"
        )
    try:
        return differentiation.cast(x, wanted.name)
    except ConversionError as error:
        raise ConversionError(_as_asked(str(error), keyword)) from None


def dtype_of(x: Any) -> DataType:
    """Return the data type of an array, which may have no memory, as a tracer."""
    try:
        return inspect(x).dtype
    except (TypeError, BufferError):
        return data_type_named(x.dtype)


def _as_asked(message: str, keyword: str) -> str:
    """Name the keyword of `adapt` in a message of `convert`, whose dtype= it is."""
    return re.sub(r"\bdtype=", f"{keyword}=", message)


_NARROWER = {
    "float64": "float32", "int64": "int32", "uint64": "uint32", "complex128": "complex64"
}  # fmt: skip


def of_result(terms: Terms, error: BufferError, x: Any) -> BufferError:
    """Return the error for an array of a result: as of `convert`, whose dtype= is another here."""
    advised = "dtype=" in str(error)
    if isinstance(error, ConversionError):
        error = ConversionError(_as_asked(str(error), "result_dtype"), error.route)
    error.add_note(f"That was a result of {terms.function}, adapted by arraybridge.")
    if advised and terms.result_form is None:
        given = dtype_of(x).name
        narrower = _NARROWER.get(given)
        asked = "" if narrower is None else f'{{"{given}": "{narrower}"}}'
        error.add_note(
            f"Pass result_dtype={asked} to adapt, which casts results as dtype= does arguments; "
            "or cast results in the function."
        )
    return error


def _wrapped(goal: Kind, x: Any) -> Any:
    return goal.brought(x) if is_array(x) else x


def filled(tree: Any, arrays: Sequence[Any]) -> Any:
    """Put arrays into the slots of a tree."""
    return mapped(lambda leaf: arrays[leaf.index] if type(leaf) is Slot else leaf, tree)


def _called(flat: Flat, arrays: Sequence[Any]) -> Outcome:
    """Call the function, and take the arrays out of its result."""
    assert flat.call is not None
    function, args, kwargs = flat.call
    return taken_apart(flat, function(*filled(args, arrays), **filled(kwargs, arrays)))


def taken_apart(flat: Flat, result: Any) -> Outcome:
    """Separate the arrays of a result from the rest of it."""
    home, told = flat.terms.home, flat.shapes
    floats: list[Any] = []
    others: list[Any] = []

    def take(x: Any) -> Any:
        if not is_array(x):
            if told is None or not isinstance(x, _NUMBERS):
                return x
            shapes = told.others[len(others) : len(others) + 1]
            native = x = np.asarray(x, shapes[0].dtype if shapes and type(x) in _PLAIN else None)
        else:
            native = unwrapped(x)
            if record_of(type(native)).kind != home:
                native = convert(native, flat.terms.library)
        native = flat.cast(native)
        found = floats if flat.is_float(native) else others
        found.append(native)
        return _Taken(found is floats, len(found) - 1)

    template = mapped(take, result, is_array)
    return Outcome(floats, others, _rebuilder(template))


class _Taken:
    """The place of an array in a result."""

    __slots__ = ("index", "is_float")

    def __init__(self, is_float: bool, index: int) -> None:
        self.is_float, self.index = is_float, index


def _rebuilder(template: Any) -> Callable[[Sequence[Any], Sequence[Any]], Any]:
    def rebuilt(floats: Sequence[Any], others: Sequence[Any]) -> Any:
        return mapped(
            lambda x: (floats if x.is_float else others)[x.index] if type(x) is _Taken else x,
            template,
        )

    return rebuilt


def _told(flat: Flat, natives: list[Any]) -> Outcome:
    """Read ``result_shape_dtypes``: a tree of objects with a shape and a dtype, or its function."""
    assert flat.call is not None
    told, (_, args, kwargs) = flat.terms.shapes, flat.call
    if callable(told) and not hasattr(told, "shape"):
        told = told(*filled(args, natives), **filled(kwargs, natives))
    floats: list[Shape] = []
    others: list[Shape] = []

    def take(x: Any) -> Any:
        if not _has_shape(x):
            raise TypeError(
                f"result_shape_dtypes of {flat.terms.function} has a {type(x).__name__}: it is "
                "made of objects with a shape and a dtype, such as "
                "jax.ShapeDtypeStruct((3,), 'float32')"
            )
        shape = Shape(tuple(x.shape), str(x.dtype).rpartition(".")[2])
        found = floats if flat.is_float(shape) else others
        found.append(shape)
        return _Taken(found is floats, len(found) - 1)

    return Outcome(floats, others, _rebuilder(mapped(take, told, _has_shape)))


def _has_shape(x: Any) -> bool:
    return hasattr(x, "shape") and hasattr(x, "dtype")


def advise(terms: Terms, x: Any, error: BaseException) -> None:
    """Add to the error for an array that a library follows how `arraybridge.adapt` takes it."""
    native = unwrapped(x)
    library = record_of(type(native)).library
    theirs = None if library is None else library.differentiation()
    if theirs is None or not theirs.follows(native):
        return
    ways = ["callback=True"] if theirs.traces and not terms.callback else []
    if library_named(terms.library).differentiation() is not None and not terms.differentiable:
        ways.append("differentiable=True")
    if ways:
        error.add_note(f"Or pass {' or '.join(ways)} to adapt: see docs/adapting.md.")
