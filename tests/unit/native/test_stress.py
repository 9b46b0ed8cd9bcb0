"""The stress program, `stress.py`, with the native code that is here."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
def test_stress(tmp_path: Path) -> None:
    library = tmp_path / "foreign.so"
    assert COMPILER is not None
    command = [COMPILER, "-shared", "-fPIC", "-o", library, HERE / "foreign.c", "-lpthread"]
    subprocess.run(command, check=True)
    program = [sys.executable, HERE / "stress.py", library]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
