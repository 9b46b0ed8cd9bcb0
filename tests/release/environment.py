"""The wheel or the sdist, installed in an empty environment, used, and removed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

PROGRAM = Path(__file__).with_name("program.py")

# Every module by the names that the wheel lists; without its library a module says so, no more.
IMPORTS = """\
import importlib, importlib.metadata, re
OPTIONAL = re.compile(r"arraybridge\\.(libraries\\.|xp\\.|kernels\\.cuda\\.)")
files = importlib.metadata.files("arraybridge-dlpack")
names = {f.with_suffix("").as_posix().replace("/", ".") for f in files if f.suffix == ".py"}
imported = 0
for name in sorted(name.removesuffix(".__init__") for name in names):
    try:
        importlib.import_module(name)
        imported += 1
    except (ImportError, AttributeError) as error:  # numba.cuda without numba-cuda is half there
        if not OPTIONAL.match(name) or "arraybridge" in (getattr(error, "name", None) or ""):
            raise
print(imported, "of", len(names), "modules import without any array library but NumPy")
"""


class Failed(Exception):
    """A command of the installation test, and what it said."""


def run(*command: str | Path, cwd: Path, **env: str) -> str:
    """Run a command in an empty folder, with none of the caller's Python settings."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env=inherited | env,
        capture_output=True,
        text=True,
        check=False,
        timeout=550,
    )
    if done.returncode:
        told = " ".join(map(str, command))[:200]
        raise Failed(f"{told}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def check(python: str, archive: Path, pins: Path, folder: Path, **env: str) -> str:
    """Install a wheel, or an sdist, for one Python into a folder, use it, remove it.

    Return a line on what was there. A wheel is expected to hold the C extension, what pip makes
    of an sdist not to.
    """
    venv, elsewhere = folder / "venv", folder / "elsewhere"
    elsewhere.mkdir(parents=True)
    run(python, "-m", "venv", venv, cwd=elsewhere)
    there = venv / "bin" / "python"
    pip = (there, "-m", "pip", "--disable-pip-version-check")
    # its requirements first, to see what its own installation adds
    asked = ("install", "-q", "--no-input", "-c", pins)
    # and pip's own environment for builds
    env |= {"PIP_CONSTRAINT": str(pins), "PIP_BUILD_CONSTRAINT": str(pins)}
    run(*pip, *asked, archive, cwd=elsewhere, **env)
    run(*pip, "uninstall", "-qy", "arraybridge-dlpack", cwd=elsewhere)
    before = _files(venv)
    run(*pip, *asked, "--no-deps", archive, cwd=elsewhere, **env)

    run(*pip, "check", cwd=elsewhere)
    (package,) = venv.glob("lib/*/site-packages/arraybridge")
    cache = {"ARRAYBRIDGE_CACHE_DIR": str(folder / "cache")}
    for turn in ("first", "again"):
        run(there, "-I", "-W", "error", PROGRAM, package.resolve(), turn, cwd=elsewhere, **cache)
    imported = run(there, "-I", "-c", IMPORTS, cwd=elsewhere).strip()
    for command in ((there, "-I", "-m", "arraybridge"), (venv / "bin" / "arraybridge",)):
        said = run(*command, "--version", cwd=elsewhere)
        if said.split()[1] not in archive.name:
            raise Failed(f"{command[-1]} --version: {said}")
    run(*command, "info", cwd=elsewhere)
    compiled = bool([*package.glob("_native.*")])
    if compiled != (archive.suffix == ".whl"):
        raise Failed(f"the C extension is {'' if compiled else 'not '}there")

    run(*pip, "uninstall", "-qy", "arraybridge-dlpack", cwd=elsewhere)
    if left := sorted(map(str, _files(venv) - before)):
        raise Failed(f"uninstalled, it leaves {', '.join(left)}")
    return f"{run(there, '--version', cwd=elsewhere).strip()}: {imported}"


def _files(venv: Path) -> set[Path]:
    """The files of an environment, but for what the interpreter caches of other packages."""
    return {
        path.relative_to(venv)
        for path in venv.rglob("*")
        if path.is_file() and (path.parent.name != "__pycache__" or "arraybridge" in path.parts)
    }
