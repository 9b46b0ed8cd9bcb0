"""The compiled kernels: a shared library that is built with the package, and opened once.

It has a set of kernels for each kind of CPU of a family (`FAMILIES`), compiled by `build`. It calls
only the C library's ``memcpy`` and the like, and stays open until the process ends: threads may run
its code after the last Python object is gone.
"""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

if TYPE_CHECKING:
    from arraybridge.kernels.cpu.plan_types import Key

_FOLDER = os.path.dirname(os.path.abspath(__file__))

#: The library, beside this file.
LIBRARY = os.path.join(_FOLDER, "_kernels.dylib" if sys.platform == "darwin" else "_kernels.so")

#: What it is compiled from.
SOURCES = "build.py", "loader.py", "loops.py", "microkernels.py", "plan_types.py", "shuffle.py"

#: Whether the user has switched compiled code for copies off.
SWITCHED_OFF = os.environ.get("ARRAYBRIDGE_NO_KERNELS", "0") not in ("", "0")


class Kind(NamedTuple):
    """A kind of CPU that has a set of kernels."""

    vector: int  # bytes of its vectors
    cpu: str  # LLVM's name, and features beyond it
    features: str
    needs: tuple[str, ...]  # NumPy's names of what a CPU must have


#: The kinds of each family, the widest first. AVX-512 without VBMI (Skylake) gains nothing over
#: AVX2: 0.99 of its speed over 40 layouts, 0.83 with three channels of bytes.
FAMILIES = {
    "x86_64": (
        Kind(64, "x86-64-v4", "+avx512vbmi", ("X86_V4", "AVX512_SKX", "AVX512VBMI")),
        Kind(32, "x86-64-v3", "", ("X86_V3", "AVX2", "FMA3")),
        Kind(16, "x86-64-v2", "", ("X86_V2", "SSE42", "POPCNT")),
    ),
    "aarch64": (Kind(16, "generic", "+neon", ("ASIMD",)),),
}
FAMILIES["arm64"] = FAMILIES["aarch64"]  # macOS's name


def machine() -> str:
    """Return the family of this machine's CPU, such as ``x86_64``."""
    return os.uname().machine if hasattr(os, "uname") else sys.platform


def kinds(family: str, has: dict[str, bool]) -> list[Kind]:
    """Return the kinds whose kernels a CPU can run, the widest first.

    `has` are its features by NumPy's names. Levels, such as X86_V3, are known since NumPy 2.4.
    """
    found: list[Kind] = []
    for kind in reversed(FAMILIES.get(family, ())):
        if not all(has.get(name, name.startswith("X86_V")) for name in kind.needs):
            break  # wider ones have this one's instructions, too
        found.insert(0, kind)
    return found


def _here() -> list[Kind]:
    try:
        from numpy._core._multiarray_umath import __cpu_features__ as has
    except ImportError:
        has = {}
    return kinds(machine(), has)


_runs = _here()

#: Bytes of the widest vectors here: 64 (AVX-512 with VBMI), 32 (AVX2), else 16 (SSE4.2, NEON).
VECTOR = _runs[0].vector if _runs else 16


def address(key: Key) -> int | None:
    """Return the address of an inner kernel; None if there is none: see `unavailable`."""
    return _address(symbol(key))


def nest(key: Key) -> int | None:
    """Return the address of the nest that calls an inner kernel; None as for `address`."""
    return _address(nest_symbol(key.vector, merging=key.kind == "merge"))


def symbol(key: Key) -> str:
    """Return the name of an inner kernel in the library."""
    return "_".join(map(str, ("arraybridge", key.vector, *key[:4])))


def nest_symbol(vector: int, *, merging: bool) -> str:
    """Return the name of a nest in the library."""
    return f"arraybridge_{vector}_{'merging' if merging else 'nest'}"


def unavailable() -> str | None:
    """Return why this process has no compiled kernels, and what to do; None if it has."""
    opened = _opened()
    return opened if isinstance(opened, str) else None


@cache
def _address(name: str) -> int | None:
    library = _opened()
    function = None if isinstance(library, str) else getattr(library, name, None)
    return ctypes.cast(function or 0, ctypes.c_void_p).value


@cache
def _opened() -> ctypes.CDLL | str:
    """Open the library; return why not if that fails.

    Two threads may do it at once: both get the same library.
    """
    if SWITCHED_OFF:
        return "ARRAYBRIDGE_NO_KERNELS is set"
    if not _runs:
        return f"arraybridge has no kernels for this CPU ({machine()})"
    again = "install arraybridge again with pip install -v, whose log says what went wrong"
    if not os.path.exists(LIBRARY):
        return f"there is no {LIBRARY}: {again}"
    try:
        if not is_whole(LIBRARY):
            return f"{LIBRARY} is cut short: {again}"
        library = ctypes.CDLL(LIBRARY)
        made_of = ctypes.string_at(library["arraybridge_sources"]).decode()
        if made_of != (digest() or made_of):
            return f"{LIBRARY} was built from other sources: {again}"
    except (OSError, AttributeError) as error:
        return f"the kernels cannot be loaded here ({error}): {again}"
    return library


def is_whole(path: str) -> bool:
    """Whether a file of Linux has all sections that its header tells of: without, it may crash."""
    with open(path, "rb") as file:
        head, length = file.read(64), file.seek(0, os.SEEK_END)
    start, number = (int.from_bytes(head[a:b], "little") for a, b in ((40, 48), (60, 62)))
    return head[:5] != b"\x7fELF\2" or length >= start + 64 * number  # bytes of an entry


def digest() -> str | None:
    """Return a checksum of the library's sources and kind of machine; None without the sources.

    It is against mistakes: whoever can write here can write the sources. (`hashlib` takes 3 ms.)
    """
    made, length = crc32(f"{sys.platform} {machine()}".encode()), 0
    try:
        for name in SOURCES:
            with open(os.path.join(_FOLDER, name), "rb") as file:
                text = file.read()
            made, length = crc32(text, made), length + len(text)
    except OSError:
        return None
    return f"{made:08x} of {length} bytes"
