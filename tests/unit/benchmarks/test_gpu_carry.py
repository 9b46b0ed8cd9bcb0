"""What `make gpu-carry` packs, and how `make gpu` uses it."""

import subprocess
import sys
from zipfile import ZipFile

import pytest

from benchmarks.gpu import carry
from tests.support.processes import ROOT

NVVM = "nvidia_nvvm-13.0.88-py3-none-manylinux2010_x86_64.whl"


def wheel(folder, name, **files):
    """A wheel with these modules: their sources, by name."""
    distribution, version, *_ = name.split("-")
    with ZipFile(folder / name, "w") as packed:
        for module, source in files.items():
            packed.writestr(f"{module}.py", source)
        packed.writestr(
            f"{distribution}-{version}.dist-info/METADATA",
            f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n",
        )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(carry, "FOLDER", tmp_path / "carried")
    carry.FOLDER.mkdir()
    return carry.FOLDER


USE = '''
import subprocess, sys
from pathlib import Path
from benchmarks.gpu import carry
carry.FOLDER = Path(sys.argv[1])
carry.use()
again = """
import carried_alone, os, pluggy
print(carried_alone.__file__, hasattr(pluggy, "carried"), os.environ["LD_LIBRARY_PATH"])
"""
import carried_alone, pluggy
assert not hasattr(pluggy, "carried")
print(subprocess.check_output([sys.executable, "-c", again], text=True).strip())
try:
    import for_another_python
except ImportError:
    print("only what serves")
'''


def test_carried_wheels_come_behind_installed_packages(folder):
    wheel(folder, "lacking-1-py3-none-any.whl", carried_alone="", pluggy="carried = True")
    wheel(folder, "another-1-cp27-cp27-linux_x86_64.whl", for_another_python="")
    wheel(folder, "pytest-1-py3-none-any.whl", carried_alone="raise RuntimeError")  # installed here
    run = subprocess.run(
        [sys.executable, "-c", USE, str(folder)], cwd=ROOT, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    said, last = run.stdout.splitlines()
    place, shadowed, loader = said.split()
    assert place.endswith("carried_alone.py")
    assert shadowed == "False"
    assert loader.endswith("nvidia/cu13/lib")
    assert last == "only what serves"


def test_nothing_carried_changes_nothing(folder, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "as it was")
    before = list(sys.path)
    carry.use()
    folder.rmdir()
    carry.use()
    assert sys.path == before
    assert carry.os.environ["PYTHONPATH"] == "as it was"


@pytest.fixture
def pip(folder, monkeypatch):
    """In the place of pip: it downloads NVVM, with a compiler that is not needed."""

    def download(command, check):
        assert command[command.index("--python-version") + 1] == "3.12"
        folder.mkdir()
        with ZipFile(folder / NVVM, "w") as packed:
            packed.writestr("nvidia/cu13/lib/libnvvm.so.4", b"library" * 1000)
            packed.writestr("nvidia/cu13/nvvm/bin/cicc", b"compiler")
            packed.writestr("nvidia/cu13/nvvm/libdevice/libdevice.10.bc", b"bitcode")
            packed.writestr("nvidia_nvvm-13.0.88.dist-info/METADATA", b"Name: nvidia-nvvm")

    monkeypatch.setattr(carry.subprocess, "run", download)


def test_of_nvvm_what_numba_loads_is_carried(folder, pip):
    (folder / "left-over").touch()
    carry.fill("3.12")
    with ZipFile(folder / NVVM) as packed:
        assert sorted(name.rsplit("/")[-1] for name in packed.namelist()) == [
            "METADATA",
            "libdevice.10.bc",
            "libnvvm.so.4",
        ]
        assert packed.read("nvidia/cu13/lib/libnvvm.so.4") == b"library" * 1000
    assert not (folder / "left-over").exists()


def test_a_folder_that_is_too_large_is_refused(folder, pip, monkeypatch):
    monkeypatch.setattr(carry, "LIMIT", 100)
    with pytest.raises(SystemExit, match=r"bytes, and 100 can be carried: take a package out"):
        carry.fill("3.12")
