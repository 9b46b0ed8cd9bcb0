"""Every ordered pair of libraries over every case: nothing wrong, no crash, no needless error."""

from __future__ import annotations

import importlib.util
import re
import warnings

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


def test_light_libraries() -> None:
    """A sample of what follows."""
    all_right("numpy", installed(LIGHT), native=False)


@pytest.mark.heavy
@pytest.mark.parametrize("target", LIGHT + HEAVY)
def test_all_libraries(target: str) -> None:
    libraries = installed(LIGHT + HEAVY)
    if target not in libraries:
        pytest.skip(f"no {target}")
    all_right(target, libraries, native=True)


@pytest.mark.parametrize(
    ("door", "case", "told"),
    [
        (lambda x: torch_of(x.copy()), "contiguous", "explain says view, "),
        (lambda x: torch_of(x.view()), "read-only float32", "explain says kernel, "),
        (lambda x: torch_of(x) if Turns.odd() else None, "permuted", None),
        (lambda x: torch_of(x.copy()) if Turns.odd() else None, "permuted", "says view|later one"),
    ],
)
def test_a_door_that_does_otherwise_is_seen(door, case, told, monkeypatch) -> None:
    pytest.importorskip("torch")
    from arraybridge.cli.cell import WRONG, Pair
    from arraybridge.dispatch.registry import forget, library_named

    Turns.count = 0
    monkeypatch.setattr(library_named("torch"), "doors", {"numpy": door})
    try:
        found = Pair("numpy", "torch").cell(*cases.chosen([case]))
    finally:
        forget()
    if told is None:
        assert found["verdict"] == "view"
    else:
        assert found["verdict"] == WRONG
        assert re.search(told, found["why"])


class Turns:
    """Every other call."""

    count = 0

    @classmethod
    def odd(cls) -> bool:
        cls.count += 1
        return cls.count % 2 == 1


def torch_of(x):
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of read-only memory
        return torch.from_numpy(x)
