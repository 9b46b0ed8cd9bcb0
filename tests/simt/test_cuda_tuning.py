"""Which variant a device gets: the table, and that plans, code and copies follow it."""

from __future__ import annotations

from typing import Any

import pytest

from arraybridge.kernels import cuda
from arraybridge.kernels.common_layouts import cuda_plans
from arraybridge.kernels.cuda import build, tuning
from arraybridge.kernels.cuda.tuning import CHOICES, DEFAULT, Tuning
from tests.support import stub_driver

DST, SRC = 0x7F_0000_0000, 0x7E_0000_0000
SWAPPED = ((500, 512, 65), (133120, 260, 4), (260, 130000, 4), 4)  # by `box`


def test_the_defaults_are_the_first_choices() -> None:
    assert tuple(CHOICES) == Tuning._fields
    assert Tuning(*(choices[0] for choices in CHOICES.values())) == DEFAULT
    assert all(len(set(choices)) == len(choices) > 1 for choices in CHOICES.values())


def test_the_table() -> None:
    """What is in it may be chosen, and runs on the devices that it is for."""
    for capability, chosen in tuning.table().items():
        major, minor = map(int, capability.split("."))
        assert capability == f"{major}.{minor}"
        for field, choice in chosen.items():
            assert choice in CHOICES[field][1:], (capability, field)
        made = tuning.of((major, minor))
        for _, plan in cuda_plans((1, 2, 4, 8, 16), made):
            assert build.capability(plan) <= (major, minor)


def test_a_device_that_is_not_in_the_table() -> None:
    assert tuning.of((99, 0)) == DEFAULT


def test_what_needs_a_newer_device_says_so() -> None:
    (today,) = cuda.plans(*SWAPPED)
    (other,) = cuda.plans(*SWAPPED, 0, 0, DEFAULT._replace(box="cp.async"))
    assert build.capability(today) == (7, 5)
    assert build.capability(other) == (8, 0)


@pytest.fixture
def table(monkeypatch):
    """A table that a test fills."""
    made: dict[str, dict[str, Any]] = {}
    monkeypatch.setattr(tuning, "table", lambda: made)
    tuning.of.cache_clear()
    yield made
    tuning.of.cache_clear()


def test_a_device_gets_what_its_capability_is_tuned_to(table, tmp_path) -> None:
    table["9.0"] = {"box": "cp.async"}
    with stub_driver.emulated(tmp_path / "kernels", (9, 0), (8, 0)) as stub:
        seen = []
        stub.cuLaunchKernel = lambda *arguments: seen.append(stub.launched(*arguments)[0])
        for device, tuned in enumerate((DEFAULT._replace(box="cp.async"), DEFAULT)):
            cuda.copy(DST, SRC, *SWAPPED, device=device)
            (expected,) = cuda.plans(*SWAPPED, DST, SRC, tuned)
            assert seen.pop() == expected._replace(dst_offset=0, src_offset=0)
