"""The CUDA kernels' machine code: nothing spilled, nothing divided, accesses as wide as planned."""

from __future__ import annotations

import pytest

from arraybridge.kernels.cuda.family import FAMILY
from arraybridge.kernels.cuda.plan import name
from arraybridge.kernels.cuda.tuning import CHOICES, DEFAULT
from tests.support import sass
from tests.support.sass import CASES, DIVISION, LOADS, PAGE, STORES, VARIANTS, Case

#: Compiled each time; of the others, those whose PTX is not what the page was written from.
SAMPLE = [*{case.plan.kernel: case for case in CASES}.values(), VARIANTS[0]]

compiles = pytest.mark.skipif(sass.missing() is not None, reason=str(sass.missing()))


@pytest.mark.heavy
@compiles
@pytest.mark.parametrize("case", [*CASES, *VARIANTS], ids=lambda case: case.name + case.variant)
def test_machine_code(case: Case) -> None:
    text, row = PAGE.read_text(), sass.variant_row if case.variant else sass.row
    current = sass.versions() in text
    start = f"| {case.name} | {case.variant or name(case.plan)} | "
    rows = [line for line in text.splitlines() if line.startswith(start)]
    if current and case not in SAMPLE and any(sass.digest(case) in line for line in rows):
        return  # the same compiler has made the same of it, which was checked
    sass.check(case)
    assert not current or row(case) in rows, "run python -m tests.support.sass --write"


def test_the_page_has_every_case() -> None:
    text = PAGE.read_text()
    for case in CASES:
        assert f"| {case.name} | {name(case.plan)} |" in text
    for case in VARIANTS:
        assert f"| {case.name} | {case.variant} |" in text


def test_every_variant_has_a_case() -> None:
    """And is another kernel than the default's."""
    for field, choices in CHOICES.items():
        seen = {getattr(case.tuning, field) for case in VARIANTS}
        assert seen >= set(choices[1:]), field
    for case in VARIANTS:
        assert case.plan.constants != case._replace(tuning=DEFAULT).plan.constants, case


def test_every_kernel_has_a_case() -> None:
    assert {case.plan.kernel for case in CASES} == set(FAMILY)
    widths = {case.plan.constants[0] for case in CASES if case.plan.kernel == "tile"}
    assert widths == {1, 2, 4, 8, 16}


LOG = """
    8 bytes stack frame, 4 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 360 bytes cmem[0]
"""
LISTING = """
.text.kernel:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/               @P0 BRA `(.L_x_1) ;
        /*0020*/                   LDG.E.128.CONSTANT R4, [R2.64] ;
        /*0030*/                   STS.128 [R0], R4 ;
        /*0040*/                   BRA `(.L_x_2) ;
.L_x_1:
        /*0050*/                   MUFU.RCP R0, R0 ;
        /*0060*/              @!P1 LDG.E.U8.CONSTANT R4, [R2.64] ;
.L_x_2:
        /*0070*/                   BAR.SYNC.DEFER_BLOCKING 0x0 ;
.L_x_3:
        /*0080*/                   LDS.128 R4, [R0] ;
        /*0090*/                   STG.E.128 desc[UR4][R2.64], R4 ;
        /*00a0*/               @P2 BRA `(.L_x_3) ;
        /*00b0*/                   EXIT ;
.L_x_4:
        /*00c0*/                   BRA `(.L_x_4);
"""


def test_reading_machine_code() -> None:
    code = sass.parsed(90, LOG, LISTING)
    assert (code.registers, code.spilled) == (40, 12)
    assert code.widths(LOADS) == {16: 1, 1: 1}
    assert code.widths(STORES) == {16: 1}
    assert code.count(*DIVISION) == 1
    # LDC, BRA, LDG, STS, BRA, BAR for a vector's load; LDS, STG, BRA, EXIT for its store.
    assert code.per_vector() == 6 + 4
