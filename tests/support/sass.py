"""Machine code of the CUDA kernels, made and read without a device: PTX to SASS, and what it costs.

`python -m tests.support.sass --write` writes docs/cuda_machine_code.md.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from arraybridge.kernels.cuda.plan import name, plan
from arraybridge.kernels.cuda.record import Plan
from arraybridge.layout import c_strides, canonical

__all__ = [
    "ARCHITECTURES",
    "CASES",
    "PAGE",
    "Case",
    "Code",
    "Instruction",
    "assembled",
    "compiled",
    "missing",
    "parsed",
    "row",
    "versions",
]

#: Compute capabilities, 10 times: Turing, A100, RTX 30, RTX 40, H100, B200, RTX 50.
ARCHITECTURES = (75, 80, 86, 89, 90, 100, 120)

_TOOLS = {"ptxas": "nvidia-cuda-nvcc", "nvdisasm": "nvidia-cuda-nvdisasm"}


class Case(NamedTuple):
    """A layout whose plan is compiled.

    Attributes
    ----------
    name : str
    shape, src_strides : tuple of int
        Of a view to be made C-contiguous; in **bytes**.
    itemsize : int
    vectors : str
        What must be 16 bytes wide: ``"ls"`` (loads, stores), ``"l"``, ``"s"`` or ``""``.
    most : int
        Instructions that 16 bytes may take.
    src : int
        The source's address modulo 16.
    """

    name: str
    shape: tuple[int, ...]
    src_strides: tuple[int, ...]
    itemsize: int
    vectors: str = "ls"
    most: int = 64
    src: int = 0

    @property
    def plan(self) -> Plan:
        strides = c_strides(self.shape, self.itemsize)
        form = canonical(self.shape, strides, self.src_strides, self.itemsize)
        (one,) = plan(form, form.dst_offset % 16, (self.src + form.src_offset) % 16, 0)
        return one


def _transposed(width: int, rows: int, columns: int, outer: int = 1) -> Case:
    name = f"transpose, {width}-byte items" + (", batched" if outer > 1 else "")
    shape, strides = (columns, rows), (width, columns * width)
    if outer > 1:
        shape, strides = (outer, *shape), (rows * columns * width, *strides)
    aligned = not (rows * width % 16 or columns * width % 16)
    vectors = "ls" if aligned or width < 4 else ""
    most = 64 if aligned or width >= 4 else 120
    return Case(name + ("" if aligned else ", odd sizes"), shape, strides, width, vectors, most)


CASES = [
    *[_transposed(width, 512, 1024) for width in (1, 2, 4, 8, 16)],
    _transposed(4, 512, 256, outer=3),
    _transposed(4, 1021, 515),
    _transposed(8, 1021, 515),
    Case("every other row", (512, 1024), (8192, 4), 4, most=40),
    Case("four axes of rows", (4, 6, 10, 64), (1024, 4096, 49152, 4), 4, most=120),
    Case("columns flipped", (512, 1024), (4096, -4), 4, src=12, most=64),
    Case("columns flipped, bytes", (512, 4096), (4096, -1), 1, src=15, most=64),
    Case("columns broadcast", (512, 1024), (4, 0), 4, "s", 64),
    Case("columns broadcast, bytes, odd", (512, 1023), (1, 0), 1, "s", 120),
    Case("inner slice", (512, 1000), (5000, 4), 4, src=12, most=90),
    Case("inner slice, bytes", (512, 4001), (5001, 1), 1, src=3, most=90),
    Case("columns flipped, odd", (512, 1001), (8008, -4), 4, most=120),
    Case("HWC to CHW, bytes", (3, 512, 512), (1, 1536, 3), 1),
    Case("HWC to CHW, 4-byte items", (4, 512, 512), (4, 8192, 16), 4),
    Case("every other column", (512, 1024), (8192, 8), 4),
    Case("one channel of three, bytes", (512, 512), (1536, 3), 1, src=1),
    Case("CHW to HWC, bytes", (512, 512, 3), (512, 1, 262144), 1),
    Case("CHW to HWC, 2-byte items", (512, 512, 4), (1024, 2, 524288), 2),
    Case("three axes by items", (37, 41, 43), (28, 61916, 1712), 4, "", 250),
]  # fmt: skip


class Instruction(NamedTuple):
    """One instruction of machine code.

    Attributes
    ----------
    opcode : str
        With its modifiers, as ``LDG.E.128.CONSTANT``.
    predicated : bool
    target : str
        The label that it jumps to, ``""`` for none.
    """

    opcode: str
    predicated: bool
    target: str = ""

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


class Code(NamedTuple):
    """A kernel's machine code for one architecture.

    Attributes
    ----------
    architecture : int
    registers : int
        A thread's.
    spilled : int
        **Bytes** of registers stored in and loaded from local memory, the stack's included.
    instructions : tuple of Instruction
    labels : dict
        Name -> index of the instruction that it stands before.
    """

    architecture: int
    registers: int
    spilled: int
    instructions: tuple[Instruction, ...]
    labels: dict[str, int]

    def count(self, *names: str) -> int:
        return sum(instruction.name in names for instruction in self.instructions)

    def widths(self, name: str) -> dict[int, int]:
        """How many instructions of a name there are, by the bytes that they move."""
        return dict(Counter(i.bytes for i in self.instructions if i.name == name))

    def per_vector(self) -> float:
        """Instructions that a thread needs to move 16 bytes, on the shortest way of a full load.

        Of all ways through the code that move the most bytes the shortest is taken: the one of
        whole tiles. Loops are walked once. Where there is a barrier, what comes before it is
        divided by the bytes that are loaded and the rest by those that are stored.
        """
        loaded = self._way(0, "LDG")
        found = []
        for barrier in [at for at, i in enumerate(self.instructions) if i.name == "BAR"]:
            before, after = loaded.get(barrier), self._way(barrier + 1, "STG").get(None)
            if before and after and before[0] and after[0]:
                found.append((-before[0] - after[0], _each(before) + _each(after)))
        if found:
            return min(found)[1]
        return _each(self._way(0, "STG")[None])

    def _way(self, start: int, counted: str) -> dict[int | None, tuple[int, int]]:
        """Best ``(bytes, -instructions)`` from `start` to each barrier, and to the end (None)."""
        best: dict[int | None, tuple[int, int]] = {}
        here = {start: (0, 0)}
        for at in range(start, len(self.instructions)):
            if at not in here:
                continue
            instruction = self.instructions[at]
            moved, steps = here.pop(at)
            now = moved + instruction.bytes * (instruction.name == counted), steps - 1
            if instruction.name == "BAR":
                best[at] = now
                continue
            follows = []
            if instruction.name == "EXIT":
                best[None] = max(best.get(None, now), now)
            elif instruction.name == "BRA":
                follows.append(self.labels[instruction.target])
            if instruction.name not in ("EXIT", "BRA") or instruction.predicated:
                follows.append(at + 1)
            for follow in follows:
                if follow > at:
                    here[follow] = max(here.get(follow, now), now)
        return best


def _each(way: tuple[int, int]) -> float:
    moved, steps = way
    return -steps / (moved / 16)


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
    return Code(architecture, int(registers), sum(map(int, spilled)), tuple(instructions), labels)


def _ptx(made: Plan) -> str:
    from numba import cuda
    from numba.cuda import types

    from arraybridge.kernels.cuda.family import FAMILY
    from arraybridge.kernels.cuda.ops import OPS
    from arraybridge.kernels.cuda.record import THREADS

    member = FAMILY[made.kernel]
    kernel = member.factory(OPS, *made.constants)
    tuples = [
        types.UniTuple(kind, len(part))
        for kind, part in zip((types.int32, types.uint32, types.int64), made[3:6], strict=True)
    ]
    bounds = (THREADS, member.blocks)
    text, _ = cuda.compile(
        kernel, (types.int64, types.int64, *tuples), cc=(7, 5), device=False, abi="numba",
        output="ptx", launch_bounds=bounds,
    )  # fmt: skip
    return text


@cache
def compiled(case: Case) -> dict[int, Code]:
    """Compile a case's kernel, for every architecture."""
    text = _ptx(case.plan)
    with ThreadPoolExecutor(2) as pool:
        codes = pool.map(lambda architecture: assembled(text, architecture), ARCHITECTURES)
    return dict(zip(ARCHITECTURES, codes, strict=True))


