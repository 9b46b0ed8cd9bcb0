"""The stress program on an extension that is built with sanitizers: ``make sanitize``.

AddressSanitizer and the one of undefined behaviour, then ThreadSanitizer, as far as the compiler
has their libraries. Python itself and NumPy are not built with them.
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
    "address,undefined": ("libasan.so", "libubsan.so"),
    "thread": ("libtsan.so",),
}
# UBSan only prints, and exits with 0, unless it is told to stop.
OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
    "TSAN_OPTIONS": "halt_on_error=0:exitcode=66",
}


def compiled(target: Path, *arguments: str | Path) -> None:
    """Make a shared library."""
    command = [COMPILER, "-shared", "-fPIC", "-g", "-O1", "-std=gnu11", "-o", target, *arguments]
    subprocess.run(command, check=True)


def run(sanitizers: str, names: tuple[str, ...], folder: Path) -> int:
    """Build with some sanitizers, run the stress program, and return its exit status."""
    for package in ("arraybridge", "kernels"):
        shutil.copytree(
            ROOT / package, folder / package, symlinks=True, ignore=shutil.ignore_patterns("*.so")
        )
    includes = [f"-I{sysconfig.get_path('include')}", f"-I{np.get_include()}"]
    flag = f"-fsanitize={sanitizers}"
    sources = sorted((ROOT / "arraybridge" / "native").glob("*.c"))
    limited = "-DPy_LIMITED_API=0x030B0000"
    compiled(folder / "arraybridge" / "_native.abi3.so", flag, limited, *includes, *sources)
    compiled(folder / "foreign.so", flag, HERE / "foreign.c", "-lpthread")
    found = [
        subprocess.run([COMPILER, f"-print-file-name={name}"], capture_output=True, text=True)
        for name in names
    ]
    preload = " ".join(each.stdout.strip() for each in found)
    environment = (
        os.environ
        | OPTIONS
        | {
            "LD_PRELOAD": preload,
            "PYTHONMALLOC": "malloc",
            "PYTHONPATH": str(folder),
            "N": "500",
            "SANITIZED": "1",
        }
    )
    program = [sys.executable, HERE / "stress.py", folder / "foreign.so"]
    return subprocess.run(program, env=environment, cwd=folder, check=False).returncode


def main() -> int:
    """Run all, and say how they ended; 1 where one complained."""
    worst = 0
    for sanitizers, names in SANITIZERS.items():
        with tempfile.TemporaryDirectory() as folder:
            status = run(sanitizers, names, Path(folder))
        sys.stdout.write(f"{sanitizers}: {'clean' if not status else f'exit status {status}'}\n")
        worst |= status
    return int(worst != 0)


if __name__ == "__main__":
    sys.exit(main())
