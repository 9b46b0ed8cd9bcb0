"""Writes of an adapted function to the copy of an argument, and their way to the caller."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from ctypes import string_at
from typing import Any

from ..dispatch.kernel import compact_copy, copy_into
from ..dispatch.library import Library
from ..dispatch.records import ConversionError, TensorInfo
from ..dispatch.registry import library_of_type
from ..dispatch.transfer import fetched
from ..dlpack import CPU
from ..exchange import convert
from ..layout import may_overlap_itself


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
        "given_back",
        "home",
        "info",
        "library",
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
        self.given, self.given_back, self.again = given, False, again
        self.array, self.library, self.info, self.seen = array, library, info, seen
        home = library_of_type(type(seen))
        assert home is not None, f"{type(seen).__name__} came from a conversion"
        self.home = home
        self.before = self._state(seen)

    def _state(self, copy: Any) -> object:
        """Return what shows writes to a copy: its elements, or PyTorch's version counter.

        Elements off the host are fetched where they came from it; else None: nobody knows.
        """
        if not self.home.describe(copy).device.host:
            with suppress(RuntimeError):  # of inference tensors, which count nothing
                version = getattr(copy, "_version", None)
                if version is not None:
                    return version
            if not self.info.device.host or type(self.home).to_host is Library.to_host:
                return None
        copy, library = _on_host(copy, self.home)
        block = compact_copy(library.export(copy))
        return string_at(block.pointer, block.nbytes)

    def _stale(self) -> bool:
        """Whether the caller's array is known to have changed since it was copied."""
        return isinstance(self.before, bytes) and self._state(self.again()) != self.before

    def _why_not(self) -> str | None:
        """Return why the caller's array cannot take what the function wrote, or None."""
        info, seen = self.info, self.home.describe(self.seen)
        if seen.shape != info.shape:
            return "gave the copy of an argument another shape"
        if seen.dtype != info.dtype:
            return f"wrote to the {seen.dtype} copy of an argument of {info.dtype}"
        obstacle = self.obstacle()
        if obstacle is None:
            return None
        wrote = "wrote to the copy of an argument that cannot be written"
        return f"{wrote} ({info.library}, {obstacle})"

    def obstacle(self) -> str | None:
        """Return why the caller's array cannot be written, or None."""
        info = self.info
        obstacle = info.refused or ("read-only" if info.readonly else None)
        if may_overlap_itself(info.shape, info.strides):
            obstacle = obstacle or "several of its elements are one cell of memory"
        return obstacle

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
        now = self._state(self.seen)
        if now == self.before:
            return
        info, why = self.info, self._why_not()
        if why:
            if any(x is self.seen for x in results()):
                return
            raise ConversionError(
                f"the function {why}: pass copy=True to adapt, and take what it returns"
            )
        if self._stale():
            raise ConversionError(
                "the function wrote to the copy of an argument whose own memory was written "
                "meanwhile, as it is where two arguments share memory: one of the writes would be "
                "lost. Pass arrays that share no memory, or pass copy=True to adapt, and take what "
                "it returns"
            )
        if info.pending or not info.device.host:
            device = CPU if info.device.host else info.device
            self.array[...] = convert(self.seen, self.library.name, device=device)
        else:
            array = self.library.export_described(self.array, info)
            copy, library = _on_host(self.seen, self.home)
            copy_into(array, library.export(copy))
            self.library.written(self.array)
        self.before, self.given_back = now, True


def _on_host(x: Any, library: Library) -> tuple[Any, Library]:
    """Return an array that the CPU can read, and its library: ``x`` or a copy of it on the host."""
    if library.describe(x).device.host:
        return x, library
    host = fetched(x, library, library.describe(x))
    return host, library_of_type(type(host)) or library
