"""The library of compiled kernels: what it holds, when it is used, and what is done without it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from arraybridge.kernels.cpu import build, loader
from arraybridge.layout import canonical
from tests.support import guarded
from tests.support.processes import python
from tests.support.strategies import layouts

plans = import_module("arraybridge.kernels.cpu.plan")
BUILT = {vector: {*build.keys(vector)} for vector in (16, 32, 64)}


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(layouts(), st.sampled_from([*BUILT]), st.booleans())
def test_what_a_plan_chooses_is_built(layout, vector: int, small: bool) -> None:
    """Also if a vector takes a few items only, as it does in extents larger than are drawn."""
    form = canonical(*layout)
    if 0 not in form.shape:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(plans, "VECTOR", vector)
            assert plans.plan.__wrapped__(form).kernel in BUILT[vector]


@pytest.mark.parametrize("vector", BUILT)
def test_all_that_is_built_is_chosen_by_some_layout(vector: int) -> None:
    """And the other way round, of layouts in the style of real ones."""
    chosen = set()
    for number in range(0, 60 * guarded.BLOCK, 29):
        case = guarded.draw("built", number)
        made = guarded.planned(case._replace(vector=vector))
        if made is not None:
            chosen.add(made[0].kernel)
    assert chosen <= BUILT[vector]
    assert {(key.kind, key.width, key.parts) for key in BUILT[vector] - chosen} == set()


def test_all_is_there() -> None:
    assert loader.unavailable() is None
    for kind in loader.FAMILIES[loader.machine()]:
        for key in build.keys(kind.vector):
            assert loader.address(key)
            assert loader.nest(key)


X86 = {name: True for kind in loader.FAMILIES["x86_64"] for name in kind.needs}


@pytest.mark.parametrize(
    ("family", "lacks", "vectors"),
    [
        ("x86_64", "", [64, 32, 16]),
        ("x86_64", "AVX512VBMI", [32, 16]),  # Skylake
        ("x86_64", "X86_V3 AVX512_SKX", [16]),
        ("x86_64", "AVX512_SKX FMA3", [16]),
        ("x86_64", "AVX512VBMI AVX2 SSE42", []),
        ("aarch64", "", [16]),
        ("arm64", "", [16]),
        ("riscv64", "", []),
    ],
)
def test_the_sets_that_a_cpu_can_run(family: str, lacks: str, vectors: list[int]) -> None:
    has = {**X86, "ASIMD": True} | dict.fromkeys(lacks.split(), False)
    assert [kind.vector for kind in loader.kinds(family, has)] == vectors
    old = {name: value for name, value in has.items() if name[:5] != "X86_V"}  # NumPy 2.3
    if "X86_V" not in lacks:
        assert [kind.vector for kind in loader.kinds(family, old)] == vectors


def test_what_numpy_is_told_to_do_without_is_not_used() -> None:
    code = "from arraybridge.kernels.cpu import plan; print(plan.VECTOR)"
    if loader.VECTOR < 32:
        pytest.skip("this CPU has nothing to do without")
    off = {"NPY_DISABLE_CPU_FEATURES": "AVX512_SKX AVX512_ICL X86_V4"}
    assert int(python(code, flags=("-W", "ignore"), env=off)) == 32


USE = """
import json, sys
import numpy as np, arraybridge as ab
sys.modules["numba"] = sys.modules["llvmlite"] = None
from arraybridge.kernels.cpu import loader
CODE
for dtype in "u1", "f4", "c16":
    x = np.arange(301 * 555).astype(dtype).reshape(301, 555)
    for view in x.T, x[:, ::-1], x[:, ::2], x[:, 3:-5], np.broadcast_to(x[:, :1], x.shape):
        assert (ab.contiguous(view) == view).all()
        assert (ab.convert(view, "numpy", copy=True) == view).all()
route = ab.explain(x.T, "numpy", copy=True)
why = loader.unavailable()
assert route.kernel == (f"NumPy's copy ({why})" if why else "arraybridge's own copy"), route
import arraybridge.cli
arraybridge.cli.main(["info", "--json"])
"""


def used(code: str = "", **env: str) -> str:
    """Copy and compare in a process without Numba; what `info` says of the kernels."""
    said = json.loads(python(USE.replace("CODE", code), env=env))
    return said["arraybridge"]["CPU kernels"]


def test_numba_is_not_needed() -> None:
    assert used() == f"{loader.LIBRARY}, for {8 * loader.VECTOR} bits"


def replace(path: Path, old: bytes, new: bytes) -> None:
    whole = path.read_bytes()
    assert old in whole
    path.write_bytes(whole.replace(old, new))


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (Path.unlink, "there is no "),
        (lambda path: path.write_bytes(b"none"), "cannot be loaded here"),
        (lambda path: os.truncate(path, 100_000), "cut short"),
        (lambda path: replace(path, b"arraybridge_sources", b"arraybridge_others!"), "symbol"),
        (
            lambda path: replace(path, loader.digest().encode(), b"0" * len(loader.digest())),
            "other sources",
        ),
    ],
    ids=["none", "damaged", "cut", "another", "older"],
)
def test_without_it_numpy_copies(tmp_path: Path, harm, said: str) -> None:
    library = Path(shutil.copy(loader.LIBRARY, tmp_path))
    harm(library)
    told = used(f"loader.LIBRARY = {str(library)!r}")
    assert "not used" in told
    assert said in told
    assert "pip install" in told


def test_it_can_be_turned_off() -> None:
    assert "ARRAYBRIDGE_NO_KERNELS" in used(ARRAYBRIDGE_NO_KERNELS="1")


@pytest.mark.skipif(shutil.which("readelf") is None, reason="needs readelf")
def test_it_depends_on_the_c_library_alone() -> None:
    """On its memcpy and the like, which every process has; no path, no code on the stack."""

    def read(flag: str) -> str:
        return subprocess.check_output(["readelf", "-W", flag, loader.LIBRARY], text=True)

    symbols = [line.split() for line in read("--dyn-syms").splitlines() if "GLOBAL" in line]
    wanted = {words[-1] for words in symbols if "UND" in words}
    assert wanted <= {"memcpy", "memmove", "memset"}
    given = {words[-1] for words in symbols if "UND" not in words}
    assert all(name.startswith("arraybridge_") for name in given)
    assert not {"(NEEDED)", "(RPATH)", "(RUNPATH)", "(TEXTREL)"} & {*read("-d").split()}
    segments = read("-l").splitlines()
    (stack,) = (line.split() for line in segments if "GNU_STACK" in line)
    assert stack[6] == "RW"
    assert not [line for line in segments if "LOAD" in line and "RWE" in line]
