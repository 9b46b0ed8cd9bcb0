"""The command line in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run(*args: str, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return subprocess.run(
        [sys.executable, "-m", "arraybridge", *args],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": path, "COLUMNS": "200", **environ},
        capture_output=True,
        text=True,
        check=False,
    )
