"""Scripts in fresh processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

__all__ = ["ROOT", "command", "python", "resident", "run_python"]

ROOT = Path(__file__).resolve().parents[2]


def run_python(*words: str, check=False, env=None, cwd=None) -> subprocess.CompletedProcess[str]:
    """Run Python with some words in a fresh process that finds arraybridge."""
    done = subprocess.run(
        [sys.executable, *words],
        env={**os.environ, "PYTHONPATH": str(ROOT), **(env or {})},
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    said = f"exit status {done.returncode}\n{done.stdout}{done.stderr}"
    assert done.returncode == 0 or not check, said
    return done


def command(*args: str, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run the command line of arraybridge."""
    return run_python("-m", "arraybridge", *args, cwd=cwd, env={"COLUMNS": "200", **environ})


def python(script: str, *args: str, env=None, root: Path = ROOT, flags=("-W", "error")) -> str:
    """Run a script in a fresh process that finds arraybridge under `root`; return what it said."""
    env = {"PYTHONPATH": str(root), **(env or {})}
    return run_python(*flags, "-c", script, *args, check=True, env=env, cwd=root).stdout


def resident() -> int:
    """Bytes of memory that this process has in use, on Linux."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
