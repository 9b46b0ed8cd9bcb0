"""The emulated GPU of `python -m benchmarks.gpu --rehearse`, whose driver arraybridge calls."""

import json
import os
import subprocess
import sys

import pytest

from tests.support.processes import ROOT

pytest.importorskip("torch")

PROGRAM = """
import json
from benchmarks.gpu import rehearsal
gpu = rehearsal.install()
import torch
import arraybridge as ab
from arraybridge.kernels import cuda

x = torch.rand(96, 72, device="cuda")
assert x.is_cuda and not x.cpu().is_cuda
assert ab.explain(x.t(), "torch", copy=True).kernel == "arraybridge's own copy"
y = ab.contiguous(x.t())
assert y.is_cuda and torch.equal(y, x.t()), "the kernel"

graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = ab.contiguous(x.t()) + 1
launches = len(gpu.called("cuLaunchKernel"))
x += 1
graph.replay()
assert torch.equal(y, x.t() + 1), "the graph"
assert len(gpu.called("cuLaunchKernel")) == launches, "replayed by the driver"

import cupy
c = ab.convert(x.t(), "cupy", copy=True)
assert (c.get() == x.t().cpu().numpy()).all() and type(c) is cupy.ndarray
host = ab.convert(c.T, "numpy", device="cpu")
assert (host == x.cpu().numpy()).all()
back = ab.convert(host.T, "torch", device="cuda:0")
assert back.is_cuda and torch.equal(back, x.t()), "there and back"

errors = []
for call in (
    lambda: ab.convert(host, "torch", device="cuda:1"),
    lambda: cuda.copy(256, 512, (3, 4), (16, 4), (4, 12), 4, 1, 1),
):
    try:
        call()
    except (ab.ConversionError, cuda.CUDAError) as error:
        errors.append(str(error))
assert not gpu.raised, gpu.raised
print(json.dumps([sorted(set(gpu.names)), errors]))
"""


def test_copies_graphs_transfers_and_errors(tmp_path):
    env = {**os.environ, "ARRAYBRIDGE_CACHE_DIR": str(tmp_path)}
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, env=env, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    called, errors = json.loads(run.stdout)
    assert {
        *("cuInit", "cuLinkComplete", "cuLibraryLoadData", "cuKernelGetFunction", "cuLaunchKernel"),
        *("cuStreamIsCapturing", "cuMemHostAlloc", "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync"),
    } <= set(called)
    absent, wrong = errors
    assert absent == "PyTorch finds no cuda:1 here, only cuda:0"
    assert wrong.startswith("no CUDA device 1, this machine has 1. cuDeviceGet:")
