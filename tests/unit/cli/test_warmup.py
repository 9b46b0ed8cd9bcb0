"""``python -m arraybridge warmup``: the CUDA kernels that copies take later are on disk."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from arraybridge.cli import main
from arraybridge.cli.warmup import cuda_plans
from arraybridge.kernels import cuda
from arraybridge.kernels.cuda import build
from arraybridge.layout import c_strides
from tests.support import stub_driver
from tests.support.stub_driver import Stub


@pytest.mark.parametrize("wrong", ["0", "many", ""])
def test_wrong_sizes(capsys, wrong: str) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["warmup", "--item-sizes", wrong])
    assert "item-sizes" in capsys.readouterr().err


def test_cuda_devices_are_served(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("ARRAYBRIDGE_CACHE_DIR", str(tmp_path / "kernels"))
    monkeypatch.setattr(build, "ptx", stub_driver.ptx)
    monkeypatch.setattr(cuda, "_missing", lambda: None)
    args = ["warmup", "--item-sizes", "4", "-v"]
    expected = len(list(cuda_plans((4,))))
    with stub_driver.installed(Stub((9, 0), (8, 0), (9, 0))):
        assert main(args) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if "compiled: cuda" in line]
    assert len(lines) == len(list(tmp_path.glob("kernels/*"))) == 2 * expected
    assert "cuda tile, sm_90 (transpose, 4 bytes)" in lines[0]
    with stub_driver.installed(Stub((8, 0))) as stub:
        assert main(args) == 0
        assert not stub.called("cuLinkCreate")
        monkeypatch.setenv("NUMBA_OPT", "1")
        stub.fail["cuLinkComplete"] = 218
        assert main(args) == 1
    said = capsys.readouterr()
    assert said.out.count("  on disk already: ") == expected
    assert "cuLinkComplete" in said.err


@pytest.mark.parametrize(("code", "status"), [(100, 0), (35, 1)])
def test_no_cuda_device(monkeypatch, capsys, code: int, status: int) -> None:
    monkeypatch.setattr(cuda, "_missing", lambda: None)
    with stub_driver.installed(Stub()) as stub:
        stub.fail["cuInit"] = code
        assert main(["warmup", "--item-sizes", "4", "-v"]) == status
    assert ("Install" in capsys.readouterr().err) is bool(status)


def test_it_knows_what_real_layouts_take() -> None:
    for dtype in ("u1", "f2", "f4", "f8"):
        item = np.dtype(dtype).itemsize
        known = {(made.kernel, made.constants) for _, made in cuda_plans((item,))}
        for x in (
            np.empty((1080, 1920, 3), dtype).transpose(2, 0, 1),
            np.empty((3, 1080, 1920), dtype).transpose(1, 2, 0),
            np.empty((1080, 1920, 3), dtype)[..., 1],
            np.empty((4096, 4096), dtype).T,
            np.empty((1000, 1001), dtype)[::-1],
        ):
            plans = cuda.plans(x.shape, c_strides(x.shape, item), x.strides, item)
            assert {(one.kernel, one.constants) for one in plans} <= known
