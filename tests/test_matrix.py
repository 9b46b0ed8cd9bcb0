"""Every ordered pair of libraries over every case: nothing wrong, no crash, no needless error."""

from __future__ import annotations

import importlib.util

import pytest

from arraybridge.cli import cases, matrix

pytest.importorskip("rich")
LIGHT = ["numpy", "torch", "jax", "pyarrow", "tvm_ffi", "array_api_strict"]
HEAVY = ["tensorflow", "paddle", "warp", "mlx", "dpnp"]
# Cells that each source can express; fewer would mean that the matrix lost some of its arrays.
LIVE = {
    "numpy": 250,
    "torch": 200,
    "jax": 25,
    "pyarrow": 150,
    "tvm_ffi": 150,
    "array_api_strict": 200,
    "tensorflow": 20,
    "paddle": 120,
    "warp": 180,
    "mlx": 120,
    "dpnp": 120,
}


def installed(names: list[str]) -> list[str]:
    return [name for name in names if importlib.util.find_spec(matrix.LIBRARIES[name]) is not None]


def all_right(target: str, libraries: list[str], *, native: bool) -> None:
    """Every other library to one; a test a target, as one test may not last five minutes."""
    cells = matrix.run(libraries, cases.chosen(None), native=native, targets=[target])
    bad = matrix.failures(cells)
    told = "\n".join(
        f"{c.source} -> {c.target}, {c.case}: {c.verdict} {c.why}, own door {c.native}"
        for c in bad[:40]
    )
    assert not bad, f"{len(bad)} of {len(cells)} cells\n{told}"
    for source in libraries:
        live = {c.case for c in cells if c.source == source and c.verdict != "n/a"}
        assert source == target or len(live) >= LIVE[source], (source, len(live))


@pytest.mark.parametrize("target", LIGHT)
def test_light_libraries(target: str) -> None:
    libraries = installed(LIGHT)
    if target not in libraries:
        pytest.skip(f"no {target}")
    all_right(target, libraries, native=False)


@pytest.mark.heavy
@pytest.mark.parametrize("target", LIGHT + HEAVY)
def test_all_libraries(target: str) -> None:
    libraries = installed(LIGHT + HEAVY)
    if target not in libraries:
        pytest.skip(f"no {target}")
    all_right(target, libraries, native=True)
