"""At most two frames lie between a caller and a library's own function, on both namespaces."""

from __future__ import annotations

import functools
import sys
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import array_api_compat
import numpy as np
import pytest

import arraybridge

from .support import recipes
from .support.functions import TABLE
from .support.namespaces import Namespace, each_library, namespaces

pytestmark = pytest.mark.usefixtures("x64")

MOST = 2

# Not ours alone: array-api-compat's functions are as much between the caller and the library.
OURS = tuple(
    str(path)
    for module in (arraybridge, array_api_compat)
    for path in {Path(module.__file__).parent, Path(module.__file__).resolve().parent}
)
# What is called before the library's function with its arguments, or after it with the results.
BESIDE = ("/array/", "/dispatch/", "/dlpack/", "/xp/dtypes.py", "/xp/scalars.py", "/xp/sources.py")
AFTER = {"_normal", "_array", "_arrays", "_named"}
# What is asked about data types on the way, and what is asked of the library for that.
QUESTIONS = {
    "<lambda>",
    "_check_integers",
    "_integer_name",
    "integer_name",
    "_is_of",
    "_of_numbers",
    "check_carried",
}
ATTRIBUTES = {"dtype", "shape", "ndim"}

# Functions that are put together from several of the library's; and from_dlpack, an exchange.
_COMPOSED = "floor_divide from_dlpack linspace __array_namespace_info__"
COMPOSED = {
    "numpy": f"{_COMPOSED} clip fft.fftshift fft.ifftshift finfo iinfo linalg.matrix_rank sign",
    "torch": f"{_COMPOSED} concat fft.fftshift fft.ifftshift linalg.cross linalg.solve "
    "linalg.trace linalg.vecdot linalg.vector_norm remainder searchsorted vecdot",
    "jax": f"{_COMPOSED} max min searchsorted",  # the first are compiled as one
    "array_api_strict": f"{_COMPOSED} sign",
    "dpnp": f"{_COMPOSED} linalg.eig linalg.eigvals",
}


def is_ours(code: CodeType) -> bool:
    return code.co_filename.startswith(OURS)


def depth(frame: FrameType | None) -> int:
    """How many of our frames lie above the caller's; 0 if the library has called back."""
    frames = []
    while frame is not None and frame.f_code is not frames_of.__code__:
        frames.append(frame.f_code)
        frame = frame.f_back
    beside = any(
        code.co_name in AFTER | QUESTIONS or any(part in code.co_filename for part in BESIDE)
        for code in frames
    )
    return 0 if beside or not all(map(is_ours, frames)) else len(frames)


class Plain(recipes.Pick):
    """Picks float64 where it may, a shape of two axes and no options."""

    def __init__(self, kinds: str) -> None:
        self._draw = lambda *_, **__: 0
        self.few = False
        self.names = recipes.DTYPES[kinds]
        self.rng = np.random.default_rng(0)

    def one_of(self, *options: Any) -> Any:
        if options == (True, True, False):  # whether an option is given
            return False
        names = [x for x in options if isinstance(x, str) and x in ("float64", "int64")]
        wanted = sorted(names) or [x for x in options if repr(x) == "(2, 3)"]
        return wanted[0] if wanted else options[0]


class Seen(np.ndarray[Any, Any]):
    """An array that tells how deep the ufuncs are called, which a profiler does not see."""

    found: list[int] = []  # noqa: RUF012

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        Seen.found.append(depth(sys._getframe(1)))
        return getattr(ufunc, method)(*map(plain, args), **kwargs)


def plain(x: Any) -> Any:
    return x.view(np.ndarray) if isinstance(x, Seen) else x


def seen(x: Any) -> Any:
    if type(x) is np.ndarray:
        return x.view(Seen)
    native = getattr(x, "_native", None)
    return type(x)._of(native.view(Seen)) if type(native) is np.ndarray else x


def frames_of(ns: Namespace, name: str) -> int:
    """The most of our frames above a call of the library, while a function is called."""
    row = TABLE[name]
    args, kwargs = ns.taken(row.recipe(Plain(row.kinds)))
    if ns.library == "numpy" and row.gives:
        args = [seen(x) for x in args]
    function = ns.function(name)
    found = Seen.found = [0]

    def profile(frame: FrameType, event: str, called: Any) -> None:
        code = frame.f_code
        if event == "call" and not is_ours(code) and code.co_name not in ATTRIBUTES:
            name = frame.f_globals.get("__name__", "")
            frame = frame.f_back or frame
        elif event == "c_call":
            name = getattr(called, "__module__", None) or type(called.__self__).__module__
        else:
            return
        if name.partition(".")[0] == ns.library:
            found.append(depth(frame))

    sys.setprofile(profile)
    try:
        function(*args, **kwargs)
    finally:
        sys.setprofile(None)
    return max(found)


def compiled(library: str) -> Any:
    """What JAX has compiled runs without Python's frames: it is to be seen."""
    if library != "jax":
        return nullcontext()
    import jax

    return jax.disable_jit()


def between(library: str) -> list[str]:
    """The functions in whose place is one of ours; the others have one wrapper, or none."""
    functions = namespaces(library)[1].xp._functions.values()
    return [
        function.path
        for function in functions
        if isinstance(function.own, functools.partial)
        or is_ours(getattr(function.own, "__code__", compiled.__code__))
    ]


@each_library
@pytest.mark.parametrize("ns", ["wrapped", "native"])
def test_at_most_two(ns: str, library: str) -> None:
    names = set(between(library)) - {*COMPOSED[library].split()}
    with compiled(library):
        found = {name: frames_of(namespaces(library)[ns == "native"], name) for name in names}
    assert {name: count for name, count in found.items() if count > MOST} == {}


@each_library
def test_those_that_are_excepted(library: str) -> None:
    """Delete the entry where this fails: there are no more than two frames."""
    excepted = COMPOSED[library].removeprefix(_COMPOSED).split()
    with compiled(library):
        counts = {name: max(frames_of(ns, name) for ns in namespaces(library)) for name in excepted}
    if library == "torch" and hasattr(import_module("torch"), "bcomplex32"):
        del counts["concat"]  # PyTorch 2.15 needs no replacement of ours
    assert [name for name, count in counts.items() if count <= MOST] == []
