"""Compiled kernels on disk: which folder, which files, whole or not at all.

A file is named after everything that the code in it depends on. It carries a checksum, and is put
in place by a rename, so that processes that write at the same time, or die in the middle, leave a
whole file or none. It is read only where this user alone can have written it (`trust`): it is code,
and would run as this user. What cannot be read or written costs the time to compile.
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
    """Name the folder of the disk cache; None where there is no home folder.

    ``ARRAYBRIDGE_CACHE_DIR``, or ``arraybridge`` in ``NUMBA_CACHE_DIR``, or in the user's own cache
    folder (``XDG_CACHE_HOME`` if that is an absolute path, as its specification asks; on macOS
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
    """Return the user's home folder; an empty HOME counts as none, and would be ``/``."""
    if os.name != "posix" or os.environ.get("HOME"):
        return os.path.expanduser("~")
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:  # in a container, a user that has no name
        return ""


def path(name: str, *depends: object) -> str | None:
    """Name the file of a kernel, which begins with `name`; None where there is no folder for it.

    The code depends on all that `depends` holds (what counts is its ``repr``), and on Numba's
    settings in the environment, which are added here.
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

    OSError where they cannot be read (a zip): old code would look like new.
    """
    inside = (os.path.join(where, name) for name in sorted(os.listdir(where)))
    digest = blake2b()
    for file in (*inside, *others):
        if file.endswith(".py"):
            with open(file, "rb") as source:
                digest.update(source.read())
    return digest.hexdigest()


def version(package: str, file: str) -> bytes | None:
    """Read the version of a package from a file of its own; None where it is not installed.

    Importing it would take longer than loading a kernel. What cannot be read raises OSError,
    ValueError or AttributeError.
    """
    from importlib.util import find_spec

    spec = find_spec(package)
    if spec is None or spec.origin is None:
        return None
    with open(os.path.join(os.path.dirname(spec.origin), file), "rb") as text:
        return text.read()


def read(path: str | None) -> bytes | None:
    """Read the code in a file; None where there is none, or it is damaged or not to be trusted."""
    try:
        data = b"" if path is None else trust.read(path)
    except OSError:
        return None
    start = len(_MAGIC) + _DIGEST
    code = data[start:]
    whole = path is not None and data[:start] == _MAGIC + _checksum(path, code)
    return code if whole else None


def write(path: str | None, code: bytes) -> None:
    """Put a whole file in place, or do nothing."""
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
    # The name is the key: a file that was copied to another name does not match.
    return blake2b(os.path.basename(path).encode() + code, digest_size=_DIGEST).digest()


def problem() -> str | None:
    """Say why no kernel is kept or found in `folder`; None where nothing is known to be wrong."""
    where = folder()
    if where is None:
        return "there is no home folder: set ARRAYBRIDGE_CACHE_DIR"
    try:
        with trust.folder(where):
            return None
    except FileNotFoundError:
        return None
    except OSError as error:
        return str(error)
