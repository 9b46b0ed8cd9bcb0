"""The disk cache of CUDA kernels: found again without Numba, and never an error; and building."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from arraybridge.kernels import cuda, disk
from arraybridge.kernels.cuda import build
from tests.support import stub_driver
from tests.support.processes import python
from tests.support.stub_driver import Stub

ITEMS = ((300, 400), (1600, 4), (4, 1200), 4)
DST, SRC = 1 << 40, 1 << 41


@pytest.fixture
def folder(monkeypatch, tmp_path) -> Path:
    where = tmp_path / "kernels"
    monkeypatch.setenv("ARRAYBRIDGE_CACHE_DIR", str(where))
    return where


@pytest.fixture
def compiled(monkeypatch) -> list:
    """What was compiled."""
    made = []

    def ptx(plan, capability):
        made.append((plan.kernel, plan.constants))
        return stub_driver.ptx(plan)

    monkeypatch.setattr(build, "ptx", ptx)
    return made


def copied(*capabilities: tuple[int, int]) -> Stub:
    """Copy on every device of a new driver, as a new process would."""
    with stub_driver.installed(Stub(*capabilities)) as stub:
        for device in range(len(stub.capabilities)):
            cuda.copy(DST, SRC, *ITEMS, device=device)
        assert len(stub.called("cuLaunchKernel")) == len(stub.capabilities)
    return stub


def test_found_by_the_next_process(folder, compiled):
    copied((9, 0), (8, 0), (9, 0))
    assert len(compiled) == 2  # one for each capability
    assert sorted(file.name[:15] for file in folder.iterdir()) == [
        "cuda-tile-sm80-",
        "cuda-tile-sm90-",
    ]
    stub = copied((9, 0), (8, 0))
    assert len(compiled) == 2
    assert not stub.called("cuLinkCreate")


def test_other_code_is_another_kernel(folder, compiled, monkeypatch):
    copied()
    monkeypatch.setattr(disk, "dependencies", lambda: ("other",))
    copied()
    assert len(compiled) == 2


@pytest.mark.parametrize(
    ("harm", "mended"),
    [
        (lambda file: file.write_bytes(file.read_bytes()[:-1]), True),
        (lambda file: disk.write(str(file), b"no cubin"), True),  # the driver refuses it
        (lambda file: disk.write(str(file), b"cubin of sm_90\n"), True),  # without the kernel
        (lambda file: file.parent.chmod(0o777), False),
    ],
    ids=["damage", "refused", "no kernel", "not trusted"],
)
def test_harm_costs_time_only(folder, compiled, harm, mended):
    copied()
    (file,) = folder.iterdir()
    whole = file.read_bytes()
    harm(file)
    stub = copied()
    assert len(compiled) == 2
    assert len(stub.libraries) == 1  # one that lacks the kernel is unloaded
    assert file.read_bytes() == whole or not mended


def test_what_is_not_linked_is_not_kept(folder, compiled):
    with stub_driver.installed(Stub()) as stub:
        stub.fail["cuLinkComplete"] = 218
        with pytest.raises(cuda.CUDAError):
            cuda.copy(DST, SRC, *ITEMS)
    assert not folder.exists()


WORK = """
import sys
from arraybridge.kernels import cuda
from arraybridge.kernels.cuda import build
from tests.support import stub_driver
if "fast" in sys.argv:
    build.ptx = stub_driver.ptx
with stub_driver.installed(stub_driver.Stub()) as stub:
    cuda.copy(1 << 40, 1 << 41, (300, 400), (1600, 4), (4, 1200), 4)
    loaded = [name for name in ("numba", "llvmlite", "numba_cuda", "numpy") if name in sys.modules]
    print(len(stub.called("cuLinkCreate")), *loaded)
"""


def test_a_warm_process_loads_no_compiler(folder):
    env = {"ARRAYBRIDGE_CACHE_DIR": str(folder)}
    assert python(WORK, "fast", env=env).split()[0] == "1"
    compilers = {"numba", "llvmlite", "numba_cuda"}
    if sys.platform != "linux":
        compilers.discard("llvmlite")
    assert not compilers & set(python(WORK, env=env).split())


COMPILE = """
import re
from arraybridge.kernels.cuda import build, driver
from arraybridge.cli.warmup import cuda_plans
from arraybridge.kernels.cuda.family import FAMILY
def none(*_): raise AssertionError("the driver was asked for")
driver._load = none
from numba.cuda.cudadrv import driver as numbas
type(numbas.driver).ensure_initialized = none
plans = {plan.kernel: plan for _, plan in cuda_plans((1, 2, 3, 4, 8, 12, 16))}
assert plans.keys() == FAMILY.keys()
for plan in plans.values():
    for capability in ((7, 5), (9, 0)):
        text = build.ptx(plan, capability)
        name = f"arraybridge_{plan.kernel}"
        asynchronous = plan.kernel == "plain" and capability >= (8, 0)
        assert ("cp.async" in text) == asynchronous
        head = [".version 8.0", ".target sm_80" if asynchronous else ".target sm_75"]
        assert re.findall(r"^\\.(?:version|target) .*", text, re.M) == head
        assert re.findall(r"\\.entry (\\w+)", text) == [name]
        assert ".maxntid 256" in text
        # No other function, no floating point, as uint64 beside int64 would be in Numba.
        assert not re.search(r"_ZN|\\.common|\\.local|\\.f(16|32|64)\\b", text), plan
        kinds = re.findall(rf"\\.param \\.(\\w+) {name}_param_\\d+", text)
        numbers = len(plan.extents) + len(plan.divisions)
        assert kinds == ["u64"] * 2 + ["u32"] * numbers + ["u64"] * len(plan.steps)
"""


@pytest.mark.heavy
def test_every_kernel_compiles_without_a_driver():
    pytest.importorskip("numba_cuda")
    python(COMPILE, flags=())
