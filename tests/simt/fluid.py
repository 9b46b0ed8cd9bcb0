"""What share of a contiguous copy's speed a kernel would reach on an H100, and what it gains.

    python -m tests.simt.fluid [--write]      the tables; into benchmarks/results/cuda_model.md

A multiprocessor is a closed queueing network, and the blocks that fit on it are its customers. A
block needs some time of each of four servers, `Block.busy`, which blocks queue for, and is away for
`Block.away` meanwhile: the latencies that nothing but other blocks can hide. Mean value analysis
(Reiser and Lavenberg, 1980) gives the throughput for any number of blocks. Machine code gives
registers, shared memory, loads in flight and instructions; `model` gives the rest.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import cache
from statistics import geometric_mean
from typing import Any, NamedTuple

from arraybridge import layout
from arraybridge.kernels.cuda.build import ptx
from arraybridge.kernels.cuda.plan_types import THREADS, Plan
from benchmarks import layouts
from tests.support import sass

from .memory import DST, SRC
from .model import DRAM, PAGE, Nest, counted, estimate, of_layout, plan_of, sampled
from .nest import planned, plans

SMS = 132  # multiprocessors of an H100 SXM
CLOCK = 1.755e9  # Hz
REGISTERS, SHARED, RESIDENT = 65536, 228 << 10, 2048  # of a multiprocessor; its threads
RESERVED = 1024  # bytes of shared memory that each block has beside its own
LATENCY = 700e-9  # seconds of a load from DRAM under load; 600 to 800 are measured on an H100
DEPENDENT = 4  # cycles from an arithmetic instruction to one that needs its result, from Volta on
#: Instructions that a multiprocessor issues a cycle: 60 % of its four schedulers' most. So a tile
#: of 137 instructions for 16 bytes is 6 to 10 % slower in the model than one of 74: 6.6 % were
#: measured (pytorch/pytorch#194310, Hopper).
ISSUE = 4 * 0.6


class Block(NamedTuple):
    """A block of a kernel on a layout: seconds of a multiprocessor's share of each server."""

    resident: int  # blocks on a multiprocessor at once
    turns: int  # loads that wait for each other: what is loaded over what is in flight
    instructions: float  # a thread's for 16 bytes
    registers: int
    busy: tuple[float, ...]  # of DRAM, L2, the load-store units, and of issuing instructions
    away: float


def throughput(busy: Sequence[float], away: float, most: int) -> list[float]:
    """Return the blocks a second of a multiprocessor with one block, with two, up to `most`."""
    queues, rates = [0.0] * len(busy), []
    for blocks in range(1, most + 1):
        there = [time * (1 + queue) for time, queue in zip(busy, queues, strict=True)]
        rates.append(blocks / (away + sum(there)))
        queues = [rates[-1] * time for time in there]
    return rates


def seconds(block: Block, blocks: float) -> float:
    """Return how long a multiprocessor takes for so many blocks; in the end fewer run at once."""
    rates = throughput(block.busy, block.away, block.resident)
    if blocks <= len(rates):
        return 1 / rates[0] + sum(1 / rate for rate in rates[1 : round(blocks)])
    return (blocks - len(rates)) / rates[-1] + sum(1 / rate for rate in rates)


@cache
def code(kernel: str, constants: tuple[object, ...], lengths: tuple[int, ...]) -> sass.Code:
    """Return a kernel's machine code for an H100."""
    return sass.assembled(ptx(Plan(kernel, constants, 1, *[(0,) * n for n in lengths])), 90)


def in_flight(of: sass.Code) -> int:
    """Return the bytes that a thread loads before it stores the first of them anywhere."""
    if of.count("LDGSTS"):  # nobody waits for one before all are on their way
        return 1 << 20
    most = now = 0
    for instruction in of.instructions:
        if instruction.name in sass.LOADS:
            now += instruction.bytes
            most = max(most, now)
        elif instruction.name in ("STS", "STG", "BAR"):
            now = 0
    return most


