"""The disk cache of CUDA kernels: found again without Numba, and never an error; and building."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from arraybridge.kernels import cuda, disk
from arraybridge.kernels.cuda import build, cache, context
from tests.support import stub_driver
from tests.support.processes import python
from tests.support.stub_driver import Stub

ITEMS = ((300, 400), (1600, 4), (4, 1200), 4)
(PLAN,) = cuda.plans(*ITEMS)
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


def copied(*capabilities: tuple[int, int], layout=ITEMS) -> Stub:
    """Copy on every device of a new driver, as a new process would."""
    with stub_driver.installed(Stub(*capabilities)) as stub:
        for device in range(len(stub.capabilities)):
            cuda.copy(DST, SRC, *layout, device=device)
        assert len(stub.called("cuLaunchKernel")) == len(stub.capabilities)
    return stub


class TestFoundAgain:
    def test_by_the_next_process(self, folder, compiled):
        copied()
        stub = copied()
        assert len(compiled) == 1
        assert not stub.called("cuLinkCreate")
        (file,) = folder.iterdir()
        assert file.name.startswith("cuda-tile-sm90-")

    def test_one_file_a_capability(self, folder, compiled):
        copied((9, 0), (8, 0), (9, 0))
        assert len(list(folder.iterdir())) == len(compiled) == 2
        copied((8, 0), (7, 5))
        assert len(list(folder.iterdir())) == len(compiled) == 3

    def test_one_file_a_kernel(self, folder, compiled):
        copied()
        copied(layout=((300, 400), (800, 2), (2, 600), 2))
        assert len(list(folder.iterdir())) == len(compiled) == 2

    def test_a_layout_of_the_same_kernel(self, folder, compiled):
        copied()
        copied(layout=((400, 800), (3200, 4), (4, 1600), 4))
        assert len(compiled) == 1

    def test_other_settings_are_another_kernel(self, folder, compiled, monkeypatch):
        copied()
        monkeypatch.setenv("NUMBA_OPT", "1")
        copied()
        assert len(compiled) == 2

    def test_other_code_is_another_kernel(self, folder, compiled, monkeypatch):
        copied()
        monkeypatch.setattr(cache, "_dependencies", lambda: ("other",))
        copied()
        assert len(compiled) == 2

    def test_what_it_depends_on(self):
        told = cache._dependencies()
        if cache._nvvm():
            assert re.search("nvidia_nvvm-[0-9.]+dist-info", str(told))

    def test_is_cached(self, folder, compiled):
        assert cache.found(PLAN, (9, 0)) is None
        copied()
        assert cache.found(PLAN, (9, 0)) is not None
        assert cache.found(PLAN, (8, 0)) is None
        assert cache.found(PLAN._replace(constants=(8, 0)), (9, 0)) is None


class TestHarm:
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
    def test_it_costs_time_only(self, folder, compiled, harm, mended):
        """Damage of every kind: unit/kernels/test_kernel_cache.py."""
        copied()
        (file,) = folder.iterdir()
        whole = file.read_bytes()
        harm(file)
        stub = copied()
        assert len(compiled) == 2
        assert len(stub.libraries) == 1  # one that lacks the kernel is unloaded
        assert file.read_bytes() == whole or not mended

    def test_a_full_device_is_no_reason_to_compile(self, folder, compiled):
        copied()
        with stub_driver.installed(Stub()) as stub:
            stub.fail["cuLibraryLoadData"] = 2
            with pytest.raises(cuda.CUDAMemoryError):
                cuda.copy(DST, SRC, *ITEMS)
        assert len(compiled) == 1

    def test_a_folder_that_cannot_be_written(self, tmp_path, compiled, monkeypatch):
        (tmp_path / "file").touch()
        monkeypatch.setenv("ARRAYBRIDGE_CACHE_DIR", str(tmp_path / "file"))
        copied()
        copied()
        assert len(compiled) == 2

    def test_what_is_not_linked_is_not_kept(self, folder, compiled):
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
import sys
from arraybridge.kernels import cuda
from arraybridge.kernels.cuda import build, driver
def none(*_): raise AssertionError("the driver was asked for")
driver._load = none
from numba.cuda.cudadrv import driver as numbas
type(numbas.driver).ensure_initialized = none
(plan,) = cuda.plans((300, 400), (1600, 4), (4, 1200), 4)
sys.stdout.write(build.ptx(plan))
"""


