"""``python -m arraybridge warmup``: what copies take later is on disk, and read without Numba."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from arraybridge.kernels.cpu.plan import plan
from arraybridge.kernels.cpu.usual import plans
from arraybridge.layout import c_strides, canonical

ROOT = Path(__file__).resolve().parents[1]


def run(*args: str, folder: Path) -> subprocess.CompletedProcess:
    env = {**os.environ, "ARRAYBRIDGE_CACHE_DIR": str(folder), "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, *args], env=env, capture_output=True, text=True, check=False, timeout=280
    )


def test_what_copies_take_is_on_disk(tmp_path: Path) -> None:
    folder = tmp_path / "kernels"
    done = run("-m", "arraybridge", "warmup", "--item-sizes", "16", folder=folder)
    assert done.returncode == 0, done.stderr
    count = len(list(folder.glob("*.kernel")))
    assert count == len(list(plans((16,))))
    code = """
import sys, numpy as np, arraybridge as ab
x = np.arange(300 * 400, dtype="c16").reshape(300, 400)
for view in (x.T, x[:, ::-1], x[:, ::2], x[:, 3:-5]):
    assert (ab.contiguous(view) == view).all()
assert "llvmlite" in sys.modules and "numba" not in sys.modules
"""
    done = run("-c", code, folder=folder)
    assert done.returncode == 0, done.stderr
    done = run("-m", "arraybridge", "warmup", "--item-sizes", "16", folder=folder)
    assert done.stdout.count("on disk") == count


@pytest.mark.heavy
def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = run("-m", "arraybridge", "warmup", "--item-sizes", "16", folder=tmp_path / "file")
    assert done.returncode == 1
    assert "could not be written" in " ".join(done.stdout.split())


@pytest.mark.parametrize("dtype", ["u1", "f2", "f4", "f8", "c16"])
def test_it_knows_what_real_layouts_take(dtype: str) -> None:
    item = np.dtype(dtype).itemsize
    known = {made.kernel for _, made in plans((item,))}
    image = np.empty((1080, 1920, 3), dtype)
    batch = np.empty((4, 64, 112, 112), dtype)
    for x in (
        image.transpose(2, 0, 1),
        image[::-1].transpose(2, 0, 1),
        image[..., 1],
        image[:, ::-1, 0],
        batch.transpose(0, 2, 3, 1),
        batch.transpose(0, 2, 1, 3),
        batch.T,
        batch[..., ::2],
        batch[:, :, ::2],
        batch[:, ::-1],
    ):
        made = plan(canonical(x.shape, c_strides(x.shape, item), x.strides, item))
        assert made.kernel in known, (x.shape, x.strides)


def test_wrong_sizes(tmp_path: Path) -> None:
    for wrong in ("0", "many", ""):
        done = run("-m", "arraybridge", "warmup", "--item-sizes", wrong, folder=tmp_path)
        assert done.returncode == 2
        assert re.search("item.sizes", done.stderr.splitlines()[-1])