def block_of(nest: Nest, made: Plan, dst: int, src: int) -> Block:
    """Return what a block of a launch is to the model."""
    machine = code(made.kernel, made.constants, tuple(map(len, made[3:6])))
    seen, whole = counted(made, dst, src, sampled(made.grid)), estimate(nest, made, dst, src)
    loaded = seen.bytes_loaded / len(sampled(made.grid)) / THREADS
    turns = max(1, -(-int(loaded) // max(1, in_flight(machine))))
    vectors = nest.nbytes / 16 / made.grid
    issued = vectors * machine.per_vector()
    share = SMS / made.grid
    return Block(
        min(
            RESIDENT // THREADS,
            REGISTERS // THREADS // -(-machine.registers // 8 * 8),
            SHARED // (machine.shared + RESERVED),
        ),
        turns,
        machine.per_vector(),
        machine.registers,
        (*(time * share for time in whole[1:4]), issued / 32 / ISSUE / CLOCK),
        turns * LATENCY + issued / THREADS * DEPENDENT / CLOCK,
    )


def share(nest: Nest, made: Plan, dst: int, src: int) -> tuple[Block, float]:
    """Return a launch's block, and its speed over that of a contiguous copy of as many bytes."""
    block = block_of(nest, made, dst, src)
    return block, 2 * nest.nbytes / DRAM / seconds(block, made.grid / SMS)


def nothing(*arguments: Any, **settings: Any) -> None:
    """Plan no such kernel."""


#: Kernels that specialize what others can do, and what the planner must believe to do without.
SPECIAL: dict[str, dict[str, Any]] = {
    "plain": {"PLAIN": {}},
    "split": {"_split": nothing},
    "merge": {"_merge": nothing},
}


def without(kernel: str, nest: Nest) -> tuple[Plan, int, int]:
    """Return the launch that `model.plan_of` would return if there were no such kernel."""
    dense = layout.c_strides(nest.shape, nest.itemsize)
    places = DST, SRC + nest.start
    (made,), dst, src = planned(
        nest.shape,
        dense,
        nest.strides,
        nest.itemsize,
        *places,
        small=plans.SMALL,
        **SPECIAL[kernel],
    )
    return made, dst, src


def permuted(name: str, shape: tuple[int, ...], axes: tuple[int, ...], itemsize: int) -> Nest:
    """Return a dense array whose axes are permuted."""
    dense = layout.c_strides(shape, itemsize)
    there = tuple(shape[k] for k in axes), tuple(dense[k] for k in axes)
    return Nest(f"{name}, {itemsize}-byte items", *there, itemsize, 0)


def nests() -> Iterator[Nest]:
    """Yield the 26 layouts, and more of those that `SPECIAL` is for, of 64 MB each."""
    yield from map(of_layout, layouts.LAYOUTS)
    yield permuted("odd transpose", (2881, 2911), (1, 0), 8)
    yield permuted("odd transpose, tall", (200000, 85), (1, 0), 4)
    yield permuted("odd transpose, wide", (85, 200000), (1, 0), 4)
    yield permuted("odd transposes", (64, 511, 513), (0, 2, 1), 4)
    for width in (1, 2, 4, 8):
        row = (1 << 26) // (4096 * 3 * width) // 16 * 16
        yield permuted("HWC to CHW", (4096, row, 3), (2, 0, 1), width)
        yield permuted("CHW to HWC", (3, 4096, row), (1, 2, 0), width)
        shuffle = (16, 64, 2, 2, 64, 256 // width)
        yield permuted("pixel shuffle", shuffle, (0, 1, 4, 2, 5, 3), width)
    for channels in (2, 4):
        row = (1 << 26) // (4096 * channels)
        yield Nest(f"one byte of {channels}", (4096, row), (row * channels, channels), 1, 0)


HEAD = (
    "layout", "kernel", "registers", "blocks", "turns", "instructions", "share",
    "without it", "share", "gain",
)  # fmt: skip


def row(nest: Nest) -> tuple[str, ...]:
    """One line of the table."""
    made, dst, src = plan_of(nest)
    block, own = share(nest, made, dst, src)
    numbers = block.registers, block.resident, block.turns
    cells = [nest.name, plans.name(made), *map(str, numbers), f"{block.instructions:.0f}"]
    cells.append(f"{own:.2f}")
    if made.kernel not in SPECIAL:
        return (*cells, "", "", "")
    other, dst, src = without(made.kernel, nest)
    _, its = share(nest, other, dst, src)
    return (*cells, plans.name(other), f"{its:.2f}", f"{100 * (own / its - 1):.0f} %")


def table() -> str:
    """The table in Markdown, and the means below it."""
    rows = [row(nest) for nest in nests()]
    lines = [HEAD, ("---", "---", *["---:"] * 5, "---", "---:", "---:"), *rows]
    text = "".join("| " + " | ".join(line) + " |\n" for line in lines)
    own = geometric_mean([float(line[6]) for line in rows[: len(layouts.LAYOUTS)]])
    text += f"\nGeometric mean of the shares of the 26 layouts: {own:.2f}. Mean gains:"
    for kernel in SPECIAL:
        gains = [1 + int(line[9].split()[0]) / 100 for line in rows if f"cuda {kernel} " in line[1]]
        if gains:
            text += f" {kernel} {100 * (geometric_mean(gains) - 1):.0f} % ({len(gains)} layouts),"
    return text.rstrip(",") + ".\n"


if __name__ == "__main__":
    text = table()
    if "--write" in sys.argv[1:]:
        before, begin, rest = PAGE.read_text().partition("<!-- shares: begin -->\n")
        _, end, after = rest.partition("<!-- shares: end -->")
        PAGE.write_text(before + begin + text + end + after)
    else:
        sys.stdout.write(text)
