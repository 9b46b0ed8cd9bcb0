"""Every program of examples/ is listed, and runs to its end without a warning."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.support.optional import needs
from tests.support.processes import ROOT, run_python

PROGRAMS = sorted((ROOT / "examples").glob("*.py"))
#: What `make test` does not install.
ENGINES = {"duckdb", "onnxruntime", "openvino", "pandas", "polars", "ray", "xarray"}
#: They take several seconds each; faster ones show the same functions.
SLOW = set(
    """dask_tensors decode_images gradients_jax_in_torch gradients_torch_in_jax
    kmeans_five_libraries numba_kernel one_batch_two_frameworks parquet_to_torch scipy_on_tensors
    video_frames weights_jax_to_torch_sharded""".split()
)


def case(program: Path):
    names = set()
    for node in ast.walk(ast.parse(program.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.partition(".")[0])
    marks = [pytest.mark.heavy] if program.stem in SLOW or names & ENGINES else []
    return pytest.param(program, id=program.stem, marks=[*marks, needs(*sorted(names))])


@pytest.mark.parametrize("program", [case(program) for program in PROGRAMS])
def test_program_runs(program: Path, tmp_path: Path) -> None:
    flags = ("-W", "error::UserWarning")
    done = run_python(*flags, str(program), cwd=tmp_path, check=True)
    assert done.stdout
    assert "Traceback" not in done.stderr, done.stderr[-4000:]
    assert "Warning" not in done.stderr, done.stderr[-4000:]


def test_every_program_is_listed() -> None:
    text = (ROOT / "docs" / "examples.md").read_text()
    assert [p.name for p in PROGRAMS if f"](../examples/{p.name})" not in text] == []