PAGE = Path(__file__).resolve().parents[2] / "docs" / "cuda_machine_code.md"


def versions() -> str:
    """Name what makes the code, with versions."""
    packages = ("numba-cuda", "nvidia-nvvm", "nvidia-cuda-nvcc")
    return ", ".join(f"{package} {version(package)}" for package in packages)


def row(case: Case) -> str:
    """The case's row of the page."""
    codes = compiled(case)
    first = codes[90]
    wide = [f"{first.widths('LDG').get(16, 0)}/{first.widths('STG').get(16, 0)}"]
    widest = [str(max(first.widths(opcode))) for opcode in ("LDG", "STG")]
    each = " ".join(f"{code.per_vector():.0f}" for code in codes.values())
    registers = " ".join(str(code.registers) for code in codes.values())
    length = len([i for i in first.instructions if i.name != "NOP"])
    cells = [case.name, name(case.plan), registers, each, "/".join(widest), *wide, str(length)]
    return "| " + " | ".join(cells) + " |"


def page() -> str:
    """What docs/cuda_machine_code.md says."""
    head, _, _ = PAGE.read_text().partition("<!-- written by")
    columns = ["layout", "plan", "registers", "instructions", "bytes", "vectors", "length"]
    lines = [
        "<!-- written by python -m tests.support.sass --write -->",
        "",
        f"Made by {versions()}.",
        "",
        "| " + " | ".join(columns) + " |",
        "|" + " --- |" * len(columns),
        *[row(case) for case in CASES],
    ]
    return head + "\n".join(lines) + "\n"


if __name__ == "__main__":
    written = page()
    if "--write" in sys.argv:
        PAGE.write_text(written)
    else:
        sys.stdout.write(written)