@pytest.fixture(scope="module")
def text(tmp_path_factory) -> str:
    """PTX by Numba, in a process that may not touch a driver."""
    pytest.importorskip("numba_cuda")
    return python(COMPILE, flags=())


@pytest.mark.heavy
def test_no_kernel_asks_a_driver_or_computes_in_floating_point():
    pytest.importorskip("numba_cuda")
    every = """
import re
from arraybridge.kernels.common_layouts import cuda_plans
from arraybridge.kernels.cuda.family import FAMILY
plans = {plan.kernel: plan for _, plan in cuda_plans((1, 2, 3, 4, 8, 12, 16))}
assert plans.keys() == FAMILY.keys()
for plan in plans.values():
    assert not re.search(r"\\.f(16|32|64)\\b", build.ptx(plan)), plan
"""
    python(COMPILE + every, flags=())


def test_ptx(text):
    """For every device and driver."""
    assert re.findall(r"^\.(?:version|target) .*", text, re.MULTILINE) == [
        ".version 8.0",
        ".target sm_75",
    ]
    assert re.findall(r"\.entry (\w+)", text) == ["arraybridge_tile"]
    assert ".maxntid 256" in text
    # No other function; no floating point, as uint64 beside int64 would be in Numba.
    assert not re.search(r"_ZN|\.common|\.f(16|32|64)\b", text)
    kinds = re.findall(r"\.param \.(\w+) arraybridge_tile_param_\d+", text)
    numbers = len(PLAN.extents) + len(PLAN.divisions)
    assert kinds == ["u64"] * 2 + ["u32"] * numbers + ["u64"] * len(PLAN.steps)


def test_no_simulator():
    """In a process of its own: Numba keeps what it imports then."""
    pytest.importorskip("numba_cuda")
    script = """
from arraybridge.kernels import cuda
from arraybridge.kernels.cuda import build
(plan,) = cuda.plans((300, 400), (1600, 4), (4, 1200), 4)
try:
    build.ptx(plan)
except ImportError as error:
    assert "only simulates" in str(error), error
else:
    raise AssertionError
"""
    python(script, env={"NUMBA_ENABLE_CUDASIM": "1"}, flags=())


def test_a_numpy_that_is_newer_than_numba_cuda():
    """NumPy 2.5 has no `row_stack`, which numba-cuda 0.30 asks for."""
    pytest.importorskip("numba_cuda")
    script = """
import numpy
vars(numpy).pop("row_stack", None)
from arraybridge.kernels import cuda
from arraybridge.kernels.cuda import build
(plan,) = cuda.plans((300, 400), (1600, 4), (4, 1200), 4)
assert "arraybridge_tile" in build.ptx(plan)
assert "row_stack" not in vars(numpy)
"""
    python(script)


def test_numba_that_does_not_work(folder, monkeypatch):
    def broken(plan, capability):
        raise AttributeError("module 'numpy' has no attribute 'row_stack'")

    monkeypatch.setattr(build, "_compiled", broken)
    with stub_driver.installed(Stub()) as stub:
        monkeypatch.setattr(cuda, "_missing", lambda: None)
        assert cuda.unavailable() is None
        with pytest.raises(ImportError, match="cannot compile for CUDA here: AttributeError"):
            cuda.copy(DST, SRC, *ITEMS)
        assert "row_stack" in str(cuda.unavailable())
        cuda.copy(DST, SRC, (300,), (4,), (4,), 4)  # the driver's own
        assert stub.called("cuMemcpyDtoDAsync")


def test_the_linker_is_told_whats_needed():
    with stub_driver.installed(Stub((8, 6))) as stub:
        code = build.cubin("// (1,)\n.entry x", context.device(0))
    assert code == b"cubin of sm_86\n// (1,)\n.entry x"
    assert not stub.links
