"""Read files that only this user can write; object code is loaded from no others.

A path is walked folder by folder, each opened relative to the one before, so that the checked
folders are those used. Only this user and root may be able to replace a folder on the way; the last
folder and the file belong to this user, and nobody else can write to them. Symbolic links are
followed if root or this user made them.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

#: Bytes of the largest file that is read: kernels have 10 to 100 kB.
MOST = 16 << 20

_CHECKED = hasattr(os, "geteuid") and os.open in os.supports_dir_fd
_PATH = getattr(os, "O_PATH", os.O_RDONLY)  # no permission to list a folder is needed
_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def read(path: str) -> bytes:
    """Read a file in a folder of this user; OSError if it is missing or not trusted."""
    if not _CHECKED:
        with open(path, "rb") as file:
            return file.read(MOST)
    where, name = os.path.split(path)
    # O_NONBLOCK: do not wait for the writer of a pipe. The type of file is checked once it is open.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    with folder(where) as place:
        opened = os.open(name, flags, dir_fd=place)
    with open(opened, "rb") as file:
        found = os.fstat(opened)
        if not stat.S_ISREG(found.st_mode):
            raise _refused("it is not a regular file", path)
        if found.st_nlink != 1:
            raise _refused("it has another hard link", path)
        _check_own(found, path)
        return file.read(MOST)


@contextmanager
def folder(path: str, *, make: bool = False) -> Iterator[int | None]:
    """Open a folder of this user for a ``with`` block; OSError if others can write to it.

    Yields its descriptor; None on systems whose owners and modes cannot be checked. With `make`,
    missing folders are created, only for this user.
    """
    if not _CHECKED:
        if make:
            os.makedirs(path, exist_ok=True)
        yield None
        return
    place = _walked(os.path.abspath(path), make)
    try:
        yield place
    finally:
        os.close(place)


def _walked(path: str, make: bool) -> int:
    """Check every folder of a path, and return the descriptor of the last one."""
    parts = path.split("/")[:0:-1]  # a stack: the next part is the last item
    links = 0
    place = os.open("/", _PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        while parts:
            name = parts.pop()
            if name in ("", "."):
                continue
            _check_way(os.fstat(place), path)
            target = _link(name, place, path)
            if target is not None:
                links += 1
                if links > 40:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
                parts += target.split("/")[::-1]
                following = os.open("/" if target.startswith("/") else ".", _PATH, dir_fd=place)
            else:
                following = _entered(name, place, make)
            place, before = following, place
            os.close(before)
        _check_own(os.fstat(place), path)
    except BaseException:
        os.close(place)
        raise
    return place


def _link(name: str, place: int, path: str) -> str | None:
    """Return the target of a symbolic link; None for anything else."""
    try:
        found = os.stat(name, dir_fd=place, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISLNK(found.st_mode):
        return None
    if found.st_uid not in (0, os.geteuid()):
        raise _refused(f"user {found.st_uid} owns the link {name!r}", path)
    return os.readlink(name, dir_fd=place)


def _entered(name: str, place: int, make: bool) -> int:
    flags = _PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(name, flags, dir_fd=place)
    except FileNotFoundError:
        if not make:
            raise
    with suppress(FileExistsError):  # another process made it
        os.mkdir(name, 0o700, dir_fd=place)
    return os.open(name, flags, dir_fd=place)


def _check_way(found: os.stat_result, path: str) -> None:
    """Raise PermissionError for a folder whose entries others can replace."""
    me = os.geteuid()
    if found.st_uid not in (0, me):
        raise _refused(f"user {found.st_uid} owns a folder of its path", path)
    others = found.st_mode & _OTHERS
    # With the sticky bit only owners can replace entries. Distributions with one group per user,
    # of the same number, make the user's files writable for it.
    own_group = me != 0 and found.st_uid == found.st_gid == me
    if others and not found.st_mode & stat.S_ISVTX and not (others == stat.S_IWGRP and own_group):
        raise _refused("others can write to a folder of its path", path)


def _check_own(found: os.stat_result, path: str) -> None:
    if found.st_uid != os.geteuid():
        raise _refused(f"user {found.st_uid} owns it", path)
    if found.st_mode & _OTHERS:
        raise _refused("others can write to it", path)


def _refused(why: str, path: str) -> PermissionError:
    return PermissionError(errno.EPERM, f"not trusted, as {why}", path)
