"""The CUDA kernels' machine code: nothing spilled, nothing divided, accesses as wide as planned."""

from __future__ import annotations

import pytest

from arraybridge.kernels.cuda.family import FAMILY
from arraybridge.kernels.cuda.plan import name
from arraybridge.kernels.cuda.plan_types import THREADS
from arraybridge.kernels.cuda.tuning import CHOICES, DEFAULT
from tests.support import sass
from tests.support.sass import ARCHITECTURES, CASES, LOADS, PAGE, STORES, VARIANTS, Case

REGISTERS = 65536  # of a multiprocessor, on all of them
RESIDENT = {75: 1024, 86: 1536, 89: 1536, 120: 1536}  # threads of a multiprocessor; else 2048

#: What a division becomes: an approximate reciprocal, conversions, or a call.
DIVISION = ("MUFU", "I2F", "I2FP", "F2I", "CALL", "RCP")
LOCAL = ("LDL", "STL")

compiles = pytest.mark.skipif(sass.missing() is not None, reason=str(sass.missing()))


@pytest.mark.heavy
@compiles
@pytest.mark.parametrize("case", [*CASES, *VARIANTS], ids=lambda case: case.name + case.variant)
def test_machine_code(case: Case) -> None:
    codes = sass.compiled(case)
    asynchronous = "cp.async" in case.plan.constants
    assert set(codes) == {each for each in ARCHITECTURES if not asynchronous or each >= 80}
    for architecture, code in codes.items():
        said = f"{name(case.plan)}, sm_{architecture}"
        assert (code.count("LDGSTS") > 0) == asynchronous, said
        assert code.spilled == 0, said
        assert code.count(*DIVISION, *LOCAL) == 0, said
        for letter, names in (("l", LOADS), ("s", STORES)):
            if letter in case.vectors:
                assert max(code.widths(names)) == 16, said
        assert code.per_vector() <= case.most, said
        blocks = min(FAMILY[case.plan.kernel].blocks, RESIDENT.get(architecture, 2048) // THREADS)
        assert code.registers * THREADS * blocks <= REGISTERS, said


@pytest.mark.heavy
@compiles
def test_the_page_is_what_the_kernels_are() -> None:
    text = PAGE.read_text()
    if sass.versions() not in text:
        pytest.skip(f"docs/{PAGE.name} is of other versions than {sass.versions()}")
    for case in CASES:
        assert sass.row(case) in text, "run python -m tests.support.sass --write"
    for case in VARIANTS:
        assert sass.variant_row(case) in text, "run python -m tests.support.sass --write"


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
