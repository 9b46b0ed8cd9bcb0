"""Packages for a machine with a GPU and without a package index: python -m benchmarks.gpu.carry [--python 3.12].

Downloads the wheels of requirements/carry.txt for Linux on x86-64 into the folder ``.carry`` of the repository, which
git ignores, and puts the C extension beside them. `python -m benchmarks.gpu` uses that folder where it exists.
"""

from __future__ import annotations

import argparse
import atexit
import os
import re
import shutil
import site
import subprocess
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".carry"
COMPILED = ROOT / "arraybridge" / "_native.abi3.so", ROOT / "kernels" / "cpu" / "_kernels.so"
LIMIT = 64 << 20  # bytes: the limit for copies to some such machines

# What pip takes for a machine with glibc 2.28 or later: it matches each of them exactly.
PLATFORMS = ("2_28", "2_27", "2_17", "2_12")
# NVVM's wheel has a compiler as well, of as much again, that Numba does not run.
NEEDED_OF_NVVM = re.compile(r".*(libnvvm\.so\.4|libdevice\.10\.bc|\.dist-info/.*)")


def fill(python: str) -> None:
    """Fill the folder for a version of Python, such as "3.12"."""
    for old in (*FOLDER.glob("*.whl"), *FOLDER.glob("*.so")):
        old.unlink()
    command = [sys.executable, *"-m pip download --quiet --no-deps --only-binary=:all:".split()]
    command += ["--python-version", python]
    for version in PLATFORMS:
        command += ["--platform", f"manylinux_{version}_x86_64"]
    command += ["--dest", str(FOLDER), "--requirement", str(ROOT / "requirements" / "carry.txt")]
    subprocess.run(command, check=True)
    for wheel in FOLDER.glob("nvidia_nvvm-*.whl"):
        trim(wheel)
    for file in filter(Path.exists, COMPILED):
        shutil.copy(file, FOLDER)
    files = {file.name: file.stat().st_size for file in sorted(FOLDER.iterdir())}
    print(*(f"{size / 2**20:6.1f} MiB  {name}" for name, size in files.items()), sep="\n")
    total = sum(files.values())
    print(f"{total / 2**20:6.1f} MiB  in {FOLDER.name}")
    if total > LIMIT:
        sys.exit(
            f"{FOLDER.name} has {total:,} bytes, and {LIMIT:,} can be carried: take a package out of requirements/carry.txt"
        )


def trim(wheel: Path) -> None:
    """Keep only what Numba loads of NVVM's wheel."""
    small = wheel.with_suffix(".tmp")
    with ZipFile(wheel) as whole, ZipFile(small, "w", ZIP_DEFLATED) as trimmed:
        for entry in whole.infolist():
            if NEEDED_OF_NVVM.fullmatch(entry.filename):
                trimmed.writestr(entry, whole.read(entry), ZIP_DEFLATED)
    small.replace(wheel)


def use() -> None:
    """Let this process and its children import the carried packages that are not installed here.

    The wheels are unpacked into a temporary folder, which comes behind those of the installed packages: JAX loads
    CUDA's libraries from the first folder ``nvidia/cu13``. NVVM is shown to the loader: Numba looks for the library in the
    folders of installed packages alone, and for libdevice by the package's metadata.
    """
    wheels = [wheel for wheel in sorted(FOLDER.glob("*.whl")) if _serves(wheel.name)]
    for file in COMPILED:
        if (FOLDER / file.name).exists() and not file.exists():
            shutil.copy(FOLDER / file.name, file)
    if not wheels:
        return
    folder = tempfile.mkdtemp(prefix="arraybridge-carried-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for wheel in wheels:
        with ZipFile(wheel) as packed:
            packed.extractall(folder)
    sys.path.append(folder)
    _extend("PYTHONPATH", *site.getsitepackages(), folder)
    _extend("LD_LIBRARY_PATH", os.path.join(folder, "nvidia", "cu13", "lib"))


def _extend(variable: str, *folders: str) -> None:
    os.environ[variable] = os.pathsep.join(filter(None, [os.environ.get(variable), *folders]))


def _serves(wheel: str) -> bool:
    """Whether a wheel, by its file's name, is for this Python, and its package is not installed."""
    name, _, python, *_ = wheel.split("-")
    try:
        distribution(name)
    except PackageNotFoundError:
        return (
            "py3" in python.split(".") or python == f"cp{sys.version_info[0]}{sys.version_info[1]}"
        )
    return False


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default="3.12", help="the version of that machine's")
    fill(parser.parse_args().python)
