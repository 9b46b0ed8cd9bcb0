"""Two libraries, in a process of their own: every case converted, both ways, and checked."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import arraybridge as ab
from arraybridge.core.registry import forget

from ..support import coexist
from ..support.arrays import littered
from .cases import Case, all_cases
from .libraries import InexpressibleError, native, reference

VIEW, COPY, TRANSFER, REFUSED = "view", "copy", "transfer", "refused"
LOST = "view, where arraybridge copies"
WRONG, ERROR, CRASH, HANG, NA = "WRONG", "ERROR", "CRASH", "HANG", "n/a"


class Step(NamedTuple):
    """A method of `Pair` to call with a case."""

    way: tuple[str, str]  # the source and the target
    case: str
    what: str


class Wrong(Exception):
    """A promise broken, in the words of the report."""


def same(native, x, expected) -> None:
    """Check shape, dtype and every bit of an array against the reference."""
    shape, dtype = native.shape(x), native.dtype(x)
    if shape != expected.shape:
        raise Wrong(f"shape {shape}, expected {expected.shape}")
    if dtype != expected.dtype.name:
        raise Wrong(f"dtype {dtype}, expected {expected.dtype.name}")
    got = native.values(x)
    if got.tobytes() != expected.tobytes():
        raise Wrong(
            f"values {got.ravel()[:3].tolist()}..., expected {expected.ravel()[:3].tolist()}..."
        )


class Pair:
    """The cells of one source and one target library."""

    def __init__(self, source: str, target: str) -> None:
        names = coexist.in_import_order([source, target])
        loaded = {name: native(name) for name in names}
        self.source, self.target = loaded[source], loaded[target]
        self.crossing = self.source.device != self.target.device

    def cell(self, case) -> dict[str, Any]:
        """The verdict on what arraybridge does with a case."""
        try:
            x = self.source.build(case)
        except InexpressibleError as error:
            return {"verdict": NA, "why": _line(error)}
        expected = reference(case)
        if case.legal:
            try:  # the cell is about the conversion, not about a source that cannot be read
                if "byteorder" not in str(case.steps):
                    same(self.source, x, expected)
            except Exception as error:
                return {"verdict": NA, "why": f"{self.source.name} cannot read it: {_line(error)}"}
        given = [x]
        del x  # so that the source is gone once `_converted` drops it
        try:
            return self._converted(case, given, expected)
        except Wrong as error:
            return {"verdict": WRONG, "why": str(error)}
        except Exception as error:
            return {"verdict": ERROR, "why": f"{type(error).__name__}: {_line(error)}"}

    def _converted(self, case, given, expected) -> dict[str, Any]:
        x, how = given.pop(), dict[str, Any]()
        to = self.target.name
        route = self._explain(x, how)
        if route[0] == "refuse" and self.crossing and case.legal:
            self._must_refuse(x, how)
            how = {"device": self.target.device}
            route = self._explain(x, how)
        kind, why = route
        forget()  # the first conversion is the first of a process
        if kind == "refuse":
            self._must_refuse(x, how)
            if case.legal and self.target.holds(expected):
                return {"verdict": ERROR, "why": f"refused without need: {why}"}
            return {"verdict": REFUSED, "why": why}
        if not case.legal:
            raise Wrong(f"{kind}, though nothing right can be done")
        result = ab.convert(x, to, **how)
        same(self.target, result, expected)
        self._sharing(kind, x, result)
        if kind == "view":
            expected = self._write_through(case, x, result, expected)
        else:
            self._apart(x, result, expected)
        del result
        gc.collect()
        if case.steps[-1:] != (("byteorder",),):
            same(self.source, x, expected)  # the source outlives the result
        self._on_request(kind, x, expected, how)
        with contextlib.suppress(Exception):  # what is remembered then comes of a plain array
            ab.convert(self.source.build(Case("", "", case.dtype, case.base)), to, **how)
        result = ab.convert(x, to, **how)
        self._sharing(kind, x, result)  # a later call does as the first
        del x
        gc.collect()
        littered(expected.nbytes)
        same(self.target, result, expected)  # the result outlives the source
        return {"verdict": {"view": VIEW, "copy": COPY, "transfer": TRANSFER}[kind], "why": why}

    def _explain(self, x, how) -> tuple[str, str]:
        try:
            route = ab.explain(x, self.target.name, **how)
        except ab.ConversionError as error:
            return "refuse", str(error)
        return route.kind, str(route.why)

    def _must_refuse(self, x, how) -> None:
        try:
            ab.convert(x, self.target.name, **how)
        except ab.ConversionError:
            return
        raise Wrong(f"explain says refuse, convert with {how} converts")

    def _sharing(self, kind, x, result) -> None:
        a, b = self.source.pointer(x), self.target.pointer(result)
        size = self.target.values(result).nbytes
        if a is None or b is None or not size:
            return
        if kind == "view" and a != b:
            raise Wrong("explain says view, convert copied")
        if kind != "view" and a == b:
            raise Wrong(f"explain says {kind}, the memory is shared")
        if kind == "view" and self.source.readonly(x) and not self.target.readonly(result):
            raise Wrong("read-only memory became writable")

    def _write_through(self, case, x, result, expected):
        """Write on either side, look on the other; what the memory holds then."""
        if expected.size < 3 or "broadcast" in str(case.steps):
            return expected
        expected = expected.copy()
        for place, (writer, array, reader, other) in enumerate(
            (
                (self.target, result, self.source, x),
                (self.source, x, self.target, result),
            )
        ):
            if not writer.write(array, place):
                continue
            expected.flat[place] = expected.flat[-1]
            if reader.values(other).tobytes() != expected.tobytes():
                raise Wrong(f"a write in {writer.name} is not seen in {reader.name}")
        return expected

    def _apart(self, x, result, expected) -> None:
        before = self.source.values(x).tobytes()
        written = expected.size > 1 and expected.ndim and self.target.write(result, 0)
        if written and self.source.values(x).tobytes() != before:
            raise Wrong("a write to the copy changed the source")

    def _on_request(self, kind, x, expected, how) -> None:
        """``copy=True`` never shares; ``copy=False`` does, or refuses."""
        to = self.target.name
        route = ab.explain(x, to, copy=True, **how)
        if route.kind == "view":
            raise Wrong("copy=True is explained as a view")
        if route.kind != "refuse":
            fresh = ab.convert(x, to, copy=True, **how)
            same(self.target, fresh, expected)
            self._sharing("copy", x, fresh)
        # Of memory that may be written the view is there for the asking alone (JAX, TensorFlow).
        if ab.explain(x, to, copy=False, **how).kind == "view":
            self._sharing("view", x, ab.convert(x, to, copy=False, **how))
            return
        if kind == "view":
            raise Wrong("copy=False is explained as none")
        self._must_refuse(x, {**how, "copy": False})

    def native(self, case) -> str:
        """What the target's own importer does: view, copy, error, or what came out wrong."""
        x, expected = self.source.build(case), reference(case)
        try:
            result = self.target.own_function(x)
        except Exception as error:
            return f"error: {type(error).__name__}: {_line(error)}"
        if not case.legal:
            return "taken, though illegal"
        try:
            same(self.target, result, expected)
        except Wrong as error:
            return f"wrong: {error}"
        except Exception as error:
            return f"wrong: unusable, {type(error).__name__}: {_line(error)}"
        a, b = self.source.pointer(x), self.target.pointer(result)
        if not expected.size or a is None or b is None:
            return "right"
        if a == b and self.source.readonly(x) and not self.target.readonly(result):
            return "view that makes read-only memory writable"
        if a == b and self._explain(x, {"copy": False})[0] == "refuse":
            return LOST
        return "view" if a == b else "copy"


def _line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:300]


def check(first: str, second: str, steps: list[Step]) -> Iterator[Any]:
    """Yield once when the libraries are loaded, then what each step finds; in its own process."""
    warnings.simplefilter("ignore")
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # two pairs share the machine
    coexist.prepare()
    cases = {case.name: case for case in all_cases()}
    pairs = {way: Pair(*way) for way in ((first, second), (second, first))}
    yield "loaded"
    modules = 0
    for way, name, what in steps:
        if len(sys.modules) > modules:  # a conversion may have imported a library, such as PyTorch
            gc.collect()
            gc.freeze()  # collections between the cells then look at the cells only
            modules = len(sys.modules)
        try:
            found = getattr(pairs[way], what)(cases[name])
        except Exception as error:  # the source has no such array
            why = f"{type(error).__name__}: {_line(error)}"
            found = {"verdict": ERROR, "why": why} if what == "cell" else f"error: {why}"
        yield found
