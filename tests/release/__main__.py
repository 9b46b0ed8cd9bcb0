"""``python -m tests.release``: build what is committed, check it, install it, put it into dist/."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from . import built, contents, environment
from .built import PINS, ROOT


def main() -> int:
    """Check a release; the exit status is 1 if it must not be uploaded."""
    parser = argparse.ArgumentParser(prog="python -m tests.release", description=__doc__)
    parser.add_argument("--tag", default="", help="what the commit is tagged: vX.Y.Z")
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument("pythons", nargs="*", default=[sys.executable], help="to install it with")
    args = parser.parse_args()
    os.umask(0o022)  # the modes of files are in the archives
    if changed := built.git("status", "--porcelain", cwd=ROOT):
        print(f"not committed, and so not in the release:\n{changed}", flush=True)

    with tempfile.TemporaryDirectory(prefix="arraybridge-release-") as name:
        folder = Path(name)
        wrong = check(folder, args.tag, args.pythons)
        for line in wrong:
            print(f"WRONG: {line}")
        if not wrong:
            shutil.rmtree(args.out, ignore_errors=True)
            shutil.copytree(folder / "out", args.out)
            print("may be uploaded:", *sorted(map(str, args.out.iterdir())), sep="\n    ")
    return bool(wrong)


def check(folder: Path, tag: str, pythons: list[str]) -> list[str]:
    """Return what is wrong; what was built is in the folder ``out``."""
    start = time.monotonic()

    def say(line: str) -> None:
        print(f"{time.monotonic() - start:5.0f} s  {line}", flush=True)

    checkout = built.clone(ROOT, folder / "checkout")
    sdist, wheel = built.build(checkout, folder / "compiled")
    again = built.clone(ROOT, folder / "again")  # elsewhere, later, and its wheel without an sdist
    second, _ = built.build(again, folder / "second", "--no-isolation")
    plain = built.wheel_of(again, folder / "plain", "--no-isolation", **built.NO_COMPILER)
    direct = built.wheel_of(again, folder / "direct", "--no-isolation")
    for path in (sdist, wheel, plain):
        say(f"built {path.name}, {path.stat().st_size:,} bytes")
    wrong = [
        f"{one.name} has other bytes when it is built again"
        for one, other in ((sdist, second), (wheel, direct))
        if one.read_bytes() != other.read_bytes()
    ]
    say("built again")

    wrong += contents.problems(checkout, sdist, wheel, plain)
    wrong += contents.tagged(checkout, tag) if tag else ()
    say("looked at what they hold")
    # An index takes no wheel for Linux at large: those that are compiled come from wheels.yml.
    (folder / "out").mkdir()
    for path in (sdist, plain):
        shutil.copy(path, folder / "out")

    # On each Python as it is compiled, and on the first by somebody who has no compiler.
    installations = [(python, wheel, {}) for python in pythons]
    installations += [(python, sdist, built.NO_COMPILER) for python in pythons[:1]]
    for i, (python, archive, env) in enumerate(installations):
        place = folder / f"environment{i}"
        try:
            told = environment.check(python, archive, PINS, place, **env)
        except environment.Failed as error:
            wrong.append(f"{python}, {archive.name}: {error}")
        else:
            say(f"installed, used, removed: {archive.name}: {told}")
        shutil.rmtree(place, ignore_errors=True)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
