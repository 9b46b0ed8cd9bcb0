"""Making the caller see what an adapted function writes to its arguments.

A view is written directly; a copy is written back after the call. If neither is possible it is an
error: for the argument ``out`` before the call, for others once the function has written to it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from ctypes import string_at
from functools import partial
from typing import Any

import numpy as np

from ..array.array_types import is_array
from ..conversion import convert
from ..core.kernel import compact_copy, copy_into
from ..core.library import Library
from ..core.records import ConversionError, TensorInfo
from ..core.registry import library_of_type
from ..core.table import OBSERVERS, notify_copy
from ..core.transfer import fetched
from ..dlpack import CPU
from ..layout import may_overlap_itself
from ..protocols.from_object import LIBRARY as PROTOCOL
from ..protocols.from_object import as_source
from ..pytree import leaves
from .options import Options


class Copied:
    """An argument that had to be copied for the function.

    `info` describes it, `seen` is the copy, and `again` makes another one from the current elements
    of the caller's array.
    """

    __slots__ = (
        "again", "array", "before", "home", "info", "keeper", "library", "made", "memory", "seen"
    )  # fmt: skip

    def __init__(
        self, array: Any, library: Library, info: TensorInfo, seen: Any, again: Callable[[], Any]
    ) -> None:
        self.array, self.library, self.info = array, library, info
        self.seen, self.again = seen, again
        self.home = _library_of(seen)
        self._keep(self.home.describe(seen))
        self.before = self._state()

    @classmethod
    def replaced(cls, given: Any, seen: Any) -> Copied:
        """Treat a view of an argument whose memory the function replaced as a copy of it."""
        self = cls.__new__(cls)
        self.seen, self.home = seen, _library_of(seen)
        self.array, self.library = as_source(given)
        self.info = self.made = self.library.describe(self.array)
        self.memory = self.before = None
        self.again = partial(convert, self.array, self.home.name, copy=True)
        return self

    def _keep(self, made: TensorInfo) -> None:
        """Keep the memory of the copy alive, on other devices by a second array.

        The function may change the shape or memory of its array: ``t_``, ``x.data =``.
        """
        home, self.made = self.home, made
        self.memory: Any
        self.keeper: Library
        if made.device.host:
            seen = home.resolve(self.seen) if made.pending else self.seen
            self.memory, self.keeper = home.export(seen), PROTOCOL
        else:
            self.memory, self.keeper = home.alias(self.seen), home

    def _state(self) -> object:
        """Return what writes to the copy change: its elements, or PyTorch's version counter.

        Elements on a device are fetched if they came from the host; else None, unknown.
        """
        if not self.made.device.host:
            with suppress(RuntimeError):  # inference tensors have no version counter
                version = getattr(self.seen, "_version", None)
                if version is not None:
                    return version
            if not self.info.device.host or type(self.home).to_host is Library.to_host:
                return None
        return _elements(self.memory, self.keeper)

    def why_not(self) -> str | None:
        """Return why the caller's array cannot be written, or None."""
        info = self.info
        why = info.refused or _unwritable(info)
        if not (info.device.host or hasattr(type(self.array), "__setitem__")):
            why = why or f"on {info.device}, without assignment"
        return why

    def stands_for(self, x: Any) -> bool:
        """Whether ``x``, a result of the function, is its copy of the caller's array.

        Always False if the caller's array cannot be written, so that results do not depend on
        whether the function wrote to it.
        """
        if type(x) is not type(self.seen):
            return False
        try:
            now = self.home.describe(x)
        except Exception:  # it has no memory: converting the result raises the error
            return False
        made = self.made
        same = (now.pointer, now.shape, now.strides, now.dtype, now.pending) == (
            made.pointer, made.shape, made.strides, self.info.dtype, made.pending
        )  # fmt: skip
        return same and self.why_not() is None

    def write_back(self, results: Callable[[], list[Any]]) -> None:
        """Write any changes of the copy to the caller's array.

        ConversionError if that cannot be written, unless the copy is among the results of the
        function (`results` returns them), which then has the changes. ConversionError also if the
        array was changed meanwhile: one of the two writes would be lost.
        """
        now = self.home.describe(self.seen)
        problem = self._follow(now)
        state = None if self.memory is None else self._state()
        if state != self.before:
            lost = self._why_lost(now)
            if lost is None:
                self._write()
                self.before = state
            problem = problem or lost
        if problem and all(x is not self.seen for x in results()):
            raise ConversionError(
                f"the function {problem}: pass copy=True to adapt and use the function's result"
            )

    def _why_lost(self, now: TensorInfo) -> str | None:
        """Return why the caller's array cannot take what the function wrote, or None."""
        info = self.info
        if now.dtype != info.dtype:
            return f"wrote to the {now.dtype} copy of an argument of {info.dtype}"
        why = self.why_not()
        if why is None:
            return None
        return f"wrote to the copy of an argument that cannot be written ({info.library}, {why})"

    def _follow(self, now: TensorInfo) -> str | None:
        """Follow the copy if the function replaced its memory; return what is wrong, if anything.

        New memory of the same shape and data type is what is written back from then on.
        """
        made = self.made
        if now.pointer == made.pointer:
            return None
        if now.shape != made.shape:
            return f"gave an argument other memory, of shape {now.shape} instead of {made.shape}"
        if now.dtype != made.dtype:
            return self._why_lost(now)
        self._keep(now)
        return None

    def _write(self) -> None:
        if isinstance(self.before, bytes) and _elements(self.again(), self.home) != self.before:
            raise ConversionError(
                "the function wrote to the copy of an argument whose memory was also written "
                "meanwhile, for example because two arguments share it: one of the writes would be "
                "lost. Pass arrays that share no memory, or pass copy=True to adapt and use the "
                "function's result"
            )
        info = self.info
        if info.pending or not info.device.host:
            device = CPU if info.device.host else info.device
            own = self.keeper is not PROTOCOL
            memory = self.memory if own else self.home.wrap(self.memory)
            self.array[...] = convert(memory, self.library.name, device=device)
        else:
            array = self.library.export_described(self.array, info)
            copy, library = _on_host(self.memory, self.keeper)
            if OBSERVERS:
                notify_copy("the function wrote to its copy of an argument", info)
            copy_into(array, library.export(copy))
            self.library.mark_modified(self.array)


