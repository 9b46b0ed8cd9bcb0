"""The disk cache of compiled kernels: found again without Numba, and never an error."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from arraybridge.kernels import disk
from arraybridge.kernels.cpu import cache
from arraybridge.kernels.cpu.plan import plan
from arraybridge.layout import canonical
from tests.support import processes
from tests.support.processes import ROOT

#: `transpose()` copies a matrix by the compiled kernel and checks it; `cached()` is whether the
#: kernel that it takes came from the disk.
WORK = """
import sys
import numpy as np
from arraybridge.kernels.cpu import copying, loader, plan
from arraybridge.layout import canonical

def transpose(dtype="f4"):
    a = np.arange(301 * 57, dtype=dtype).reshape(301, 57)
    b = np.empty((57, 301), dtype)
    made = plan.plan(canonical(b.shape, b.strides, a.T.strides, a.itemsize))
    assert copying.copy_planned(b.ctypes.data, a.ctypes.data, made)
    assert (b == a.T).all()
    return made.kernel

def cached(dtype="f4"):
    return loader.load("nest", *transpose(dtype)).cached

transpose()
"""


def process(script: str, folder: Path | None, root: Path = ROOT, **env: str) -> subprocess.Popen:
    """Start a script in a fresh process that keeps its kernels in `folder`."""
    told = {} if folder is None else {"ARRAYBRIDGE_CACHE_DIR": str(folder)}
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", script],
        env={**os.environ, "PYTHONPATH": str(root), **told, **env},
        cwd=root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def python(script: str, folder: Path | None, root: Path = ROOT, **env: str) -> str:
    """Run it, and return what it printed."""
    told = {} if folder is None else {"ARRAYBRIDGE_CACHE_DIR": str(folder)}
    return processes.python(script, root=root, env={**told, **env}).strip()


@pytest.fixture(scope="module")
def warm(tmp_path_factory) -> Path:
    """A folder with the kernel of four-byte items."""
    folder = tmp_path_factory.mktemp("kernels")
    assert python(WORK + "print(cached())", folder) == "False"
    return folder


@pytest.fixture
def filled(warm: Path, tmp_path: Path) -> Path:
    """A copy of `warm` to do harm to."""
    return shutil.copytree(warm, tmp_path / "kernels")


class TestFoundAgain:
    def test_without_numba(self, warm: Path) -> None:
        code = 'print(cached(), "numba" in sys.modules)'
        assert python(WORK + code, warm) == "True False"

    def test_where_numba_cannot_be_imported(self, warm: Path) -> None:
        code = "import sys; sys.modules['arraybridge.kernels.cpu.nest'] = None\n" + WORK
        assert python(code + "print(cached())", warm) == "True"

    def test_one_file_a_kernel(self, filled: Path) -> None:
        (file,) = filled.iterdir()
        assert file.name.startswith("nest-tile-4-")
        code = WORK + "transpose('f8'); print(cached('f8'), cached())"
        assert python(code, filled) == "False True"
        assert len(list(filled.iterdir())) == 2

    def test_other_settings_are_another_kernel(self, filled: Path) -> None:
        assert python(WORK + "print(cached())", filled, NUMBA_OPT="1") == "False"
        assert python(WORK + "print(cached())", filled, NUMBA_CPU_FEATURES="") == "False"
        assert len(list(filled.iterdir())) == 3

    def test_other_sources_are_another_kernel(self, filled: Path, tmp_path: Path) -> None:
        root = tmp_path / "changed"
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "arraybridge", root / "arraybridge", ignore=ignore)
        assert python(WORK + "print(cached())", filled, root) == "True"
        with open(root / "arraybridge/kernels/cpu/nest.py", "a") as source:
            source.write("# changed\n")
        assert python(WORK + "print(cached())", filled, root) == "False"

    def test_is_cached(self, filled: Path, monkeypatch) -> None:
        monkeypatch.setenv("ARRAYBRIDGE_CACHE_DIR", str(filled))
        key = plan(canonical((57, 301), (1204, 4), (4, 228), 4)).kernel
        assert cache.is_cached("nest", *key)
        assert not cache.is_cached("nest", *key._replace(width=2))
        (file,) = filled.iterdir()
        file.write_bytes(file.read_bytes()[:-1])
        assert not cache.is_cached("nest", *key)


class TestHarm:
    harms = pytest.mark.parametrize(
        "harm",
        [
            lambda data: b"",
            lambda data: b"no kernel",
            lambda data: data[: len(data) // 2],
            lambda data: data[:-1],
            lambda data: data + b"\0",
            lambda data: data[:-9] + bytes([data[-9] ^ 1]) + data[-8:],
            lambda data: data.replace(b"format 1", b"format 0"),
        ],
        ids=["empty", "other", "half", "short", "long", "flipped", "format"],
    )

    @harms
    def test_damage_is_seen(self, filled: Path, harm) -> None:
        (file,) = filled.iterdir()
        assert disk.read(str(file)) is not None
        file.write_bytes(harm(file.read_bytes()))
        assert disk.read(str(file)) is None

    @pytest.mark.heavy
    @harms
    def test_damage_costs_time_only(self, filled: Path, harm) -> None:
        (file,) = filled.iterdir()
        whole = file.read_bytes()
        file.write_bytes(harm(whole))
        assert python(WORK + "print(cached())", filled) == "False"
        assert len(file.read_bytes()) == len(whole)  # mended

    @pytest.mark.heavy
    def test_code_without_its_function_costs_time_only(self, filled: Path) -> None:
        (file,) = filled.iterdir()
        whole = disk.read(str(file))
        assert whole is not None
        harmed = whole.replace(b"arraybridge_kernel", b"another__function_")
        file.write_bytes(disk._MAGIC + disk._checksum(str(file), harmed) + harmed)
        assert python(WORK + "print(cached(), loader.unavailable())", filled) == "False None"
        assert disk.read(str(file)) == whole  # mended

    def test_a_file_under_anothers_name(self, filled: Path, monkeypatch) -> None:
        monkeypatch.setenv("ARRAYBRIDGE_CACHE_DIR", str(filled))
        (file,) = filled.iterdir()
        os.rename(file, cache._path("nest", (2,)))
        assert not cache.is_cached("nest", 2)

    def test_a_folder_in_the_files_place(self, filled: Path) -> None:
        (file,) = filled.iterdir()
        file.unlink()
        file.mkdir()
        assert python(WORK + "print(cached())", filled) == "False"

    @pytest.mark.heavy
    def test_unwritable_folder_costs_time_only(self, tmp_path: Path) -> None:
        """A file stands where the folder should be: that holds for root too, whom no mode stops."""
        blocked = tmp_path / "blocked"
        blocked.touch()
        assert python(WORK + "print(cached())", blocked / "kernels") == "False"
        assert python(WORK + "print(cached())", blocked) == "False"

    def test_no_home_costs_time_only(self, tmp_path: Path) -> None:
        env = {"NUMBA_CACHE_DIR": "", "XDG_CACHE_HOME": "", "ARRAYBRIDGE_CACHE_DIR": ""}
        blocked = tmp_path / "blocked"
        blocked.touch()
        code = WORK + "print(cached())"
        assert python(code, None, HOME=str(blocked / "home"), **env) == "False"

    def test_full_disk_costs_time_only(self, tmp_path: Path, monkeypatch) -> None:
        def no_space(*args):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setenv("ARRAYBRIDGE_CACHE_DIR", str(tmp_path))
        monkeypatch.setattr(disk.os, "replace", no_space)
        disk.write(str(tmp_path / "file"), b"code")
        assert list(tmp_path.iterdir()) == []  # nothing is left behind

    @pytest.mark.parametrize("several", [2, pytest.param(4, marks=pytest.mark.heavy)])
    def test_processes_that_fill_it_at_once(self, tmp_path: Path, several: int) -> None:
        started = [process(WORK, tmp_path / "kernels") for _ in range(several)]
        for one in started:
            said = one.communicate(timeout=120)
            assert one.returncode == 0, said
        (file,) = (tmp_path / "kernels").iterdir()
        assert disk.read(str(file)) is not None

    def test_code_that_calls_numba_is_not_kept(self, tmp_path: Path, monkeypatch) -> None:
        import numba

        from arraybridge.kernels.cpu import nest

        def allocating(record):
            np.empty(record)[0] = 1

        def compiled():
            return numba.cfunc(numba.void(numba.int64))(allocating)

        monkeypatch.setenv("ARRAYBRIDGE_CACHE_DIR", str(tmp_path))
        monkeypatch.setattr(nest, "compiled", compiled)
        kernel = cache.compiled("nest")
        kernel.call(4)
        assert not kernel.cached
        assert list(tmp_path.iterdir()) == []


class TestFolder:
    @pytest.fixture(autouse=True)
    def nothing_told(self, monkeypatch, tmp_path: Path) -> None:
        for name in ("ARRAYBRIDGE_CACHE_DIR", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("HOME", str(tmp_path))

    def test_the_users_own(self, tmp_path: Path, monkeypatch) -> None:
        monkeypatch.setattr(sys, "platform", "linux")
        assert disk.folder() == str(tmp_path / ".cache/arraybridge")
        monkeypatch.setattr(sys, "platform", "darwin")
        assert disk.folder() == str(tmp_path / "Library/Caches/arraybridge")

    def test_xdg(self, tmp_path: Path, monkeypatch) -> None:
        monkeypatch.setattr(sys, "platform", "linux")
        monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
        assert disk.folder() == "/elsewhere/arraybridge"
        monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # to be ignored, the specification says
        assert disk.folder() == str(tmp_path / ".cache/arraybridge")

    def test_told(self, monkeypatch) -> None:
        monkeypatch.setenv("NUMBA_CACHE_DIR", "/numba")
        assert disk.folder() == "/numba/arraybridge"
        monkeypatch.setenv("ARRAYBRIDGE_CACHE_DIR", "/ours")
        assert disk.folder() == "/ours"

    @pytest.mark.parametrize("variable", ["", None])
    def test_an_empty_home_is_none(self, variable, tmp_path: Path, monkeypatch) -> None:
        """And the folder is that of the user's account, as where it is not set."""
        pwd = pytest.importorskip("pwd")
        monkeypatch.setattr(sys, "platform", "linux")
        monkeypatch.delenv("HOME")
        if variable is not None:
            monkeypatch.setenv("HOME", variable)
        own = pwd.getpwuid(os.getuid()).pw_dir
        assert disk.folder() == f"{own}/.cache/arraybridge"
        monkeypatch.setenv("XDG_CACHE_HOME", "relative")
        assert disk.folder() == f"{own}/.cache/arraybridge"

        def nameless(uid):
            raise KeyError(uid)

        monkeypatch.setattr(pwd, "getpwuid", nameless)
        assert disk.folder() is None
        monkeypatch.setattr(pwd, "getpwuid", lambda uid: type("", (), {"pw_dir": ""}))
        assert disk.folder() is None

    def test_no_home(self, monkeypatch) -> None:
        monkeypatch.setattr(disk.os.path, "expanduser", lambda path: path)
        assert disk.folder() is None
        assert cache._path("nest", ()) is None
