"""The stress program, and tests, on an extension built with sanitizers.

AddressSanitizer and the one of undefined behaviour, then ThreadSanitizer, as far as the compiler
has their libraries. Python itself and NumPy are not built with them. With the first two, any words
for Python may follow: such as ``-m pytest -q tests/unit/dlpack``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
COMPILER = os.environ.get("CC", "gcc")
SANITIZERS = {
    # The last, for C++'s exceptions, which are watched from the start or not at all.
    "address,undefined": ("libasan.so", "libubsan.so", "libstdc++.so.6"),
    "thread": ("libtsan.so",),
}
# UBSan only prints, and exits with 0, unless configured to stop.
OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    "TSAN_OPTIONS": "halt_on_error=0:exitcode=66",
}
#: Tests of who owns memory, and for how long; but what AddressSanitizer keeps of freed memory
#: looks like a leak to one.
LIFETIMES = (
    "-m pytest -q --capture=sys -p no:cacheprovider -k not(200_000) "
    "tests/processes/test_ownership_processes.py "
    "tests/unit/dlpack/test_ownership.py tests/unit/dlpack/test_legacy_capsules.py "
    "tests/unit/dlpack/test_dlpack_structs.py tests/unit/dlpack/test_dlpack_malformed.py "
    "tests/unit/native/test_no_memory.py"
).split()


def compiled(target: Path, *arguments: str | Path) -> None:
    """Make a shared library."""
    command = [COMPILER, "-shared", "-fPIC", "-g", "-O1", "-std=gnu11", "-o", target, *arguments]
    subprocess.run(command, check=True)


def built(sanitizers: str, folder: Path) -> dict[str, str]:
    """Build with some sanitizers in a folder, and return the environment for programs there."""
    for package in ("arraybridge", "kernels", "tests"):
        shutil.copytree(
            ROOT / package,
            folder / package,
            symlinks=True,
            ignore=shutil.ignore_patterns("*.so", "__pycache__"),
        )
    shutil.copy(ROOT / "pyproject.toml", folder)
    includes = [f"-I{sysconfig.get_path('include')}", f"-I{np.get_include()}"]
    flag = f"-fsanitize={sanitizers}"
    sources = sorted((ROOT / "arraybridge" / "native").glob("*.c"))
    limited = "-DPy_LIMITED_API=0x030B0000"
    compiled(folder / "arraybridge" / "_native.abi3.so", flag, limited, *includes, *sources)
    compiled(folder / "foreign.so", flag, HERE / "foreign.c", "-lpthread")
    found = [
        subprocess.run([COMPILER, f"-print-file-name={name}"], capture_output=True, text=True)
        for name in SANITIZERS[sanitizers]
    ]
    return (
        os.environ
        | OPTIONS
        | {
            "LD_PRELOAD": " ".join(each.stdout.strip() for each in found),
            "PYTHONMALLOC": "malloc",
            "PYTHONPATH": str(folder),
            "N": "500",
            "SANITIZED": sanitizers,
        }
    )


def run(sanitizers: str, *programs: list[str]) -> int:
    """Run Python with some words on what is built with sanitizers; 1 where one complained."""
    worst = 0
    with tempfile.TemporaryDirectory() as folder:
        environment = built(sanitizers, Path(folder))
        for words in programs:
            command = [sys.executable, "-X", "faulthandler", *words]
            done = subprocess.run(command, env=environment, cwd=folder, check=False)
            said = "clean" if not done.returncode else f"exit status {done.returncode}"
            sys.stdout.write(f"{sanitizers}: {' '.join(words)}: {said}\n")
            sys.stdout.flush()
            worst |= done.returncode
    return int(worst != 0)


def main(words: list[str]) -> int:
    """Run what is asked for, else all; 1 where one complained."""
    if words:
        return run("address,undefined", words)
    stress = ["-m", "tests.unit.native.stress", "./foreign.so"]
    return run("address,undefined", stress, [*LIFETIMES, "-m", "not heavy"]) | run("thread", stress)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
