"""Every ordered pair of libraries over every case: nothing wrong, no crash, no needless error."""

from __future__ import annotations

import pytest

from tests.matrix import cases, run
from tests.matrix.libraries import installed

LIGHT = ["numpy", "torch", "jax", "pyarrow", "tvm_ffi", "array_api_strict"]
HEAVY = ["tensorflow", "paddle", "warp", "mlx", "dpnp"]
HEAVY += ["onnxruntime", "openvino", "pillow", "cuda_core"]
BESIDE_HEAVY = ["numpy", "torch", "jax"]
#: The fewest cases that a source can express: fewer, and the matrix lost some of its arrays.
LIVE = {"numpy": 250, "torch": 200, "pyarrow": 150, "tvm_ffi": 150, "array_api_strict": 200,
        "paddle": 120, "mlx": 120, "cuda_core": 150, "onnxruntime": 80, "openvino": 140,
        "dpnp": 120, "warp": 90, "jax": 25, "tensorflow": 20, "pillow": 5}  # fmt: skip


def all_right(first: str, libraries: list[str]) -> None:
    """One library to all others and back; a test for each, as none may last five minutes."""
    cells = run.run(libraries, cases.all_cases(), native=False, first=first)
    bad = run.failures(cells)
    told = "\n".join(f"{c.source} -> {c.target}, {c.case}: {c.verdict} {c.why}" for c in bad[:40])
    assert not bad, f"{len(bad)} of {len(cells)} cells\n{told}"
    for other in libraries[libraries.index(first) + 1 :]:
        for way in ((first, other), (other, first)):
            assert sum(c[:2] == way and c.verdict != "n/a" for c in cells) >= LIVE[way[0]], way


def test_light_libraries() -> None:
    all_right("numpy", installed(LIGHT[:3]))


@pytest.mark.heavy
@pytest.mark.parametrize("first", LIGHT[:-1] + HEAVY)
def test_all_libraries(first: str) -> None:
    """`make matrix`, of every two, asks the own importers as well."""
    libraries = installed(LIGHT if first in LIGHT else [first, *BESIDE_HEAVY])
    if first not in libraries:
        pytest.skip(f"no {first}")
    all_right(first, libraries)
