"""Compiled kernels on disk: their folder, their file names, and atomic writes.

The name of a file contains a hash of everything that its code depends on. It has a checksum, and a
rename puts it in place, so that concurrent or interrupted processes leave a complete file or none.
It is read only if no other user can have written it (`trust`), as its code will run as this user.
A file that cannot be read or written only costs the time to compile.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from hashlib import blake2b

from arraybridge.kernels import trust

_MAGIC = b"arraybridge kernel, format 1\n"
_DIGEST = 32


def folder() -> str | None:
    """Return the folder of the disk cache; None without a home folder.

    ``ARRAYBRIDGE_CACHE_DIR``, or ``arraybridge`` in ``NUMBA_CACHE_DIR``, or in the user's cache
    folder (``XDG_CACHE_HOME`` if that is an absolute path, as its specification requires; on macOS
    ``~/Library/Caches``; else ``~/.cache``).
    """
    chosen = os.environ.get("ARRAYBRIDGE_CACHE_DIR")
    if chosen:
        return chosen
    parent = os.environ.get("NUMBA_CACHE_DIR")
    if not parent:
        parent = os.environ.get("XDG_CACHE_HOME", "")
        if not os.path.isabs(parent):
            home = _home()
            if not os.path.isabs(home):
                return None
            parent = os.path.join(home, *_CACHES.get(sys.platform, (".cache",)))
    return os.path.join(parent, "arraybridge")


_CACHES = {"darwin": ("Library", "Caches")}


def _home() -> str:
    """Return the user's home folder; an empty HOME, which would be ``/``, counts as unset."""
    if os.name != "posix" or os.environ.get("HOME"):
        return os.path.expanduser("~")
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:  # a user without a name, in a container
        return ""


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


def sources(where: str, *others: str) -> str:
    """Return a digest of the Python sources in a folder, and of other files.

    OSError if they cannot be read (in a zip file): old code would look current.
    """
    inside = (os.path.join(where, name) for name in sorted(os.listdir(where)))
    digest = blake2b()
    for file in (*inside, *others):
        if file.endswith(".py"):
            with open(file, "rb") as source:
                digest.update(source.read())
    return digest.hexdigest()


def version(package: str, file: str) -> bytes | None:
    """Read the version of a package from one of its files; None if it is not installed.

    Importing it would take longer than loading a kernel. OSError, ValueError or AttributeError if
    the file cannot be read.
    """
    from importlib.util import find_spec

    spec = find_spec(package)
    if spec is None or spec.origin is None:
        return None
    with open(os.path.join(os.path.dirname(spec.origin), file), "rb") as text:
        return text.read()


def read(path: str | None) -> bytes | None:
    """Read the code in a file; None if it is missing, damaged or not trusted."""
    try:
        data = b"" if path is None else trust.read(path)
    except OSError:
        return None
    start = len(_MAGIC) + _DIGEST
    code = data[start:]
    whole = path is not None and data[:start] == _MAGIC + _checksum(path, code)
    return code if whole else None


def write(path: str | None, code: bytes) -> None:
    """Write a file atomically; do nothing if that fails."""
    if path is None:
        return
    temporary = f"{path}.{os.getpid()}.{threading.get_ident()}"
    try:
        with trust.folder(os.path.dirname(path), make=True):
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(descriptor, "wb") as file:
                file.write(_MAGIC + _checksum(path, code) + code)
            os.replace(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)


def _checksum(path: str, code: bytes) -> bytes:
    # With the name, which is the key, so that a copy under another name does not match.
    return blake2b(os.path.basename(path).encode() + code, digest_size=_DIGEST).digest()


def problem() -> str | None:
    """Return why no kernel is stored or found in `folder`; None if no problem is known."""
    where = folder()
    if where is None:
        return "the user has no home folder: set ARRAYBRIDGE_CACHE_DIR"
    try:
        with trust.folder(where):
            return None
    except FileNotFoundError:
        return None
    except OSError as error:
        return str(error)
