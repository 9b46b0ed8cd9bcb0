"""The disk cache of compiled kernels: found again without Numba, and never an error."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from arraybridge.kernels import disk
from arraybridge.kernels.cpu import loader
from arraybridge.kernels.cpu.plan import plan
from arraybridge.kernels.cpu.plan_types import Key
from arraybridge.layout import canonical
from tests.support import processes
from tests.support.processes import ROOT

WORK = "import sys\nfrom tests.support.transposes import *\n"
KEY = plan(canonical((57, 301), (1204, 4), (4, 228), 4)).kernel


def python(script: str, folder: Path) -> str:
    """Run a script in a process that keeps its kernels in `folder`; what it printed."""
    return processes.python(WORK + script, env={"ARRAYBRIDGE_CACHE_DIR": str(folder)}).strip()


@pytest.fixture(scope="module")
def warm(tmp_path_factory) -> Path:
    """A folder with the kernel of four-byte items."""
    folder = tmp_path_factory.mktemp("kernels")
    assert python("print(cached())", folder) == "False"
    return folder


@pytest.fixture
def filled(warm: Path, tmp_path: Path) -> Path:
    """A copy of `warm` to do harm to."""
    return shutil.copytree(warm, tmp_path / "kernels")


def of_items(folder: Path) -> Path:
    """The file of the inner kernel; the other is the nest."""
    (file,) = folder.glob("cpu-tile-*")
    assert len(list(folder.iterdir())) == 2
    return file


@pytest.fixture
def kept(filled: Path, monkeypatch) -> Path:
    """The one file of this process's folder."""
    monkeypatch.setenv("ARRAYBRIDGE_CACHE_DIR", str(filled))
    assert loader.is_stored(KEY)
    return of_items(filled)


class TestFoundAgain:
    def test_without_numba(self, warm: Path) -> None:
        code = "sys.modules['arraybridge.kernels.cpu.loops'] = None\n"
        assert python(code + 'print(cached(), "numba" in sys.modules)', warm) == "True False"

    @pytest.mark.parametrize("name", ["NUMBA_OPT", "NUMBA_CPU_FEATURES", "NUMBA_CPU_NAME"])
    def test_other_settings_are_another_kernel(self, kept: Path, monkeypatch, name: str) -> None:
        monkeypatch.setenv(name, "1")
        assert not loader.is_stored(KEY)

    def test_other_sources_are_another_kernel(self, kept: Path, tmp_path: Path, monkeypatch):
        folder = shutil.copytree(ROOT / "kernels/cpu", tmp_path / "cpu")
        before = disk.dependencies(str(folder))
        with open(folder / "loops.py", "a") as source:
            source.write("# changed\n")
        assert disk.dependencies(str(folder)) != before
        monkeypatch.setattr(loader, "_dependencies", lambda: before)
        assert not loader.is_stored(KEY)


class TestHarm:
    @pytest.mark.parametrize(
        "harm",
        [
            lambda data: b"",
            lambda data: data[:-1],
            lambda data: data + b"\0",
            lambda data: data[:-9] + bytes([data[-9] ^ 1]) + data[-8:],
        ],
        ids=["empty", "short", "long", "flipped"],
    )
    def test_damage_is_seen(self, kept: Path, harm) -> None:
        kept.write_bytes(harm(kept.read_bytes()))
        assert disk.read(str(kept)) is None
        assert not loader.is_stored(KEY)

    @pytest.mark.heavy
    def test_code_without_its_function_costs_time_only(self, filled: Path) -> None:
        file = of_items(filled)
        whole = disk.read(str(file))
        assert whole is not None
        disk.write(str(file), whole.replace(b"arraybridge_kernel", b"another__function_"))
        assert python("cached(); print(loader.unavailable())", filled) == "None"
        assert disk.read(str(file)) == whole  # mended

    def test_full_disk_costs_time_only(self, tmp_path: Path, monkeypatch) -> None:
        def no_space(*args):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setenv("ARRAYBRIDGE_CACHE_DIR", str(tmp_path))
        monkeypatch.setattr(disk.os, "replace", no_space)
        disk.write(str(tmp_path / "file"), b"code")
        assert list(tmp_path.iterdir()) == []  # nothing is left behind

    @pytest.mark.parametrize("several", [2, pytest.param(4, marks=pytest.mark.heavy)])
    def test_processes_that_fill_it_at_once(self, tmp_path: Path, several: int) -> None:
        def start(_):
            return python("print(cached())", tmp_path / "kernels")

        with ThreadPoolExecutor(several) as pool:
            assert "False" in set(pool.map(start, range(several))) <= {"True", "False"}
        assert disk.read(str(of_items(tmp_path / "kernels"))) is not None

    def test_code_that_calls_numba_is_not_run(self, tmp_path: Path, monkeypatch) -> None:
        from arraybridge.kernels.cpu import loops

        def allocating(record, dst, src, start, stop):
            np.empty(record)[0] = 1

        monkeypatch.setenv("ARRAYBRIDGE_CACHE_DIR", str(tmp_path))
        monkeypatch.setattr(loops, "nest", lambda *key, **more: allocating)
        with pytest.raises(RuntimeError, match=r"a kernel calls .*NRT"):
            loader._made(Key("nest", vector=KEY.vector))
        assert list(tmp_path.iterdir()) == []


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


# Object code is loaded only from files that this user alone can write.

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
