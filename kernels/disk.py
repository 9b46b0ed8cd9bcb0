"""Compiled kernels on disk: their folder, their file names, and atomic writes.

The name of a file contains a hash of everything that its code depends on. It has a checksum, and a
rename puts it in place, so that concurrent or interrupted processes leave a complete file or none.

The code will run as this user, so it is read only from a file that this user owns and nobody else
can write, in such a folder. A file that cannot be read or written only costs the time to compile.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from hashlib import blake2b

_MAGIC = b"arraybridge kernel, format 1\n"
_DIGEST_BYTES = 32
_MAX_FILE_BYTES = 16 << 20  # kernels have 10 to 100 kB
_CACHES = {"darwin": ("Library", "Caches")}
_POSIX = hasattr(os, "geteuid")


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


def path(name: str, *depends: object) -> str | None:
    """Return the path of a kernel's file, whose name begins with `name`; None without a folder.

    The code depends on `depends` (by its ``repr``), and on Numba's settings in the environment,
    which are added here.
    """
    where = folder()
    if where is None:
        return None
    settings = sorted(
        f"{key}={value}"
        for key, value in os.environ.items()
        if key.startswith("NUMBA_") and "CACHE" not in key
    )
    text = repr((*depends, settings)).encode()
    return os.path.join(where, f"{name}-{blake2b(text, digest_size=10).hexdigest()}.kernel")


def dependencies(where: str, *versions: tuple[str, str]) -> tuple[object, ...]:
    """Return what all kernels of a folder of sources depend on; read it once, and keep it.

    A digest of the sources; Python's version, as Numba starts from bytecode; and the versions of
    packages, each given with the file that has it: to import one would take longer than to load a
    kernel. OSError, ImportError or ValueError if one cannot be read: old code would look current.
    """
    digest = blake2b()
    for name in sorted(os.listdir(where)):
        if name.endswith(".py"):
            with open(os.path.join(where, name), "rb") as source:
                digest.update(source.read())
    return (digest.hexdigest(), sys.version_info[:2], *(_version(*each) for each in versions))


def _version(package: str, file: str) -> bytes | None:
    from importlib.util import find_spec

    spec = find_spec(package)
    if spec is None or spec.origin is None:
        return None
    with open(os.path.join(os.path.dirname(spec.origin), file), "rb") as text:
        return text.read()


def read(path: str | None) -> bytes | None:
    """Read the code in a file; None if it is missing, damaged or others could have written it."""
    if path is None:
        return None
    try:
        with _own_folder(os.path.dirname(path)) as where:
            # O_NONBLOCK: do not wait for the writer of a pipe.
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC if _POSIX else 0
            opened = os.open(os.path.basename(path) if _POSIX else path, flags, dir_fd=where)
            with open(opened, "rb") as file:
                _check_own(os.fstat(opened), stat.S_ISREG, path)
                data = file.read(_MAX_FILE_BYTES)
    except OSError:
        return None
    start = len(_MAGIC) + _DIGEST_BYTES
    return data[start:] if data[:start] == _MAGIC + _checksum(path, data[start:]) else None


def write(path: str | None, code: bytes) -> None:
    """Write a file atomically; do nothing if that fails."""
    if path is None:
        return
    temporary = f"{path}.{os.getpid()}.{threading.get_ident()}"
    try:
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        with _own_folder(os.path.dirname(path)):
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(descriptor, "wb") as file:
                file.write(_MAGIC + _checksum(path, code) + code)
            os.replace(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)


def _checksum(path: str, code: bytes) -> bytes:
    # With the name, which is the key, so that a copy under another name does not match.
    name = os.path.basename(path).encode()
    return blake2b(name + code, digest_size=_DIGEST_BYTES).digest()


def problem() -> str | None:
    """Return why no kernel is stored or found in `folder`; None if no problem is known."""
    where = folder()
    if where is None:
        return "the user has no home folder: set ARRAYBRIDGE_CACHE_DIR"
    try:
        with _own_folder(where):
            return None
    except FileNotFoundError:
        return None
    except OSError as error:
        return str(error)


@contextlib.contextmanager
def _own_folder(path: str) -> Iterator[int | None]:
    """Open a folder for a ``with`` block; PermissionError if others own it or can write to it."""
    if not _POSIX:
        yield None
        return
    opened = os.open(path or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _check_own(os.fstat(opened), stat.S_ISDIR, path)
        yield opened
    finally:
        os.close(opened)


def _check_own(found: os.stat_result, is_expected: Callable[[int], bool], path: str) -> None:
    """Raise PermissionError unless this user alone can write, and the type is as expected."""
    if not _POSIX:
        return
    if not is_expected(found.st_mode):
        raise PermissionError(f"{path} is not a regular file")
    if found.st_uid != os.geteuid():
        raise PermissionError(f"user {found.st_uid} owns {path}")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(f"others can write to {path}")
