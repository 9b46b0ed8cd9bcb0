"""Machine code of the CUDA kernels, made and read without a device: PTX to SASS, and what it costs.

`python -m tests.support.sass --write` writes benchmarks/results/cuda_machine_code.md.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from arraybridge.kernels.cuda.family import FAMILY
from arraybridge.kernels.cuda.plan import name, plan
from arraybridge.kernels.cuda.plan_types import THREADS, Plan
from arraybridge.kernels.cuda.tuning import DEFAULT, Tuning
from arraybridge.layout import c_strides, canonical

#: Compute capabilities, 10 times: Turing, A100, RTX 30, RTX 40, H100, B200, RTX 50.
ARCHITECTURES = (75, 80, 86, 89, 90, 100, 120)

#: Instructions that 16 bytes may take where each is gathered by itself.
BYTES = 136

#: Bytes that a thread of a whole tile loads, and stores.
SHARE = 64

#: Of global memory; LDGSTS is ``cp.async``.
LOADS, STORES = ("LDG", "LDGSTS"), ("STG",)

#: What a division becomes: an approximate reciprocal, conversions, or a call.
DIVISION = ("MUFU", "I2F", "I2FP", "F2I", "CALL", "RCP")
LOCAL = ("LDL", "STL")

REGISTERS = 65536  # of a multiprocessor, on all of them
RESIDENT = {75: 1024, 86: 1536, 89: 1536, 120: 1536}  # threads of a multiprocessor; else 2048

END = -1  # of a kernel, among the places that a way leads to

_TOOLS = {"ptxas": "nvidia-cuda-nvcc", "nvdisasm": "nvidia-cuda-nvdisasm"}


class Case(NamedTuple):
    """A layout whose plan is compiled: a view to be made C-contiguous, in **bytes**."""

    name: str
    shape: tuple[int, ...]
    src_strides: tuple[int, ...]
    itemsize: int
    vectors: str = "ls"  # what must be 16 bytes wide: loads, stores, both ("ls"), none ("")
    most: int = 64  # instructions that 16 bytes may take
    src: int = 0  # the source's address modulo 16
    tuning: Tuning = DEFAULT

    @property
    def plan(self) -> Plan:
        strides = c_strides(self.shape, self.itemsize)
        form = canonical(self.shape, strides, self.src_strides, self.itemsize)
        (one,) = plan(form, form.dst_offset % 16, (self.src + form.src_offset) % 16, 0, self.tuning)
        return one

    @property
    def variant(self) -> str:
        """What is chosen otherwise than by default."""
        chosen = self.tuning._asdict().items()
        return ", ".join(f"{k} {v}" for k, v in chosen if v != getattr(DEFAULT, k))


def _transposed(width: int, rows: int, columns: int, outer: int = 1) -> Case:
    name = f"transpose, {width}-byte items" + (", batched" if outer > 1 else "")
    name += ", tall" if rows == 4096 else ", wide" if columns == 4096 else ""
    shape, strides = (columns, rows), (width, columns * width)
    if outer > 1:
        shape, strides = (outer, *shape), (rows * columns * width, *strides)
    aligned = not (rows * width % 16 or columns * width % 16)
    vectors = "ls" if aligned else "l" if width < 4 else ""
    most = 64 if aligned or width >= 4 else 110 if width > 1 else BYTES
    return Case(name + ("" if aligned else ", odd sizes"), shape, strides, width, vectors, most)


CASES = [
    *[_transposed(width, 512, 1024) for width in (1, 2, 4, 8, 16)],
    _transposed(4, 512, 256, outer=3),
    *[_transposed(width, 4096, columns) for width, columns in ((8, 16), (4, 32), (2, 128))],
    *[_transposed(width, rows, 4096) for width, rows in ((8, 16), (4, 32), (16, 8))],
    _transposed(4, 1021, 515),
    _transposed(8, 1021, 515),
    Case("every other row", (4096, 1024), (8192, 4), 4, most=24),
    Case("every other row, odd", (4097, 1040), (8192, 4), 4, most=40),
    Case("attention heads", (8, 32, 2048, 64), (8388608, 128, 4096, 2), 2, most=32),
    Case("four axes of rows", (4, 6, 10, 64), (1024, 4096, 49152, 4), 4, most=120),
    Case("columns flipped", (4096, 1024), (4096, -4), 4, src=12, most=80),
    Case("columns flipped, bytes", (4096, 4096), (4096, -1), 1, src=15, most=84),
    Case("columns broadcast", (4096, 1024), (4, 0), 4, "s", 24),
    Case("columns broadcast, bytes, odd", (512, 1023), (1, 0), 1, "s", 120),
    Case("inner slice", (4096, 2048), (10000, 4), 4, src=12, most=72),
    Case("inner slice, bytes", (4096, 8192), (10000, 1), 1, src=3, most=80),
    Case("inner slice, odd", (4096, 2000), (10000, 4), 4, src=12, most=90),
    Case("inner slice, bytes, odd", (4096, 4001), (5001, 1), 1, src=3, most=90),
    Case("columns flipped, odd", (512, 1001), (8008, -4), 4, most=120),
    Case("HWC to CHW, bytes", (3, 512, 512), (1, 1536, 3), 1),
    Case("HWC to CHW, 4-byte items", (4, 512, 512), (4, 8192, 16), 4),
    Case("every other column", (512, 1024), (8192, 8), 4, "", 80),
    Case("one channel of three, bytes", (512, 512), (1536, 3), 1, src=1),
    Case("CHW to HWC, bytes", (512, 512, 3), (512, 1, 262144), 1),
    Case("CHW to HWC, 2-byte items", (512, 512, 4), (1024, 2, 524288), 2),
    _transposed(1, 1021, 555),
    _transposed(2, 1021, 555),
    Case("transpose, 3-byte items", (700, 500), (3, 2100), 3, "l", BYTES),
    Case("HWC to CHW, bytes, odd", (3, 500, 301), (1, 903, 3), 1, "l", BYTES),
    Case("first two axes swapped", (500, 512, 65), (260, 130000, 4), 4, "l", 120),
    Case(
        "pixel shuffle",
        (16, 64, 64, 2, 64, 2),
        (4194304, 65536, 256, 32768, 4, 16384),
        4,
        most=64,
    ),
    Case(
        "six axes, odd",
        (19, 11, 53, 7, 17, 13),
        (212, 68476, 4, 9792068, 4028, 753236),
        4,
        "l",
        120,
    ),
    Case("8-byte items, short axes", (60, 50, 12, 11), (5280, 88, 316800, 8), 8, "l", 120),
    Case("16-byte items, short axes", (60, 50, 12, 5), (4000, 80, 240000, 16), 16, "ls", 64),
    Case("three axes by items", (37, 41, 43), (28, 61916, 1712), 4, "", 250),
]  # fmt: skip


#: What a device's tuning may choose instead of a case's kernel.
VARIANTS = [
    case._replace(tuning=DEFAULT._replace(**tuning))
    for tuning, names in (
        (
            {"box": "cp.async"},
            ("transpose, 3-byte items", "first two axes swapped", "six axes, odd"),
        ),
        ({"shift": "known"}, ("inner slice", "inner slice, bytes", "inner slice, odd")),
        ({"merge": 2}, ("pixel shuffle",)),
        (
            {"plain": "cp.async"},
            ("transpose, 4-byte items, odd sizes", "transpose, 8-byte items, odd sizes"),
        ),
        ({"tile": 8192}, tuple(f"transpose, {width}-byte items" for width in (2, 4, 8, 16))),
        *[
            ({"hints": hints}, ("transpose, 4-byte items", "every other row"))
            for hints in ("loads", "stores", "both")
        ],
    )
    for case in CASES
    if case.name in names
]


class Instruction(NamedTuple):
    """One instruction of machine code."""

    opcode: str  # with its modifiers, as LDG.E.128.CONSTANT
    predicated: bool
    target: str = ""  # the label that it jumps to

    @property
    def name(self) -> str:
        return self.opcode.split(".")[0]

    @property
    def bytes(self) -> int:
        """What it loads or stores, a thread."""
        for bits in (128, 64):
            if f".{bits}" in self.opcode:
                return bits // 8
        if re.search(r"\.[US]8\b", self.opcode):
            return 1
        return 2 if re.search(r"\.[US]16\b", self.opcode) else 4


class Way(NamedTuple):
    """A way through the code: what it moves, up to `SHARE`, and what it takes. More is better."""

    bytes: int
    negative: int

    @property
    def steps(self) -> int:
        return -self.negative

    @property
    def per_vector(self) -> float:
        return self.steps / (self.bytes / 16)

    def then(self, moved: int, steps: int) -> Way:
        return Way(min(SHARE, self.bytes + moved), self.negative - steps)


class Code(NamedTuple):
    """A kernel's machine code for one architecture."""

    architecture: int
    registers: int  # a thread's
    spilled: int  # **bytes** stored in and loaded from local memory, the stack's included
    shared: int  # **bytes** of shared memory, a block's
    instructions: tuple[Instruction, ...]
    labels: dict[str, int]  # name -> index of the instruction that it stands before

    def count(self, *names: str) -> int:
        return sum(instruction.name in names for instruction in self.instructions)

    def widths(self, names: Sequence[str]) -> dict[int, int]:
        """How many instructions of some names there are, by the bytes that they move."""
        return dict(Counter(i.bytes for i in self.instructions if i.name in names))

    def per_vector(self) -> float:
        """Instructions that a thread issues to move 16 bytes, where it has `SHARE` to move.

        Of all ways through the code that move it, the shortest is taken: the one of whole tiles.
        Loops are walked once, or as often as that takes. If there is a barrier, the part
        before it is divided by the bytes that are loaded and the rest by those that are stored.
        """
        return min(self._per_vector(repeat) for repeat in (False, True))

    def _per_vector(self, repeat: bool) -> float:
        loaded = self._ways(0, len(self.instructions), LOADS, repeat)
        found = []
        for barrier in [at for at, i in enumerate(self.instructions) if i.name == "BAR"]:
            after = self._ways(barrier + 1, len(self.instructions), STORES, repeat).get(END)
            before = loaded.get(barrier)
            if before and after and before.bytes and after.bytes:
                moved = before.bytes + after.bytes
                found.append((-moved, before.per_vector + after.per_vector))
        if found:
            return min(found)[1]
        return self._ways(0, len(self.instructions), STORES, repeat)[END].per_vector

    def _ways(self, start: int, end: int, counted: Sequence[str], repeat: bool) -> dict[int, Way]:
        """The best way from `start` to each barrier, to `end`, and to where the kernel ends."""
        best: dict[int, Way] = {}
        here = {start: Way(0, 0)}
        for at in range(start, end):
            if at not in here:
                continue
            instruction = self.instructions[at]
            now = here.pop(at).then(instruction.bytes * (instruction.name in counted), 1)
            if instruction.name == "BAR":
                best[at] = now
                continue
            follows = []
            if instruction.name == "EXIT":
                best[END] = max(best.get(END, now), now)
            if instruction.name not in ("EXIT", "BRA") or instruction.predicated:
                follows.append(at + 1)
            if instruction.name == "BRA":
                follows.append(self.labels[instruction.target])
            for follow in follows:
                if follow > at:
                    here[follow] = max(here.get(follow, now), now)
                elif repeat and start < follow < at:
                    again = self._ways(follow, at, counted, repeat).get(at)
                    if again and again.bytes and at + 1 in here:
                        times = -(-(SHARE - now.bytes) // again.bytes)
                        around = now.then(times * again.bytes, times * (again.steps + 1))
                        here[at + 1] = max(here[at + 1], around)
        best.update({at: way for at, way in here.items() if at == end})
        return best


def missing() -> str | None:
    """Return what keeps kernels from being compiled, assembled and read here, or None."""
    lacking = [pip for tool, pip in _TOOLS.items() if _tool(tool) is None]
    if not _installed("numba_cuda"):
        lacking.append("numba-cuda")
    return f"not installed: {', '.join(lacking)}" if lacking else None


def _installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # its parent
        return False


@cache
def _tool(name: str) -> Path | None:
    """Of the packages on PyPI: what a toolkit on this machine has may be older than the PTX."""
    if not _installed("nvidia.cu13"):
        return None
    spec = importlib.util.find_spec("nvidia.cu13")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder) / "bin" / name
        if path.is_file():
            return path
    return None


