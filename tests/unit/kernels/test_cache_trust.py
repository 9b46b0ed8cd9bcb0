"""Object code is loaded only from files that this user alone can write."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from arraybridge.kernels import disk
from tests.support.processes import python

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no POSIX owners and modes")
root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can play another user"
)
NOBODY = 65534


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A file that is read."""
    path = tmp_path / "way" / "kernels" / "nest.kernel"
    disk.write(str(path), b"code")
    assert disk.read(str(path)) == b"code"
    return path


def give(path: Path) -> None:
    os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


def another(path: Path) -> Path:
    """The same bytes in another folder of the same kind."""
    other = path.parent.parent / "other" / path.name
    disk.write(str(other), b"code")
    return other


def a_link(path: Path) -> None:
    other = another(path)
    path.unlink()
    path.symlink_to(other)


def a_hard_link(path: Path) -> None:
    other = another(path)
    path.unlink()
    path.hardlink_to(other)


def a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir(0o700)


def a_device(path: Path) -> None:
    path.unlink()
    try:
        os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 5))  # zeros without end
    except PermissionError:
        pytest.skip("no devices to be made here")


def a_nobodys_link_on_the_way(path: Path) -> None:
    path.parent.rename(path.parent.with_name("moved"))
    path.parent.symlink_to("moved")
    give(path.parent)


PLANTED = {
    "written by a group": lambda path: path.chmod(0o620),
    "written by all": lambda path: path.chmod(0o602),
    "in a folder of a group": lambda path: path.parent.chmod(0o770),
    "in a folder of all": lambda path: path.parent.chmod(0o777),
    "in a sticky folder": lambda path: path.parent.chmod(0o1777),
    "below a folder of all": lambda path: path.parent.parent.chmod(0o777),
    "a link": a_link,
    "a hard link": a_hard_link,
    "a pipe": a_pipe,
    "a folder": a_folder,
}
BY_NOBODY = {
    "nobody's": give,
    "in nobody's folder": lambda path: give(path.parent),
    "below nobody's folder": lambda path: give(path.parent.parent),
    "through nobody's link": a_nobodys_link_on_the_way,
    "a device": a_device,
}


def refused(path: Path) -> bool:
    """Whether a file is not read; in a thread, so that what hangs fails."""
    found = []
    thread = threading.Thread(target=lambda: found.append(disk.read(str(path))), daemon=True)
    thread.start()
    thread.join(20)
    assert found, "reading hangs"
    return found == [None]


@pytest.mark.parametrize("how", PLANTED)
def test_what_others_could_have_written(kept, how):
    PLANTED[how](kept)
    assert refused(kept)


@root
@pytest.mark.parametrize("how", BY_NOBODY)
def test_what_another_user_has_written(kept, how):
    BY_NOBODY[how](kept)
    assert refused(kept)


def test_below_a_sticky_folder_like_tmp(kept):
    kept.parent.parent.chmod(0o1777)
    assert disk.read(str(kept)) == b"code"


def test_through_ones_own_link(kept, tmp_path):
    (tmp_path / "absolute").symlink_to(kept.parent)
    (tmp_path / "relative").symlink_to("way/../way/kernels/")
    for name in ("absolute", "relative"):
        assert disk.read(str(tmp_path / name / kept.name)) == b"code"
    (tmp_path / "endless").symlink_to("endless")
    assert disk.read(str(tmp_path / "endless" / kept.name)) is None


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_what_is_written_is_this_users_alone(tmp_path, umask):
    before = os.umask(umask)
    try:
        path = tmp_path / "a" / "b" / "nest.kernel"
        disk.write(str(path), b"code")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in path.parents[:2]} == {0o700}
    assert disk.read(str(path)) == b"code"


@pytest.mark.parametrize("how", ["in a folder of all", "below a folder of all"])
def test_nothing_is_written_where_others_could_change_it(kept, how):
    PLANTED[how](kept)
    disk.write(str(kept), b"other")
    assert b"other" not in kept.read_bytes()
    assert [file.name for file in kept.parent.iterdir()] == [kept.name]


def test_why(kept, monkeypatch):
    monkeypatch.setenv("ARRAYBRIDGE_CACHE_DIR", str(kept.parent))
    assert disk.problem() is None
    kept.parent.chmod(0o777)
    assert "not trusted, as others can write to it" in str(disk.problem())


@root
def test_a_copy_runs_no_other_users_code(tmp_path):
    shared = tmp_path / "numba"
    shared.mkdir()
    env = {"NUMBA_CACHE_DIR": str(shared), "ARRAYBRIDGE_CACHE_DIR": ""}
    work = "from tests.support.transposes import *; print(cached())"
    assert python(work, env=env) == "False\n"
    assert python(work, env=env) == "True\n"
    shared.chmod(0o1777)
    (file,) = (shared / "arraybridge").iterdir()
    for planted in (file, file.parent):
        give(planted)
    assert python(work, env=env) == "False\n"
    assert file.stat().st_uid == NOBODY  # as it was


@root
def test_another_user_has_a_cache_too(tmp_path):
    """Root's files are not this user's, who has a folder of their own."""
    for folder in (tmp_path, *tmp_path.parents[:3]):  # one more in a process of several
        folder.chmod(folder.stat().st_mode | 0o011)
    python(
        f"""
import os
from arraybridge.kernels import disk
path = {str(tmp_path / "roots" / "x.kernel")!r}
disk.write(path, b"code")
os.chmod(os.path.dirname(path), 0o755)
os.chmod(path, 0o644)
mine = {str(tmp_path / "mine" / "x.kernel")!r}
os.mkdir(os.path.dirname(mine), 0o700)
os.chown(os.path.dirname(mine), {NOBODY}, {NOBODY})
os.setuid({NOBODY})
assert disk.read(path) is None
disk.write(mine, b"code")
assert disk.read(mine) == b"code"
"""
    )
