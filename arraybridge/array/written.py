"""Writes of an adapted function to the copy of an argument, and their way to the caller."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from ctypes import string_at
from functools import partial
from typing import Any

from ..dispatch.kernel import compact_copy, copy_into
from ..dispatch.library import Library
from ..dispatch.records import ConversionError, TensorInfo
from ..dispatch.registry import library_of_type
from ..dispatch.transfer import fetched
from ..dlpack import CPU
from ..exchange import convert
from ..layout import may_overlap_itself
from ..protocols.objects import LIBRARY as PROTOCOL
from ..protocols.objects import as_source


class Lent:
    """An argument that had to be copied for the function.

    Parameters
    ----------
    given : array
        What the caller passed.
    array, library
        The copy.
    info : TensorInfo
        What the library says of it.
    seen : array
        The copy, as the function sees it.
    again : callable
        Makes such a copy of what the caller's array holds by then.
    """

    __slots__ = (
        "again",
        "array",
        "before",
        "given",
        "home",
        "info",
        "keeper",
        "library",
        "made",
        "memory",
        "seen",
    )

    def __init__(
        self,
        given: Any,
        array: Any,
        library: Library,
        info: TensorInfo,
        seen: Any,
        again: Callable[[], Any],
    ) -> None:
        self.given, self.again = given, again
        self.array, self.library, self.info, self.seen = array, library, info, seen
        self.home = _library_of(seen)
        self._keep(self.home.describe(seen))
        self.before = self._state()

    @classmethod
    def replaced(cls, given: Any, seen: Any) -> Lent:
        """Return the view of an argument that the function gave other memory, as a copy of it."""
        self = cls.__new__(cls)
        self.given, self.seen, self.home = given, seen, _library_of(seen)
        self.array, self.library = as_source(given)
        self.info = self.made = self.library.describe(self.array)
        self.memory = self.before = None
        self.again = partial(convert, self.array, self.home.name, copy=True)
        return self

    def _keep(self, made: TensorInfo) -> None:
        """Hold the memory of the copy, off the host by an array of our own.

        The function may give its array another shape, or other memory: ``t_``, ``x.data =``.
        """
        home, self.made = self.home, made
        self.memory: Any
        self.keeper: Library
        if made.device.host:
            seen = home.resolve(self.seen) if made.pending else self.seen
            self.memory, self.keeper = home.export(seen), PROTOCOL
        else:
            self.memory, self.keeper = home.held(self.seen), home

    def _state(self) -> object:
        """Return what shows writes to the copy: its elements, or PyTorch's version counter.

        Elements off the host are fetched where they came from it; else None: nobody knows.
        """
        if not self.made.device.host:
            with suppress(RuntimeError):  # of inference tensors, which count nothing
                version = getattr(self.seen, "_version", None)
                if version is not None:
                    return version
            if not self.info.device.host or type(self.home).to_host is Library.to_host:
                return None
        return _elements(self.memory, self.keeper)

    def _stale(self) -> bool:
        """Whether the caller's array is known to have changed since it was copied."""
        return isinstance(self.before, bytes) and _elements(self.again(), self.home) != self.before

    def _why_not(self, now: TensorInfo) -> str | None:
        """Return why the caller's array cannot take what the function wrote, or None."""
        info = self.info
        if now.dtype != info.dtype:
            return f"wrote to the {now.dtype} copy of an argument of {info.dtype}"
        obstacle = self.obstacle()
        if obstacle is None:
            return None
        wrote = "wrote to the copy of an argument that cannot be written"
        return f"{wrote} ({info.library}, {obstacle})"

    def obstacle(self) -> str | None:
        """Return why the caller's array cannot be written, or None."""
        info = self.info
        obstacle = info.refused or ("read-only" if info.readonly else overlap(info))
        if not (info.device.host or hasattr(type(self.array), "__setitem__")):
            obstacle = obstacle or f"on {info.device}, without assignment"
        return obstacle

    def is_argument(self, x: Any) -> bool:
        """Whether ``x``, which the function returned, stands for the caller's array.

        Never for one that cannot be written, whether or not the function did.
        """
        if type(x) is not type(self.seen):
            return False
        try:
            now = self.home.describe(x)
        except Exception:  # it has no memory, as the conversion of the result says
            return False
        made = self.made
        same = (now.pointer, now.shape, now.strides, now.dtype, now.pending) == (
            made.pointer, made.shape, made.strides, self.info.dtype, made.pending
        )  # fmt: skip
        return same and self.obstacle() is None

    def give_back(self, results: Callable[[], list[Any]]) -> None:
        """Write the function's changes to the copy to the caller's array, if there are any.

        Parameters
        ----------
        results : callable
            What the function gives: if the copy itself is there, nothing is lost.

        Raises
        ------
        ConversionError
            If the caller's array cannot be written, and the copy was not returned. If that array
            has changed meanwhile, so that one of the two writes would be lost.
        """
        now = self.home.describe(self.seen)
        why = self._replaced(now)
        state = None if self.memory is None else self._state()
        if state != self.before:
            obstacle = self._why_not(now)
            if obstacle is None:
                self._write()
                self.before = state
            why = why or obstacle
        if why and all(x is not self.seen for x in results()):
            raise ConversionError(
                f"the function {why}: pass copy=True to adapt, and take what it returns"
            )

    def _replaced(self, now: TensorInfo) -> str | None:
        """Return what is wrong with the memory that the function gave its array, or None.

        Other memory for the same elements is what is written to the caller's array from now on.
        """
        made = self.made
        if now.pointer == made.pointer:
            return None
        if now.shape != made.shape:
            return f"gave an argument other memory, of shape {now.shape} instead of {made.shape}"
        if now.dtype != made.dtype:
            return self._why_not(now)
        self._keep(now)
        return None

    def _write(self) -> None:
        if self._stale():
            raise ConversionError(
                "the function wrote to the copy of an argument whose own memory was written "
                "meanwhile, as it is where two arguments share memory: one of the writes would be "
                "lost. Pass arrays that share no memory, or pass copy=True to adapt, and take what "
                "it returns"
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
            copy_into(array, library.export(copy))
            self.library.written(self.array)


def _library_of(seen: Any) -> Library:
    library = library_of_type(type(seen))
    assert library is not None, f"{type(seen).__name__} came from a conversion"
    return library


def _elements(x: Any, library: Library) -> bytes:
    """Return the bytes of the elements, in C order."""
    x, library = _on_host(x, library)
    block = compact_copy(library.export(x))
    return string_at(block.pointer, block.nbytes)


def overlap(info: TensorInfo) -> str | None:
    """Return why an array cannot be written where several of its elements are one cell."""
    several = may_overlap_itself(info.shape, info.strides)
    return "several of its elements are one cell of memory" if several else None


def _on_host(x: Any, library: Library) -> tuple[Any, Library]:
    """Return an array that the CPU can read, and its library: ``x`` or a copy of it on the host."""
    if library.describe(x).device.host:
        return x, library
    host = fetched(x, library, library.describe(x))
    return host, library_of_type(type(host)) or library
