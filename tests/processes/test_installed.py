"""Two projects with a package `arraybridge`, in one environment: either order, and afterwards."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

import arraybridge as ab
from tests.release.test_packaging import ROOT, modules
from tests.support.processes import run_python

# What the other project has, as far as it matters: names that are modules or packages here, too.
THEIRS = {
    "__init__.py": "from .decorators import numpy",
    "decorators.py": "from arraybridge.libraries import Array as numpy",
    "libraries.py": "class Array: ...",
}


def wheel(folder: Path, name: str, version: str, files: dict[str, bytes]) -> Path:
    """Write a wheel of pure Python, by hand: quicker than a build."""
    info = f"{name.replace('-', '_')}-{version}.dist-info"
    files = files | {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    digests = {path: hashlib.sha256(data).digest() for path, data in files.items()}
    record = "".join(
        f"{path},sha256={base64.urlsafe_b64encode(digests[path]).rstrip(b'=').decode()},{len(data)}\n"
        for path, data in files.items()
    )
    made = folder / f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(made, "w") as archive:
        for path, data in files.items():
            archive.writestr(path, data)
        archive.writestr(f"{info}/RECORD", f"{record}{info}/RECORD,,\n")
    return made


class Environment:
    """A virtual environment that sees the packages of this one behind its own."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder, with_pip=False)
        self.python = folder / "bin" / "python"
        (site,) = folder.glob("lib/*/site-packages")
        self.site = site.resolve()
        (site / "behind.pth").write_text(sysconfig.get_path("purelib"))

    def pip(self, *args: str) -> None:
        command = [sys.executable, "-m", "pip", "--isolated", "--python", str(self.python), *args]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    def install(self, *wheels: Path) -> None:
        flags = ("--no-index", "--no-deps", "--no-compile", "--force-reinstall")
        self.pip("install", *flags, *map(str, wheels))

    def run(self, *args: str) -> subprocess.CompletedProcess[str]:
        command = [str(self.python), "-P", *args]
        env = {"ARRAYBRIDGE_CACHE_DIR": str(self.site / "cache")}
        return subprocess.run(command, capture_output=True, text=True, cwd=self.site, env=env)


@pytest.mark.skipif(sys.platform == "win32", reason="the folders of virtual environments")
def test_two_projects_in_one_folder_are_told_apart(tmp_path: Path) -> None:
    pytest.importorskip("pip")
    sources = {
        name: (ROOT / name.removeprefix("arraybridge/") if "/kernels/" in name else ROOT / name)
        for name in modules()
    }
    files = {name: path.read_bytes() for name, path in sources.items()}
    ours = wheel(tmp_path, "arraybridge-dlpack", ab.__version__, files)
    files = {f"arraybridge/{name}": text.encode() for name, text in THEIRS.items()}
    theirs = wheel(tmp_path, "arraybridge", "0.5.2", files)
    there = Environment(tmp_path / "environment")
    both = "arraybridge and arraybridge-dlpack have one import name, arraybridge"
    remove = "`pip uninstall arraybridge arraybridge-dlpack`"

    there.install(ours)
    said = there.run("-m", "arraybridge", "info", "--json")
    answer = json.loads(said.stdout)["installation"]
    assert answer["folder"] == str(there.site / "arraybridge")
    assert "arraybridge-dlpack" in [each["name"] for each in answer["distributions"]]

    there.install(theirs)
    for args in (("-c", "import arraybridge"), ("-m", "arraybridge", "--version")):
        said = there.run(*args)
        assert said.returncode == 1
        assert f"ImportError: {both}: run {remove}" in said.stderr

    there.install(ours)  # ours works again; theirs cannot, and is reported
    said = there.run("-m", "arraybridge", "--version")
    assert said.stdout == f"arraybridge {ab.__version__}\n", said.stderr
    said = there.run("-m", "arraybridge", "info", "--json")
    (problem,) = json.loads(said.stdout)["installation"]["problems"]
    assert problem.startswith(f"{both}: run {remove}")

    there.pip("uninstall", "--yes", "arraybridge")  # and took our __init__.py along
    said = there.run("-m", "arraybridge", "--version")
    assert said.returncode == 1
    assert "run `pip install --force-reinstall --no-deps arraybridge-dlpack`" in said.stderr


def test_metadata_that_nobody_can_read(tmp_path: Path) -> None:
    for number, (name, text) in enumerate(
        [
            ("RECORD", b"arraybridge/__init__.py,sha256=\xff,1\n"),
            ("RECORD", b"\narraybridge/__init__.py\n\narraybridge/x,md5=1\n"),
            ("direct_url.json", b"no JSON {"),
            ("direct_url.json", b'{"dir_info": {"editable": true}}'),
            ("direct_url.json", b"[]"),
            ("METADATA", b""),
        ]
    ):  # what pip leaves of an installation: version 1.0 of a distribution
        info = tmp_path / f"odd{number}-1.0.dist-info"
        info.mkdir()
        head = f"Metadata-Version: 2.1\nName: odd{number}\nVersion: 1.0\n"
        (info / "METADATA").write_text(head)
        (info / "top_level.txt").write_text("arraybridge\n")
        (info / name).write_bytes(text)
    env = {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    done = run_python("-m", "arraybridge", "info", env=env)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"arraybridge is loaded from {ROOT / 'arraybridge'}" in done.stdout
