"""The disk cache of CUDA kernels: read only where this user alone can write, and never an error."""

from __future__ import annotations

import errno
import os
import stat
import sys
from pathlib import Path

import pytest

from arraybridge.kernels import disk


@pytest.mark.parametrize(
    "harm",
    [
        lambda data: b"",
        lambda data: data[:-1],
        lambda data: data + b"\0",
        lambda data: data[:-2] + bytes([data[-2] ^ 1]) + data[-1:],
    ],
    ids=["empty", "short", "long", "flipped"],
)
def test_damage_is_seen(written: Path, harm) -> None:
    written.write_bytes(harm(written.read_bytes()))
    assert disk.read(str(written)) is None


def test_full_disk_costs_time_only(tmp_path: Path, monkeypatch) -> None:
    def no_space(*args):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(disk.os, "replace", no_space)
    disk.write(str(tmp_path / "file"), b"code")
    assert list(tmp_path.iterdir()) == []  # nothing is left behind


def test_other_sources_are_another_kernel(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("x = 1")
    before = disk.dependencies.__wrapped__(str(tmp_path))
    (tmp_path / "one.py").write_text("x = 2")
    assert disk.dependencies.__wrapped__(str(tmp_path)) != before


def test_folder(tmp_path: Path, monkeypatch) -> None:
    for name in ("ARRAYBRIDGE_CACHE_DIR", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "darwin")
    assert disk.folder() == str(tmp_path / "Library/Caches/arraybridge")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # to be ignored, the specification says
    assert disk.folder() == str(tmp_path / ".cache/arraybridge")
    for name, told in (("XDG_CACHE_HOME", "/xdg"), ("NUMBA_CACHE_DIR", "/numba")):
        monkeypatch.setenv(name, told)
        assert disk.folder() == f"{told}/arraybridge"
    monkeypatch.setenv("ARRAYBRIDGE_CACHE_DIR", "/ours")
    assert disk.folder() == "/ours"


root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can play another user")
NOBODY = 65534


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A file that is read."""
    path = tmp_path / "way" / "kernels" / "x.kernel"
    disk.write(str(path), b"code")
    assert disk.read(str(path)) == b"code"
    return path


def give(path: Path) -> None:
    os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


def link(path: Path) -> None:
    path.rename(path.with_name("moved"))
    path.symlink_to("moved")


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir(0o700)


PLANTED = {
    "a group can write to it": lambda path: path.chmod(0o620),
    "all can write to its folder": lambda path: path.parent.chmod(0o777),
    "a link": link,
    "a folder": folder,
    "nobody's": give,
    "in nobody's folder": lambda path: give(path.parent),
}


@pytest.mark.parametrize(
    "how", [pytest.param(x, marks=root if "nobody" in x else ()) for x in PLANTED]
)
def test_what_others_could_have_written_is_not_read(written, how):
    PLANTED[how](written)
    assert disk.read(str(written)) is None


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_what_is_written_is_this_users_alone(tmp_path, umask):
    before = os.umask(umask)
    try:
        path = tmp_path / "a" / "b" / "x.kernel"
        disk.write(str(path), b"code")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert disk.read(str(path)) == b"code"


def test_nothing_is_written_where_others_could_change_it(written, monkeypatch):
    monkeypatch.setenv("ARRAYBRIDGE_CACHE_DIR", str(written.parent))
    assert disk.problem() is None
    written.parent.chmod(0o777)
    disk.write(str(written), b"other")
    assert b"other" not in written.read_bytes()
    assert [file.name for file in written.parent.iterdir()] == [written.name]
    assert "they can write to it" in disk.problem()