def check_outputs(
    options: Options, out: Any, arguments: list[Any]
) -> list[tuple[Any, tuple[int, ...]]]:
    """Check the arrays of ``out`` before a call; return the arguments of `check_shapes`.

    ConversionError if the caller would not see what the function writes. ``arguments`` are
    `arraybridge.adapting.call.Converted` objects.
    """
    found = []
    for x in leaves(out, is_array):
        name = type(x).__name__
        if isinstance(x, np.generic):
            raise ConversionError(
                f"{options.function} cannot write to the {name} that was passed as out "
                "(NumPy scalars cannot be written): pass an array, such as numpy.empty(())"
            )
        if not is_array(x):
            continue
        argument = next(each for each in arguments if each.given is x)
        why = _why_unseen(options, argument.seen, argument.copied)
        if why is not None:
            raise ConversionError(
                f"{options.function} cannot write to the {name} that was passed as out "
                f"({why}): omit out= and use the function's result"
            )
        found.append((argument.seen, tuple(argument.seen.shape)))
    return found


def check_shapes(options: Options, outputs: list[tuple[Any, tuple[int, ...]]]) -> None:
    """Raise ConversionError if the function gave an array of ``out`` another shape."""
    for seen, shape in outputs:
        if tuple(seen.shape) != shape:
            raise ConversionError(
                f"{options.function} gave its argument out the shape {tuple(seen.shape)}, but the "
                f"array passed as out has {shape}: pass one of the right shape"
            )


def _why_unseen(options: Options, seen: Any, copied: Copied | None) -> str | None:
    """Return why the caller would not see what is written to ``seen``, or None."""
    library = library_of_type(type(seen))
    if options.copy is True:
        return "copy=True gives the function a copy"
    if library is None:
        return None
    if library.accepts.immutable:
        return f"arrays of {library.name} cannot be written"
    info = library.describe(seen)
    if copied is None:
        return _unwritable(info)
    if info.dtype != copied.info.dtype:
        return f"dtype= gives the function a copy of {info.dtype}"
    return copied.why_not()


def _unwritable(info: TensorInfo) -> str | None:
    """Return why an array cannot be written, or None."""
    if info.readonly:
        return "read-only"
    several = may_overlap_itself(info.shape, info.strides)
    return "several of its elements are one cell of memory" if several else None


def _library_of(seen: Any) -> Library:
    library = library_of_type(type(seen))
    assert library is not None, f"{type(seen).__name__} came from a conversion"
    return library


def _elements(x: Any, library: Library) -> bytes:
    """Return the bytes of the elements, in C order."""
    x, library = _on_host(x, library)
    if OBSERVERS:
        why = "kept, to see whether the function writes to its copy of an argument"
        notify_copy(why, library.describe(x))
    block = compact_copy(library.export(x))
    return string_at(block.pointer, block.nbytes)


def _on_host(x: Any, library: Library) -> tuple[Any, Library]:
    """Return ``x``, or a copy of it on the host if the CPU cannot read it, and its library."""
    if library.describe(x).device.host:
        return x, library
    host = fetched(x, library, library.describe(x))
    return host, library_of_type(type(host)) or library
