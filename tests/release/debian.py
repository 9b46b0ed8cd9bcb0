"""``python -m tests.release.debian forky 3.14 3.15``: the light tests on Debian's newest Pythons.

Makes a root of that Debian with debootstrap (``apt-get install debootstrap``) from the mirror that
this machine's apt uses, and runs ``make test-newest`` of what is committed in it, by chroot. Wants
to be run by root, on Debian, and 8 GB of disk. A root that is there already is used again.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from .built import ROOT, clone

APT = Path("/etc/apt")
SCRIPTS = Path("/usr/share/debootstrap/scripts")
#: What the tests call, beside Python.
PROGRAMS = ("ca-certificates", "gcc", "git", "libc6-dev", "locales", "make", "man-db", "procps")
#: What this machine's pip and TLS go by.
SETTINGS = ("etc/pip.conf", "etc/resolv.conf", "etc/ssl/certs/ca-certificates.crt")


def main() -> int:
    """Make the root, and run the tests on each Python; the exit status is 1 if one fails."""
    parser = argparse.ArgumentParser(prog="python -m tests.release.debian", description=__doc__)
    parser.add_argument("suite", help="Debian's name for the release, such as forky or sid")
    parser.add_argument("pythons", nargs="+", help="such as 3.14")
    parser.add_argument("--root", type=Path, help="default: build/SUITE in this checkout")
    args = parser.parse_args()
    root = args.root or ROOT / "build" / args.suite
    if not (root / "usr/bin/make").exists():
        make_root(args.suite, root, [*PROGRAMS, *python_packages(args.pythons)])
    clone_into(root)
    return max([tests(root, python) for python in args.pythons])


def python_packages(pythons: list[str]) -> list[str]:
    """Return the packages that make a Python with which a virtual environment can compile."""
    return [f"python{v}{part}" for v in pythons for part in ("", "-venv", "-dev")]


def make_root(suite: str, root: Path, packages: list[str], *flags: str) -> None:
    """Make a root of a suite; debootstrap knows one that is newer than itself by sid's script."""
    script = SCRIPTS / suite
    command = [
        *("debootstrap", "--variant=minbase", f"--include={','.join(packages)}", *flags),
        *(suite, str(root), next(mirrors()), str(script if script.exists() else SCRIPTS / "sid")),
    ]
    root.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(command, check=True)


def mirrors() -> Iterator[str]:
    """Yield the mirrors of Debian itself that this machine's apt reads."""
    for path in sorted((APT / "sources.list.d").glob("*.sources")):
        for stanza in re.split(r"\n\s*\n", path.read_text()):
            fields = dict(re.findall(r"^(\w[\w-]*):[ \t]*(.*)$", stanza, re.MULTILINE))
            suites = fields.get("Suites", "").split()
            if fields.get("Enabled", "yes") != "no" and not any("security" in x for x in suites):
                yield from fields.get("URIs", "").split()
    for path in (APT / "sources.list", *sorted((APT / "sources.list.d").glob("*.list"))):
        for line in path.read_text().splitlines() if path.exists() else ():
            found = re.match(r"deb\s+(?:\[[^]]*\]\s+)?(\S+)\s+(\S+)\s+.*\bmain\b", line)
            if found and "security" not in found[2]:
                yield found[1]


def clone_into(root: Path) -> None:
    """Put what is committed into a root, as ``/src``, and this machine's settings."""
    for name in SETTINGS:
        if Path("/", name).exists():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(Path("/", name), root / name)
    shutil.rmtree(root / "src", ignore_errors=True)
    clone(ROOT, root / "src")


def tests(root: Path, python: str) -> int:
    """Run the light tests on one Python of the root; return whether they failed."""
    print(f"Python {python} of {root.name}:", flush=True)
    make = f"make test-newest NEWEST_PYTHON=python{python} PYTHON=python{python}"
    return int(run_inside(root, f"rm -rf .venv-newest && {make}") != 0)


def run_inside(root: Path, command: str) -> int:
    """Run a shell's command in ``/src`` of a root; return its exit status."""
    inside = f"cd /src && export HOME=/root LANG=C.UTF-8 && {command}"
    # Mounts of a namespace of their own: they are gone with it.
    chroot = (
        f"mount --bind /proc {shlex.quote(str(root))}/proc && "
        f"mount --rbind /dev {shlex.quote(str(root))}/dev && "
        f"exec chroot {shlex.quote(str(root))} sh -c {shlex.quote(inside)}"
    )
    kept = {name: x for name, x in os.environ.items() if not name.startswith(("PYTHON", "MAKE"))}
    return subprocess.run(["unshare", "-m", "sh", "-c", chroot], env=kept).returncode


if __name__ == "__main__":
    sys.exit(main())