def assembled(text: str, architecture: int) -> Code:
    """Assemble PTX for an architecture, and read the machine code."""
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = Path(folder) / "kernel.ptx", Path(folder) / "kernel.cubin"
        source.write_text(text)
        arguments = [_tool("ptxas"), "-v", f"-arch=sm_{architecture}", source, "-o", cubin]
        log = _run(arguments)
        listing = _run([_tool("nvdisasm"), "-c", cubin])
    return parsed(architecture, log, listing)


def _run(arguments: Iterable[object]) -> str:
    done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{done.args[0]} failed:\n{done.stderr}")
    return done.stdout + done.stderr


_LINE = re.compile(r"^\s+/\*[0-9a-f]+\*/\s+(?:@!?(U?P\w+)\s+)?([A-Z][\w.]*)(.*);", re.MULTILINE)
_LABEL = re.compile(r"^(\.L_x_\d+):", re.MULTILINE)


def parsed(architecture: int, log: str, listing: str) -> Code:
    """Read what ptxas -v and nvdisasm say of one kernel."""
    instructions: list[Instruction] = []
    labels = {}
    for line in listing.splitlines():
        if label := _LABEL.match(line):
            labels[label[1]] = len(instructions)
        elif found := _LINE.match(line):
            predicate, opcode, operands = found.groups()
            target = re.search(r"`\((\.L_x_\d+)\)", operands)
            conditional = predicate is not None or re.match(r"\s+!?U?P\d", operands) is not None
            jump = target[1] if target and opcode.startswith("BRA") else ""
            instructions.append(Instruction(opcode, conditional, jump))
    (registers,) = re.findall(r"Used (\d+) registers", log)
    spilled = re.findall(r"(\d+) bytes (?:stack frame|spill stores|spill loads)", log)
    shared = sum(map(int, re.findall(r"(\d+) bytes smem", log)))
    return Code(
        architecture,
        int(registers),
        sum(map(int, spilled)),
        shared,
        tuple(instructions),
        labels,
    )


