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
from arraybridge.installed import describe, owners, problems

from .test_packaging import ROOT, modules

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
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            cwd=self.site,
            env={"ARRAYBRIDGE_CACHE_DIR": str(self.site / "cache")},
        )


@pytest.mark.skipif(sys.platform == "win32", reason="the folders of virtual environments")
def test_two_projects_in_one_folder_are_told_apart(tmp_path: Path) -> None:
    pytest.importorskip("pip")
    sources = {
        name: (ROOT / name.removeprefix("arraybridge/") if "/kernels/" in name else ROOT / name)
        for name in modules()
    }
    ours = wheel(
        tmp_path,
        "arraybridge-dlpack",
        ab.__version__,
        {name: path.read_bytes() for name, path in sources.items()},
    )
    theirs = wheel(
        tmp_path,
        "arraybridge",
        "0.5.2",
        {f"arraybridge/{name}": text.encode() for name, text in THEIRS.items()},
    )
    there = Environment(tmp_path / "environment")
    site, folder = [str(there.site)], there.site / "arraybridge"

    there.install(ours)
    (owner,) = owners(site)
    assert (str(owner), owner.folder) == (f"arraybridge-dlpack {ab.__version__}", folder)
    assert problems(site) == []
    assert describe(site)[1:] == [f"{owner} is in {folder}, and is not loaded"]
    said = there.run("-c", "from arraybridge.installed import describe; print(describe()[0])")
    assert said.stdout == f"arraybridge is loaded from {folder} ({owner})\n"

    there.install(theirs)
    (problem,) = problems(site)
    assert f"changed or missing of {owner}: __init__.py)" in problem
    assert "`pip uninstall arraybridge arraybridge-dlpack`" in problem
    for args in (("-c", "import arraybridge"), ("-m", "arraybridge", "--version")):
        said = there.run(*args)
        assert said.returncode == 1
        assert said.stderr.endswith(f"ImportError: {problem}\n")

    there.install(ours)  # ours works again; theirs cannot, and is told of
    (problem,) = problems(site)
    assert "changed or missing of arraybridge 0.5.2: __init__.py)" in problem
    said = there.run("-m", "arraybridge", "--version")
    assert said.stdout == f"arraybridge {ab.__version__}\n", said.stderr

    there.pip("uninstall", "--yes", "arraybridge")  # and took our __init__.py along
    (problem,) = problems(site)
    assert f"changed or missing, of {owner}: __init__.py: run `pip install" in problem
    said = there.run("-m", "arraybridge", "--version")
    assert said.returncode == 1
    assert said.stderr.endswith(f"{problem}\n")


def metadata(folder: Path, name: str, **files: bytes) -> None:
    """Write what pip leaves of an installation: version 1.0 of a distribution."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "top_level.txt").write_text("arraybridge\n")
    for file, text in files.items():
        (info / file).write_bytes(text)


@pytest.mark.parametrize(
    ("name", "checkout", "whose", "more"),
    [
        ("arraybridge-dlpack", ROOT, "arraybridge-dlpack 1.0, editable", []),
        ("another", ROOT, "not installed by pip", []),
        (
            "another",
            Path("/a b"),
            "not installed by pip",
            ["another 1.0 is in /a b/arraybridge, and is not loaded"],
        ),
    ],
)
def test_an_editable_installation_is_told_of(
    tmp_path: Path, name: str, checkout: Path, whose: str, more: list[str]
) -> None:
    told = {"dir_info": {"editable": True}, "url": checkout.as_uri()}
    metadata(tmp_path, name, **{"direct_url.json": json.dumps(told).encode()})
    loaded = Path(ab.__file__).parent
    assert describe([str(tmp_path)]) == [f"arraybridge is loaded from {loaded} ({whose})", *more]


def test_the_first_files_that_are_missing_are_named(tmp_path: Path) -> None:
    """Those without a hash, as what Python compiled, need not be there."""
    lines = [f"arraybridge/{name}.py,sha256=0,1" for name in "abcde"]
    record = "\n".join([*lines, "arraybridge/__pycache__/a.pyc,,"])
    metadata(tmp_path, "odd", RECORD=record.encode())
    (problem,) = problems([str(tmp_path)])
    assert "changed or missing, of odd 1.0: a.py, b.py, c.py and 2 more: run `pip" in problem


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("RECORD", b"arraybridge/__init__.py,sha256=\xff,1\n"),
        ("RECORD", b"\narraybridge/__init__.py\n\narraybridge/x,md5=1\n"),
        ("direct_url.json", b"no JSON {"),
        ("direct_url.json", b'{"dir_info": {"editable": true}}'),
        ("direct_url.json", b"[]"),
        ("METADATA", b""),
    ],
)
def test_metadata_that_nobody_can_read(tmp_path: Path, name: str, text: bytes) -> None:
    metadata(tmp_path, "odd", **{name: text})
    path = [str(tmp_path), *sys.path]
    assert describe(path)[0].startswith("arraybridge is loaded from")
    if text.endswith(b"\xff,1\n"):  # which `packages_distributions` cannot read either
        done = subprocess.run(
            [sys.executable, "-m", "arraybridge", "info"],
            env=os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")


def test_files_in_an_archive_are_not_missing(tmp_path: Path) -> None:
    made = wheel(tmp_path, "arraybridge-dlpack", "9.0", {"arraybridge/__init__.py": b""})
    (owner,) = owners([str(made)])
    assert owner.version == "9.0"
    assert not problems([str(made)])
