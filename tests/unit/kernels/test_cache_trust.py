"""Object code is loaded only from files that this user alone can write."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from arraybridge.kernels import disk

root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can play another user")
NOBODY = 65534


@pytest.fixture
def kept(tmp_path: Path) -> Path:
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
def test_what_others_could_have_written_is_not_read(kept, how):
    PLANTED[how](kept)
    assert disk.read(str(kept)) is None


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


def test_nothing_is_written_where_others_could_change_it(kept, monkeypatch):
    monkeypatch.setenv("ARRAYBRIDGE_CACHE_DIR", str(kept.parent))
    assert disk.problem() is None
    kept.parent.chmod(0o777)
    disk.write(str(kept), b"other")
    assert b"other" not in kept.read_bytes()
    assert [file.name for file in kept.parent.iterdir()] == [kept.name]
    assert "they can write to it" in disk.problem()
