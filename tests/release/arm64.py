"""``python -m tests.release.arm64``: the C extension and the kernels, compiled for ARM and run.

Makes a root of Debian for arm64 with debootstrap, whose programs QEMU runs on this machine, and
installs what is committed in it by pip: the root's own gcc compiles the extension. Then runs the
tests of `TESTS` there, without PyTorch, and copies drawn layouts between pages that fault. Wants to
be run by root, on Debian with the packages qemu-user-static and debootstrap, and 4 GB of disk. A
root that is there already is used again.

QEMU takes many times as long as a processor: no time that this prints means anything. And it keeps
the order of reads and writes of the machine that it runs on; that of x86-64 is stricter than ARM's,
so that a barrier which is missing between threads does not show.
"""

from __future__ import annotations

import argparse
import contextlib
import platform
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from .built import ROOT
from .debian import clone_into, make_root, python_packages, run_inside

BINFMT = Path("/proc/sys/fs/binfmt_misc")
ENTRY = "qemu-aarch64"
PROGRAMS = ("ca-certificates", "gcc", "libc6-dev")
LIBRARIES = (
    "numpy numba llvmlite array-api-compat jax pyarrow apache-tvm-ffi array-api-strict ml_dtypes "
    "setuptools pytest pytest-xdist hypothesis"
)
PARALLEL = "-q -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder"  # as the Makefile
CHOSEN = "-o faulthandler_timeout=3600 -m 'not heavy and not site'"  # slow is not stuck
#: Those of the kernels are few: each takes half a minute to compile there.
TILES = (
    "square",
    "three channels",
    "three planes",
    "backwards",
    "columns broadcast",
    "every fifth",
)
AGAINST_NUMPY = (
    "many_axes",
    "windows_that_overlap",
    *(f"transposes_across_tiles[{n}]" for n in "138"),
)
TESTS = (
    *("tests/unit/native", "tests/unit/dlpack", "tests/unit/test_layout.py"),
    *(f"tests/unit/kernels/test_{name}.py" for name in ("kernels_flat", "pool")),
    *(f"tests/unit/kernels/test_kernels_cpu.py::TestAgainstNumPy::test_{x}" for x in AGAINST_NUMPY),
    *(f"tests/unit/kernels/test_kernels_tiles.py::test_kernels[{x}-4-16-streamed]" for x in TILES),
    *("tests/unit/array/test_array.py", "tests/unit/test_copies.py"),
)
#: They count the process's threads, of which QEMU has one of its own, and limit its memory; or
#: make allocations fail, which Python 3.13.5 there does not survive: it need only make a function.
ELSEWHERE = (
    *(
        f"tests/unit/kernels/test_pool.py::TestProcesses::test_{x}"
        for x in ("threads", "fork_after")
    ),
    "tests/unit/native/test_no_memory.py",
)
MINUTES = 5  # of copies of drawn layouts
LOADED = (
    "import arraybridge.native as n, platform, sys; "
    "sys.exit(n.MISSING or (platform.machine() != 'aarch64' and 'this is not ARM'))"
)


def main() -> int:
    """Make the root, and run the tests in it; the exit status is 1 if one fails."""
    parser = argparse.ArgumentParser(prog="python -m tests.release.arm64", description=__doc__)
    parser.add_argument("--suite", default="trixie", help="Debian's name for the release")
    parser.add_argument("--root", type=Path, help="default: build/SUITE-arm64 in this checkout")
    parser.add_argument("pytest", nargs="*", help="what to run instead of `TESTS`")
    args = parser.parse_args()
    root = args.root or ROOT / "build" / f"{args.suite}-arm64"
    with emulator():
        if not (root / "usr/bin/gcc").exists():
            make_root(args.suite, root, [*PROGRAMS, *python_packages(["3"])], "--arch=arm64")
        clone_into(root)
        return int(run_inside(root, commands(args.pytest)) != 0)


@contextlib.contextmanager
def emulator() -> Iterator[None]:
    """Let the kernel run programs for arm64 by QEMU, if it does not do so already."""
    if platform.machine() == "aarch64":
        yield
        return
    with contextlib.ExitStack() as undo:
        if not (BINFMT / "register").exists():
            subprocess.run(["mount", "-t", "binfmt_misc", "binfmt_misc", str(BINFMT)], check=True)
            undo.callback(subprocess.run, ["umount", str(BINFMT)], check=True)
        if not (BINFMT / ENTRY).exists():
            (BINFMT / "register").write_text(Path(f"/usr/lib/binfmt.d/{ENTRY}.conf").read_text())
            undo.callback((BINFMT / ENTRY).write_text, "-1")
        yield


def commands(given: list[str]) -> str:
    """Return what a shell in the root does: the environment is kept there, beside the checkout."""
    tests = given or [*TESTS, *(f"--deselect={name}" for name in ELSEWHERE)]
    pip, python = "/venv/bin/python -m pip install --no-input --no-compile -qq", "/venv/bin/python"
    return " && ".join(
        (
            f"{{ test -x {python} || python3 -m venv /venv; }}",
            f"{pip} --constraint requirements/pins.txt {LIBRARIES}",
            f"{pip} --no-deps --no-build-isolation --editable .",
            f"{python} -m arraybridge info",
            f"{python} -c {shlex.quote(LOADED)}",
            f"{python} -m pytest {PARALLEL} {CHOSEN} {shlex.join(tests)}",
            *([] if given else [f"{python} -m tests.guarded --minutes {MINUTES} --seed arm64"]),
        )
    )


if __name__ == "__main__":
    sys.exit(main())
