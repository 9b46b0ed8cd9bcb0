"""The environment and the import order that let the libraries live in one process."""

from __future__ import annotations

import sys

import pytest

from tests.support import coexist
from tests.support.optional import installed
from tests.support.processes import python


def test_prepare_sets_what_is_missing_and_leaves_what_the_user_set() -> None:
    environ: dict[str, str] = {}
    coexist.prepare(environ)
    assert environ == coexist.variables()
    assert environ["TF_CPP_MIN_LOG_LEVEL"] == "3"
    mine = {"TF_CPP_MIN_LOG_LEVEL": "0", "OCL_ICD_FILENAMES": "mine.so"}
    environ = dict(mine)
    coexist.prepare(environ)
    assert environ.items() >= mine.items()


def test_the_libraries_that_mind_come_first() -> None:
    names = ["torch", "tensorflow", "jax", "paddle", "dpnp", "numpy"]
    first = ["dpnp", "paddle", "tensorflow"]
    assert coexist.in_import_order(names) == [*first, "torch", "jax", "numpy"]


#: As a process begins that inherited nothing: what the tests' own is prepared with, is gone.
PREPARED = """
import os
from tests.support import coexist
for name in coexist.variables():
    os.environ.pop(name, None)
coexist.prepare()
"""
needs_all = pytest.mark.skipif(
    not all(map(installed, coexist.IMPORT_ORDER)),
    reason="not on this platform: " + ", ".join(coexist.IMPORT_ORDER),
)


@pytest.mark.heavy
@needs_all
def test_dpnp_has_a_oneapi_device_on_any_x86_cpu() -> None:
    code = "import dpnp; print(int(dpnp.ones(3).__dlpack_device__()[0]))"
    assert python(PREPARED + code, flags=("-W", "ignore")) == "14\n"  # kDLOneAPI


@pytest.mark.heavy
@needs_all
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_paddle_finds_openmp_without_the_systems() -> None:
    code = (
        "loaded = {line.split()[-1] for line in open('/proc/self/maps') if 'libgomp' in line}\n"
        "import paddle; paddle.ones([3]).sum()\n"
        "print(loaded == {str(coexist.openmp_runtime().resolve())})"
    )
    assert python(PREPARED + code, flags=("-W", "ignore")) == "True\n"
