"""The environment and the import order that let the libraries live in one process."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import pytest

from tests.support import coexist
from tests.support.processes import ROOT


def run(code: str, **environ: str) -> str:
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    known = {name: value for name, value in os.environ.items() if name not in coexist.variables()}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env={**known, "PYTHONPATH": path, **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stderr[-2000:]}"
    return done.stdout.strip()


def test_prepare_leaves_what_the_user_set() -> None:
    mine = {"TF_CPP_MIN_LOG_LEVEL": "0", "OCL_ICD_FILENAMES": "mine.so"}
    environ = dict(mine)
    coexist.prepare(environ)
    assert environ.items() >= mine.items()


def test_prepare_sets_what_is_missing() -> None:
    environ: dict[str, str] = {}
    coexist.prepare(environ)
    assert environ == coexist.variables()
    assert environ["TF_CPP_MIN_LOG_LEVEL"] == "3"


def test_the_libraries_that_mind_come_first() -> None:
    names = ["torch", "tensorflow", "jax", "paddle", "dpnp", "numpy"]
    first = ["dpnp", "paddle", "tensorflow"]
    assert coexist.in_import_order(names) == [*first, "torch", "jax", "numpy"]


needs_all = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in coexist.IMPORT_ORDER),
    reason="not on this platform: " + ", ".join(coexist.IMPORT_ORDER),
)


@pytest.mark.heavy
@needs_all
def test_dpnp_has_a_oneapi_device_on_any_x86_cpu() -> None:
    code = (
        "from tests.support import coexist; coexist.prepare()\n"
        "import dpnp; device_type, _ = dpnp.ones(3).__dlpack_device__(); print(int(device_type))"
    )
    assert run(code) == "14"  # kDLOneAPI


@pytest.mark.heavy
@needs_all
def test_all_meet_in_one_process_in_import_order() -> None:
    code = (
        "from tests.support import coexist; coexist.prepare()\n"
        "names = ['torch', 'jax', 'tensorflow', 'mlx.core', 'warp', 'paddle', 'dpnp', 'pyarrow']\n"
        "for name in coexist.in_import_order(names): __import__(name)\n"
        "import dpnp, paddle, tensorflow as tf\n"
        "total = dpnp.ones(3).sum(), paddle.ones([3]).sum(), tf.reduce_sum(tf.ones(3))\n"
        "print([float(x) for x in total])"
    )
    assert run(code).splitlines()[-1] == "[3.0, 3.0, 3.0]"


@pytest.mark.heavy
@needs_all
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_paddle_finds_openmp_without_the_systems() -> None:
    code = (
        "from tests.support import coexist; coexist.prepare()\n"
        "loaded = {line.split()[-1] for line in open('/proc/self/maps') if 'libgomp' in line}\n"
        "import paddle; paddle.ones([3]).sum()\n"
        "print(loaded == {str(coexist.openmp_runtime().resolve())})"
    )
    assert run(code) == "True"


@pytest.mark.heavy
@pytest.mark.skipif(importlib.util.find_spec("numba_cuda") is None, reason="no numba-cuda")
def test_numba_cuda_imports_without_a_toolkit() -> None:
    assert run("import numba.cuda as cuda; print(callable(cuda.as_cuda_array))") == "True"
