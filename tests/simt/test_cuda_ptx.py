"""The compiled kernels, as PTX, against NumPy: byte for byte, without a device; see support.ptx."""

from __future__ import annotations

import re
from functools import cache

import pytest

from arraybridge.kernels.cuda.family import FAMILY
from arraybridge.kernels.cuda.plan import name
from arraybridge.kernels.cuda.plan_types import Plan
from arraybridge.kernels.cuda.tuning import CHOICES, Tuning
from arraybridge.layout import c_strides
from tests.simt.memory import Memory
from tests.simt.nest import planned
from tests.simt.values import Fault
from tests.support import sass
from tests.support.ptx import copied, execute, parsed

compiles = pytest.mark.skipif(sass.missing() is not None, reason=str(sass.missing()))


@cache
def compiled(kernel: str, constants: tuple[object, ...], lengths: tuple[int, int, int]) -> str:
    from arraybridge.kernels.cuda.build import ptx

    return ptx(Plan(kernel, constants, 1, *[(0,) * length for length in lengths]))


def text_of(plan: Plan) -> str:
    extents, divisions, steps = map(len, plan[3:6])
    return compiled(plan.kernel, plan.constants, (extents, divisions, steps))


#: Views that are made contiguous: shape, strides in **bytes**, itemsize, where both sides start.
VIEWS = [
    ((304, 272), (1, 304), 1, 0, 0),
    ((120, 248), (2, 240), 2, 0, 0),
    ((88, 68), (4, 352), 4, 0, 0),
    ((52, 34), (8, 416), 8, 0, 0),
    ((35, 33), (16, 560), 16, 0, 0),
    ((2, 64, 96), (-24576, 4, 256), 4, 0, 0),
    ((40, 300), (-4, 160), 4, 0, 0),
    ((83, 77), (4, 332), 4, 0, 4),
    ((75, 83), (-8, 600), 8, 8, 8),
    ((301, 261), (1, 302), 1, 3, 5),
    ((151, 261), (2, 304), 2, 2, 6),
    ((2, 100, 131), (-13100, -1, 100), 1, 0, 1),
    ((20, 256), (2048, 1), 1, 0, 0),
    ((4, 6, 3, 64), (256, 1024, 6144, 4), 4, 0, 0),
    ((7, 3, 40), (320, 2240, 8), 8, 8, 0),
    *[((9, 160 // w), (160, -w), w, 0, 0) for w in (1, 2, 4, 8, 16)],
    *[((9, 160 // w), (w, 0), w, 0, 0) for w in (1, 2, 4, 8, 16)],
    *[((9, 1001), (1001 * w + 3 * w, w), w, w, 3 * w) for w in (1, 2, 4)],
    *[((9, 101), (101 * w, -w), w, w, 3 * w) for w in (1, 2, 4, 8)],
    *[((9, 101), (w, 0), w, 3 * w, w) for w in (1, 2, 4, 8)],
    *[((3, 20, 32), (w, 96 * w, 3 * w), w, 0, 0) for w in (1, 2, 4, 8)],
    ((4, 20, 32), (-1, 128, 4), 1, 0, 0),
    ((20, 64), (512, 8), 4, 0, 4),
    ((20, 64), (1024, 16), 4, 0, 8),
    ((20, 64), (2048, 32), 8, 0, 24),
    *[((20, 32, 3), (32 * w, w, 640 * w), w, 0, 0) for w in (1, 2, 4, 8)],
    ((20, 32, 2), (64, 2, 1280), 2, 0, 0),
    ((640, 4), (1, 640), 1, 0, 0),
    *[((61, 67), (w, 61 * w), w, w, 3 * w) for w in (1, 2)],
    ((2, 4, 16, 128), (8192, 128, 512, 1), 1, 0, 0),  # the pieces of a thread along one axis
    ((4, 4096), (1, 0), 1, 0, 0),
    *[((2, 8192), (8208, step), 1, 0, 3) for step in (1, -1)],
    ((2, 1024, 2), (4096, 4, 8192), 4, 0, 0),
    ((12, 10, 65), (260, 3120, 4), 4, 0, 4),
    ((50, 70), (3, 150), 3, 1, 2),
    ((9, 5, 7, 3), (4, 252, 36, 1260), 4, 4, 8),
    ((13, 11, 9), (28, 4004, 364), 4, 0, 0),
]  # fmt: skip


#: The last of what a tuning may choose, of everything.
VARIANTS = {"_MANY": 0, "tuning": Tuning(*[choices[-1] for choices in CHOICES.values()])}


def planned_as(view, **settings):
    shape, strides, itemsize, dst, src = view
    return planned(shape, c_strides(shape, itemsize), strides, itemsize, dst, src, **settings)[0]


def ran(shape, strides, itemsize, dst_start, src_start, text=text_of, **settings):
    """Copy a view into a dense array by compiled kernels; the plans."""
    dense = c_strides(shape, itemsize)
    memory = Memory(shape, dense, strides, itemsize, dst_start, src_start)
    plans, dst, src = planned(shape, dense, strides, itemsize, memory.dst, memory.src, **settings)
    copied([(text(one), one) for one in plans], dst, src, memory)
    return plans


@pytest.mark.heavy
@compiles
@pytest.mark.parametrize("view", VIEWS, ids=map(str, VIEWS))
@pytest.mark.parametrize("settings", [{}, {"_MANY": 0}, VARIANTS], ids=["", "many", "variants"])
def test_against_numpy(view, settings) -> None:
    if settings is VARIANTS and planned_as(view, **settings) == planned_as(view, _MANY=0):
        pytest.skip("no variant is for it")
    ran(*view, **settings)


@pytest.mark.heavy
@compiles
def test_single_items() -> None:
    for width in (1, 2, 4, 8, 16):
        (one,) = ran((7, 11, 30), (width, 7 * 30 * width, 7 * width), width, 0, 0, small=1 << 20)
        assert one.kernel == "gather"


def test_every_kernel_is_run() -> None:
    """And the tiles, and both ways through channels, in every width."""
    plans = {
        made
        for shape, strides, itemsize, dst, src in VIEWS
        for made in planned_as((shape, strides, itemsize, dst, src))
    }
    assert {plan.kernel for plan in plans} == set(FAMILY)
    for kernel in ("tile", "split", "merge", "box"):
        widths = {plan.constants[0] for plan in plans if plan.kernel == kernel}
        assert widths >= {1, 2, 4}, kernel
    said = {name(plan) for plan in plans}
    for mode in ("reversed", "repeated"):
        assert sum(mode in one for one in said if "shift" in one) == 4
    assert any("repeated" in one for one in said if "rows" in one)


CODE = """
.visible .shared .align 16 .b8 sm[1024];
.visible .entry arraybridge_test(
	.param .u64 p_0,
	.param .u64 p_1
)
{
	.reg .b32 	%r<9>;
	ld.param.u64 	%rd1, [p_0];
	ld.param.u64 	%rd2, [p_1];
	mov.u32 	%r1, %tid.x;
	shl.b32 	%r2, %r1, 2;
	cvt.s64.s32 	%rd3, %r2;
	add.s64 	%rd4, %rd2, %rd3;
	ld.global.nc.u32 	%r3, [%rd4];
	mov.u64 	%rd5, sm;
	add.s64 	%rd6, %rd5, %rd3;
	setp.lt.s32 	%p1, %r1, 200;
	@%p1 bra 	$L_1;
	st.shared.u32 	[%rd6], %r3;
	bra.uni 	$L_2;
$L_1:
	st.shared.u32 	[%rd6], %r3;
$L_2:
	bar.sync 	0;
	ld.shared.u32 	%r4, [%rd6];
	prmt.b32 	%r5, %r4, %r4, 12816;
	add.s64 	%rd7, %rd1, %rd3;
	st.global.u32 	[%rd7], %r5;
	ret;
}
"""  # fmt: skip


class TestReading:
    """That the executor can fail."""

    def run(self, text: str) -> None:
        memory = Memory((1024,), (1,), (1,), 1)
        execute(text, Plan("test", (), 1), memory.dst, memory.src, memory)
        memory.check()

    def test_it_runs(self) -> None:
        assert len(parsed(CODE).code) == 20
        self.run(CODE)

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            ("12816", "12817"),  # another byte
            ("\tst.global.u32 	[%rd7], %r5;\n", ""),
            ("[%rd7]", "[%rd7+4]"),  # outside of the destination
            ("[%rd4]", "[%rd4+1]"),  # misaligned
            ("$L_2:\n\tbar.sync", "\tbar.sync 0;\n$L_2:\n\tbar.sync"),  # two barriers
            ("200", "-2;\n\tfoo.b32 %r7, %r7"),  # unknown
            ("ld.shared.u32 	%r4, [%rd6]", "ld.shared.u32 	%r4, [%rd6+1024]"),
        ],
    )
    def test_it_finds(self, before: str, after: str) -> None:
        assert before in CODE
        with pytest.raises((AssertionError, NotImplementedError, Fault)):
            self.run(CODE.replace(before, after))


@pytest.mark.heavy
@compiles
def test_a_wrong_permute_is_found() -> None:
    """Break the code once: the two words of a byte permute change places."""

    def broken(plan: Plan) -> str:
        text = text_of(plan)
        words = r"(prmt\.b32\s+%r\d+), (%r\d+), (?!\2)(%r\d+)"
        wrong, count = re.subn(words, r"\1, \3, \2", text, count=1)
        assert count == 1
        return wrong

    view = ((3, 20, 32), (1, 96, 3), 1, 0, 0)
    ran(*view)
    with pytest.raises(AssertionError, match="are wrong"):
        ran(*view, text=broken)


ASYNCHRONOUS = (
    CODE.replace("ld.global.nc.u32 	%r3, [%rd4];\n", "")
    .replace("	setp", "	cvt.u32.u64 	%r6, %rd6;\n	setp")
    .replace("st.shared.u32 	[%rd6], %r3;", "cp.async.ca.shared.global [%r6], [%rd4], 4;")
    .replace("	bar.sync", "	cp.async.wait_all;\n	bar.sync")
)


class TestAsynchronousCopies:
    def run(self, text: str) -> None:
        TestReading().run(text)

    def test_it_runs(self) -> None:
        self.run(ASYNCHRONOUS)

    @pytest.mark.parametrize(
        ("before", "after", "says"),
        [
            ("	cp.async.wait_all;\n", "", "touched while it is copied to"),
            ("cp.async.wait_all", "@%p1 cp.async.wait_all", "touched while it is copied to"),
            (".ca.", ".cg.", "cg"),  # which only 16 bytes have
        ],
    )
    def test_it_finds(self, before: str, after: str, says: str) -> None:
        assert before in ASYNCHRONOUS
        with pytest.raises(AssertionError, match=says):
            self.run(ASYNCHRONOUS.replace(before, after))