@cache
def text_of(case: Case) -> str:
    """Return the PTX of a case; numba-cuda numbers what it shares, in the order of calls."""
    from arraybridge.kernels.cuda.build import ptx

    return re.sub(r"_smem_\d+", "_smem", ptx(case.plan))


@cache
def compiled(case: Case) -> dict[int, Code]:
    """Compile a case's kernel, for every architecture that has what it needs."""
    from arraybridge.kernels.cuda.build import capability

    text = text_of(case)
    major, minor = capability(case.plan)
    able = [architecture for architecture in ARCHITECTURES if architecture >= 10 * major + minor]
    with ThreadPoolExecutor(2) as pool:
        codes = pool.map(lambda architecture: assembled(text, architecture), able)
    return dict(zip(able, codes, strict=True))


def check(case: Case) -> None:
    """Check that nothing is spilled or divided, and that accesses are as wide as planned."""
    codes = compiled(case)
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


def digest(case: Case) -> str:
    """The key of a case's PTX."""
    return sha256(text_of(case).encode()).hexdigest()[:8]


PAGE = Path(__file__).resolve().parents[2] / "benchmarks" / "results" / "cuda_machine_code.md"


def versions() -> str:
    """Name what makes the code, with versions."""
    packages = ("numba-cuda", "nvidia-nvvm", "nvidia-cuda-nvcc")
    return ", ".join(f"{package} {version(package)}" for package in packages)


