"""``python -m tests.release``: build what is committed, check it, install it, put it into dist/."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PINS = str(ROOT / "requirements" / "pins.txt")
PINNED = {"PIP_CONSTRAINT": PINS, "PIP_BUILD_CONSTRAINT": PINS}  # older and newer pips
NO_COMPILER = {"CC": "/nonexistent"}
PROGRAM = Path(__file__).with_name("program.py")
NAME = "arraybridge-dlpack"
# What git has and an sdist need not: the code host's files, and the symlink to kernels/, which
# a build would pack as a second copy.
HOST = re.compile(r"\.github/|\.ci/|\.gitignore$|\.pre-commit-config\.yaml$|arraybridge/kernels$")
MADE = re.compile(r"PKG-INFO$|setup\.cfg$|[^/]+\.egg-info/")


def run(*command: str | Path, cwd: Path, **env: str) -> str:
    """Run a command with none of the caller's Python settings; return what it prints."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    words = list(map(str, command))
    done = subprocess.run(words, cwd=cwd, env=inherited | env, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(words)[:200]}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def build(checkout: Path, out: Path, *flags: str, **env: str) -> None:
    """Build the sdist and the wheel of the commit, dated as the commit is."""
    date = run("git", "log", "-1", "--format=%ct", cwd=checkout).strip()
    command = (sys.executable, "-m", "build", "--outdir", out, *flags, checkout)
    run(*command, cwd=checkout, SOURCE_DATE_EPOCH=date, **PINNED, **env)


def kernels(wheel: Path) -> bytes:
    """Return the library of compiled kernels."""
    with zipfile.ZipFile(wheel) as archive:
        return archive.read("arraybridge/kernels/cpu/_kernels.so")


def problems(checkout: Path, sdist: Path, compiled: Path, plain: Path) -> Iterator[str]:
    """Yield what is wrong with what was built, with a C compiler and without."""
    listed = run("git", "ls-files", cwd=checkout).splitlines()
    tracked = {name for name in listed if not HOST.match(name)}
    with tarfile.open(sdist) as archive:
        files = [member.name for member in archive.getmembers() if not member.isdir()]
    packed = {name.partition("/")[2] for name in files}
    packed = {name for name in packed if not MADE.match(name)}
    if tracked != packed:
        yield f"the sdist lacks {tracked - packed}, and holds, untracked, {packed - tracked}"
    for wheel in (compiled, plain):
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
        if any(name.endswith((".c", ".h", ".o")) for name in names):
            yield f"{wheel.name} holds sources of C"
        for file in ("arraybridge/_native.", "arraybridge/kernels/cpu/_kernels."):
            if any(name.startswith(file) for name in names) != (wheel is compiled):
                yield f"{wheel.name}: {file} is there, or not, against its name"
    if "-cp311-abi3-" not in compiled.name or not plain.name.endswith("-py3-none-any.whl"):
        yield f"{compiled.name} or {plain.name} is not called after what it holds"


def tagged(checkout: Path, tag: str) -> Iterator[str]:
    """Yield what does not agree with the tag of a release, ``vX.Y.Z``."""
    init = (checkout / "arraybridge" / "__init__.py").read_text()
    (version,) = re.findall(r'^__version__ = "(.+)"$', init, re.MULTILINE)
    if tag != f"v{version}" or "dev" in version:
        yield f"the tag is {tag}, the version {version}"
    heading = rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$"
    if not re.search(heading, (checkout / "CHANGELOG.md").read_text(), re.MULTILINE):
        yield f"CHANGELOG.md has no section `## [{version}] - YYYY-MM-DD`"
    for page in ("README.md", "docs/index.md", "docs/start/install.md"):
        if "not on PyPI" in (checkout / page).read_text():
            yield f"{page} says that this is not on PyPI"


def install(python: str, archive: Path, folder: Path, **env: str) -> None:
    """Install an archive in an empty environment, use it, and remove it."""
    venv = folder / "venv"
    folder.mkdir()
    run(python, "-m", "venv", venv, cwd=folder)
    there = venv / "bin" / "python"
    pip = (there, "-m", "pip", "--disable-pip-version-check")
    run(*pip, "install", "-q", "--no-input", "-c", PINS, archive, cwd=folder, **PINNED, **env)
    run(*pip, "check", cwd=folder)
    (package,) = venv.glob("lib/*/site-packages/arraybridge")
    compiled = "kernels" if archive.suffix == ".whl" else "none"
    run(there, "-I", "-W", "error", PROGRAM, package.resolve(), compiled, cwd=folder)
    run(venv / "bin" / "arraybridge", "info", cwd=folder)
    made = [*package.glob("_native.*"), *package.glob("kernels/cpu/_kernels.*")]
    if len(made) != (2 if archive.suffix == ".whl" else 0):
        sys.exit(f"{archive.name}: of the compiled files, there are {made}")
    run(*pip, "uninstall", "-qy", NAME, cwd=folder)
    if package.exists() and any(path.suffix == ".py" for path in package.rglob("*")):
        sys.exit(f"uninstalled, {archive.name} leaves {package}")
    shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    """Check a release; the exit status is 1 if it must not be uploaded."""
    parser = argparse.ArgumentParser(prog="python -m tests.release", description=__doc__)
    parser.add_argument("--tag", default="", help="what the commit is tagged: vX.Y.Z")
    parser.add_argument("pythons", nargs="*", default=[sys.executable], help="to install it with")
    args = parser.parse_args()
    if changed := run("git", "status", "--porcelain", cwd=ROOT):
        print(f"not committed, and so not in the release:\n{changed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="arraybridge-release-") as name:
        folder = Path(name)
        checkout, bare = folder / "checkout", folder / "plain"
        run("git", "clone", "--quiet", "--no-hardlinks", ROOT, checkout, cwd=ROOT)
        build(checkout, folder / "compiled")
        (sdist,), (wheel,) = (folder.glob(f"compiled/*{end}") for end in (".tar.gz", ".whl"))
        build(checkout, bare, "--wheel", "--no-isolation", "-x", **NO_COMPILER)
        (plain,) = bare.glob("*.whl")
        build(checkout, folder / "again", "--wheel", PYTHONHASHSEED="7", NUMBA_CPU_NAME="nehalem")
        (again,) = (folder / "again").glob("*.whl")
        run(sys.executable, "-m", "twine", "check", "--strict", sdist, wheel, plain, cwd=checkout)
        run(sys.executable, "-m", "check_wheel_contents", wheel, plain, cwd=checkout)
        wrong = [*problems(checkout, sdist, wheel, plain)]
        if kernels(wheel) != kernels(again):
            wrong.append(f"{wheel.name}: two builds of the kernels are not the same bytes")
        wrong += tagged(checkout, args.tag) if args.tag else ()
        if wrong:
            sys.exit("\n".join(f"WRONG: {line}" for line in wrong))
        # On each Python as it is compiled, and on the first by somebody who has no compiler.
        for number, python in enumerate(args.pythons):
            install(python, wheel, folder / f"environment{number}")
            print(f"installed, used, removed: {wheel.name} on {python}", flush=True)
        install(args.pythons[0], sdist, folder / "environment", **NO_COMPILER)
        # An index takes no wheel for Linux at large: those that are compiled come from wheels.yml.
        dist = ROOT / "dist"
        dist.mkdir(exist_ok=True)
        for old in dist.glob(f"{NAME.replace('-', '_')}-*"):
            old.unlink()
        print(
            "may be uploaded:", *(shutil.copy(path, dist) for path in (sdist, plain)), sep="\n    "
        )


if __name__ == "__main__":
    main()
