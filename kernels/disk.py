"""Compiled kernels on disk: their folder, their file names, and atomic writes.

The name of a file contains a hash of everything that its code depends on. It begins with a
checksum, and a rename puts it in place, so that concurrent or interrupted processes leave a
complete file or none.

The code will run as this user, so it is read only from a file that this user owns and nobody else
can write, in such a folder. A file that cannot be read or written only costs the time to compile.
"""

from __future__ import annotations

import os
import stat
import sys
import threading
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path

_DIGEST_BYTES = 32
_SOURCES = os.path.join(os.path.dirname(__file__), "cuda")
_CACHES = {"darwin": ("Library", "Caches")}


def folder() -> str | None:
    """Return the folder of the disk cache; None without a home folder.

    ``ARRAYBRIDGE_CACHE_DIR``, or ``arraybridge`` in ``NUMBA_CACHE_DIR``, or in the user's cache
    folder (``XDG_CACHE_HOME`` if that is an absolute path, as its specification requires; on macOS
    ``~/Library/Caches``; else ``~/.cache``).
    """
    chosen = os.environ.get("ARRAYBRIDGE_CACHE_DIR")
    if chosen:
        return chosen
    parent = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(parent):
        home = os.path.expanduser("~")
        if not os.path.isabs(home):
            return None
        parent = os.path.join(home, *_CACHES.get(sys.platform, (".cache",)))
    return os.path.join(parent, "arraybridge")


def path(name: str, *key: object) -> str | None:
    """Return the path of a kernel's file, whose name begins with `name`; None if there is none.

    The code depends on `key` (by its ``repr``), on `dependencies`, and on Numba's settings in the
    environment.
    """
    where = folder()
    try:
        depends = dependencies()
    except (ImportError, OSError, ValueError):
        return None  # without sources (in a zip file) or versions old code would look current
    if where is None:
        return None
    settings = sorted(
        f"{variable}={value}"
        for variable, value in os.environ.items()
        if variable.startswith("NUMBA_") and "CACHE" not in variable
    )
    text = repr((depends, key, settings)).encode()
    return os.path.join(where, f"{name}-{blake2b(text, digest_size=10).hexdigest()}.kernel")


@cache
def dependencies(where: str = _SOURCES) -> tuple[object, ...]:
    """Return what all kernels of a folder of sources depend on, except the environment.

    A digest of the sources; Python's version, as Numba starts from bytecode; and numba-cuda's, in a
    file of it: to import it would take longer than to load a kernel. OSError, ImportError or
    ValueError if one cannot be read.
    """
    digest = blake2b()
    for source in sorted(Path(where).glob("*.py")):
        digest.update(source.read_bytes())
    spec = find_spec("numba_cuda")
    origin = spec.origin if spec else None
    version = Path(origin).with_name("VERSION").read_bytes() if origin else b""
    return digest.hexdigest(), sys.version_info[:2], version


def read(path: str | None) -> bytes | None:
    """Read the code in a file; None if it is missing, damaged or others could have written it."""
    if path is None:
        return None
    try:
        _check_own(os.stat(os.path.dirname(path)), path)
        with open(path, "rb", opener=_open) as file:
            _check_own(os.fstat(file.fileno()), path)
            digest, code = file.read(_DIGEST_BYTES), file.read()
    except OSError:
        return None
    return code if digest == _digest(code) else None


def write(path: str | None, code: bytes) -> None:
    """Write a file atomically; do nothing if that fails."""
    if path is None:
        return
    temporary = f"{path}.{os.getpid()}.{threading.get_ident()}"
    try:
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        _check_own(os.stat(os.path.dirname(path)), path)
        with open(temporary, "xb", opener=_open) as file:
            file.write(_digest(code) + code)
        os.replace(temporary, path)
    except OSError:
        with suppress(OSError):
            os.unlink(temporary)


def _open(path: str, flags: int) -> int:
    """Open a file that is no link; a new one is this user's alone."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o600)


def _digest(code: bytes) -> bytes:
    return blake2b(code, digest_size=_DIGEST_BYTES).digest()


def problem() -> str | None:
    """Return why no kernel is stored or found in `folder`; None if no problem is known."""
    where = folder()
    if where is None:
        return "the user has no home folder: set ARRAYBRIDGE_CACHE_DIR"
    try:
        _check_own(os.stat(where), where)
    except FileNotFoundError:
        return None
    except OSError as error:
        return str(error)
    return None


def _check_own(found: os.stat_result, path: str) -> None:
    """Raise PermissionError unless this user owns a file or folder, and alone can write to it."""
    others = stat.S_IWGRP | stat.S_IWOTH
    if hasattr(os, "geteuid") and (found.st_uid != os.geteuid() or found.st_mode & others):
        raise PermissionError(f"{path} or its folder belongs to others, or they can write to it")
