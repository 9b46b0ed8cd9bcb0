"""Every program of examples/ runs to its end, and prints something."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .support.optional import installed

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = sorted((ROOT / "examples").glob("*.py"))
#: What `make test` does not install.
ENGINES = {
    *("arro3", "awkward", "cubed", "distributed", "duckdb", "h5py", "nanoarrow", "onnxruntime"),
    *("openvino", "pandas", "polars", "ray", "sparse", "xarray", "zarr"),
}


def imported(program: Path) -> set[str]:
    """The top-level names of all that a program imports, anywhere in it."""
    names = set()
    for node in ast.walk(ast.parse(program.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.partition(".")[0])
    return names


def case(program: Path):
    marks = [pytest.mark.heavy] if imported(program) & ENGINES else []
    return pytest.param(program, id=program.stem, marks=marks)


@pytest.mark.parametrize("program", [case(program) for program in PROGRAMS])
def test_example_runs(program: Path, tmp_path: Path) -> None:
    missing = sorted(name for name in imported(program) if not installed(name))
    if missing:
        pytest.skip(f"{', '.join(missing)} is not installed")
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", str(program)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.strip()
    assert "Traceback" not in done.stderr, done.stderr[-4000:]
