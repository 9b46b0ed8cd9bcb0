"""The sdist and the wheel of a commit, the same bytes whenever and wherever they are built."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PINS = ROOT / "requirements" / "pins.txt"
PINNED = {"PIP_CONSTRAINT": str(PINS), "PIP_BUILD_CONSTRAINT": str(PINS)}  # older and newer pips
#: The environment of a machine without a C compiler.
NO_COMPILER = {"CC": "/nonexistent"}


def git(*args: str, cwd: Path) -> str:
    """Return what git prints."""
    command = ["git", *args]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=True).stdout


def clone(source: Path, to: Path) -> Path:
    """Return a clean clone of what is committed: the working tree does not matter."""
    git("clone", "--quiet", "--no-hardlinks", str(source), str(to), cwd=source)
    return to


def build(checkout: Path, out: Path, *flags: str) -> tuple[Path, Path]:
    """Build the sdist, and the wheel from it; return both."""
    date = git("log", "-1", "--format=%ct", cwd=checkout).strip()
    _build(checkout, out, date, *flags)
    (sdist,), (wheel,) = out.glob("*.tar.gz"), out.glob("*.whl")
    sdist.write_bytes(dated(sdist.read_bytes(), int(date)))
    return sdist, wheel


def wheel_of(checkout: Path, out: Path, *flags: str, **env: str) -> Path:
    """Build the wheel directly, without an sdist between."""
    date = git("log", "-1", "--format=%ct", cwd=checkout).strip()
    _build(checkout, out, date, "--wheel", *flags, **env)
    (wheel,) = out.glob("*.whl")
    return wheel


def _build(source: Path, out: Path, date: str, *flags: str, **env: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "build", "--outdir", str(out), *flags, str(source)],
        env={**os.environ, **PINNED, "SOURCE_DATE_EPOCH": date, **env},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{done.stdout}{done.stderr}\nthe build failed")


def dated(archive: bytes, date: int) -> bytes:
    """Return an sdist with one date and no owners: setuptools dates what it writes by the clock."""
    out = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(archive)) as old,
        tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as new,
    ):
        for member in sorted(old.getmembers(), key=lambda member: member.name):
            member.mtime, member.pax_headers = date, {}
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            new.addfile(member, old.extractfile(member) if member.isfile() else None)
    return gzip.compress(out.getvalue(), mtime=date)