def row(case: Case) -> str:
    """The case's row of the page, if it is right."""
    check(case)
    codes = compiled(case)
    first = codes[90]
    wide = [f"{first.widths(LOADS).get(16, 0)}/{first.widths(STORES).get(16, 0)}"]
    widest = [str(max(first.widths(names))) for names in (LOADS, STORES)]
    each = " ".join(f"{code.per_vector():.0f}" for code in codes.values())
    registers = " ".join(str(code.registers) for code in codes.values())
    length = len([i for i in first.instructions if i.name != "NOP"])
    cells = [case.name, name(case.plan), registers, each, "/".join(widest), *wide, str(length)]
    cells.append(digest(case))
    return "| " + " | ".join(cells) + " |"


def variant_row(case: Case) -> str:
    """The variant's row of the page, beside the default if both have code."""
    check(case)
    before, after = compiled(case._replace(tuning=DEFAULT)), compiled(case)

    def beside(number: Callable[[Code], float]) -> list[str]:
        return [
            " ".join(f"{number(codes[architecture]):.0f}" for architecture in after)
            for codes in (before, after)
        ]

    registers = " | ".join(beside(lambda code: code.registers))
    cells = [case.name, case.variant, registers, *beside(Code.per_vector), digest(case)]
    return "| " + " | ".join(cells) + " |"


def page() -> str:
    """What benchmarks/results/cuda_machine_code.md says."""
    head, _, _ = PAGE.read_text().partition("<!-- written by")
    columns = ["layout", "plan", "registers", "instructions", "bytes", "vectors", "length", "PTX"]
    others = ["layout", "variant", "registers", "then", "instructions", "then", "PTX"]
    lines = [
        "<!-- written by python -m tests.support.sass --write -->",
        "",
        f"Made by {versions()}.",
        "",
        "| " + " | ".join(columns) + " |",
        "|" + " --- |" * len(columns),
        *[row(case) for case in CASES],
        "",
        "## Variants",
        "",
        "What `kernels/cuda/tuning.json` may choose for a compute capability instead; `make gpu`",
        "times each beside the default. Registers and instructions, by default and then by the",
        "variant, on the architectures that it runs on: one that uses `cp.async` needs sm_80.",
        "",
        "| " + " | ".join(others) + " |",
        "|" + " --- |" * len(others),
        *[variant_row(case) for case in VARIANTS],
    ]
    return head + "\n".join(lines) + "\n"


if __name__ == "__main__":
    written = page()
    if "--write" in sys.argv:
        PAGE.write_text(written)
    else:
        sys.stdout.write(written)
