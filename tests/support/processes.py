"""Scripts in fresh processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

__all__ = ["ROOT", "python"]

ROOT = Path(__file__).resolve().parents[2]


def python(script: str, *args: str, env=None, root: Path = ROOT, flags=("-W", "error")) -> str:
    """Run a script in a fresh process that finds arraybridge under `root`; return what it said."""
    done = subprocess.run(
        [sys.executable, *flags, "-c", script, *args],
        env={**os.environ, "PYTHONPATH": str(root), **(env or {})},
        cwd=root,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout
