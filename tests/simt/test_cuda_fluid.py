"""The queueing model of the CUDA kernels: its bounds, its anchor, and the page."""

from __future__ import annotations

from statistics import geometric_mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.simt import fluid
from tests.simt.fluid import CLOCK, DEPENDENT, ISSUE, LATENCY, SMS, SPECIAL, Block, seconds
from tests.simt.model import DRAM, L2, PAGE, plan_of
from tests.simt.nest import plans
from tests.support import sass

times = st.floats(1e-9, 1e-5)
NESTS = {nest.name: nest for nest in fluid.nests()}


def rows() -> dict[str, list[str]]:
    """The table of the page."""
    text = PAGE.read_text().partition("<!-- shares: begin -->")[2]
    lines = text.partition("<!-- shares: end -->")[0].splitlines()
    cells = [[cell.strip() for cell in line[1:-1].split("|")] for line in lines if line[:1] == "|"]
    return {line[0]: line for line in cells[2:]}


@given(st.lists(times, min_size=1, max_size=4), times, st.integers(1, 8))
def test_throughput_is_within_its_bounds(busy: list[float], away: float, most: int) -> None:
    """Of the slowest server and of blocks that never queue; each further block helps."""
    rates = fluid.throughput(busy, away, most)
    for blocks, rate in enumerate(rates, 1):
        assert rate <= min(1 / max(busy), blocks / (away + sum(busy))) * (1 + 1e-9)
        assert rate >= blocks / (away + blocks * sum(busy)) * (1 - 1e-9)
    assert rates == pytest.approx(sorted(rates), rel=1e-9)


@pytest.mark.parametrize("resident", [6, 8])
def test_instructions_cost_what_was_measured(resident: int) -> None:
    """137 for 16 bytes rather than 74, in tiles of 16 KB: 6.6 % (pytorch/pytorch#194310)."""

    def took(instructions: int) -> float:
        moved = 2 * 16384 * SMS
        issued = instructions * 1024
        busy = moved / DRAM, moved / L2, 0.0, issued / 32 / ISSUE / CLOCK
        away = LATENCY + issued / 256 * DEPENDENT / CLOCK
        return seconds(Block(resident, 1, instructions, 32, busy, away), 124)

    assert 1.05 <= took(137) / took(74) <= 1.11


def test_a_launch_of_few_blocks_is_no_faster_for_more_room() -> None:
    block = Block(8, 1, 40, 32, (1e-6, 5e-7), 1e-6)
    assert seconds(block, 4) == seconds(block._replace(resident=4), 4)
    assert seconds(block, 64) < seconds(block._replace(resident=4), 64)


def test_the_page_has_every_layout() -> None:
    planned = {name: plans.name(plan_of(nest)[0]) for name, nest in NESTS.items()}
    assert {name: line[1] for name, line in rows().items()} == planned


@pytest.mark.parametrize("kernel", SPECIAL)
def test_what_stays_gains_ten_percent(kernel: str) -> None:
    gains = [line[9] for line in rows().values() if f"cuda {kernel} " in line[1]]
    assert geometric_mean([1 + int(gain.split()[0]) / 100 for gain in gains]) >= 1.1


@pytest.mark.heavy
@pytest.mark.skipif(sass.missing() is not None, reason=str(sass.missing()))
@pytest.mark.parametrize("name", [*NESTS][::3])  # two seconds each
def test_the_page(name: str) -> None:
    if sass.versions() not in sass.PAGE.read_text():
        pytest.skip(f"{PAGE.name} was made with other versions than {sass.versions()}")
    assert list(fluid.row(NESTS[name])) == rows()[name], "run python -m tests.simt.fluid --write"
