"""PTX executed without a device: what Numba and NVVM made of a kernel, thread by thread.

Beside `tests.simt`, which runs the kernels' source, this runs what they were compiled to: types
that Numba widened, intrinsics, inline assembler, NVVM's optimizations. All threads of some blocks
run in lockstep as NumPy arrays: of those at different places of the code the ones that are furthest
behind go on, which is how they come together again. Only what NVVM makes of these kernels is known;
any other instruction is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from arraybridge.kernels.cuda.plan_types import THREADS, Plan

from ..simt.memory import Memory

__all__ = ["Program", "execute", "parsed"]

_POISON = 0xA5  # what shared memory holds before it is written
_SHARED = 1 << 24  # where it lies; its addresses have 32 bits, too


class Instruction(NamedTuple):
    """One instruction: ``@guard opcode operands``; the guard may begin with ``!``."""

    guard: str
    opcode: str
    operands: tuple[str, ...]


class Program(NamedTuple):
    """A kernel."""

    parameters: dict[str, int]  # name -> place
    shared: dict[str, tuple[int, int]]  # name -> (address, bytes)
    code: tuple[Instruction, ...]
    labels: dict[str, int]  # name -> index of the instruction that it stands before


_CODE = re.compile(r"(?:@(!?%p\d+)\s+)?([a-z][\w.:]*)\s*(.*);$")
_OPERAND = re.compile(r"\{[^}]*\}|\[[^\]]*\]|[^,\s]+")


def parsed(text: str) -> Program:
    """Read the PTX of one kernel."""
    parameters = re.findall(r"\.param \.\w+ (\w+)[,\n]", text)
    shared, size = {}, 0
    for align, name, count in re.findall(r"\.shared \.align (\d+) \.b8 (\w+)\[(\d+)\]", text):
        size += -size % int(align)
        shared[name] = _SHARED + size, int(count)
        size += int(count)
    code, labels = [], {}
    for line in text[text.index("{") :].splitlines():
        line = line.strip()
        if label := re.match(r"(\$?\w+):$", line):
            labels[label[1]] = len(code)
        elif (found := _CODE.match(line)) and not line.startswith("."):
            guard, opcode, operands = found.groups()
            code.append(Instruction(guard or "", opcode, tuple(_OPERAND.findall(operands))))
    return Program({name: i for i, name in enumerate(parameters)}, shared, tuple(code), labels)


def execute(text: str, plan: Plan, dst: int, src: int, memory: Memory, chunk: int = 64) -> None:
    """Run all blocks of a launch, `chunk` side by side; `memory` checks loads and stores."""
    program = parsed(text)
    addresses = (dst + plan.dst_offset, src + plan.src_offset)
    arguments = (*addresses, *plan.extents, *plan.divisions, *plan.steps)
    assert len(arguments) == len(program.parameters)
    for start in range(0, plan.grid, chunk):
        blocks = range(start, min(start + chunk, plan.grid))
        _Machine(program, arguments, memory, blocks).run()


_KIND = {
    "s32": np.int32, "u32": np.uint32, "b32": np.uint32, "s64": np.int64, "u64": np.uint64,
    "b64": np.uint64, "u16": np.uint16, "u8": np.uint8, "b16": np.uint16,
    "s16": np.int16, "pred": np.bool_,
}  # fmt: skip

_COMPARE: dict[str, Callable[..., Any]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
    "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip

_PLAIN: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul.lo": np.multiply, "and": np.bitwise_and,
    "or": np.bitwise_or, "xor": np.bitwise_xor, "not": np.invert, "neg": np.negative,
    "abs": np.abs, "min": np.minimum, "max": np.maximum, "mov": np.array,
    "mad.lo": lambda a, b, c: a * b + c,
    "shl": lambda a, n: _shifted(np.left_shift, a, n),
    "shr": lambda a, n: _shifted(np.right_shift, a, n),
}  # fmt: skip


def _shifted(function: Callable[..., Any], a: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Shift as PTX does: by more than there is, and nothing is left but the sign."""
    bits = 8 * a.dtype.itemsize
    many = count.astype(np.uint64) >= bits
    result = function(a, np.where(many, 0, count).astype(a.dtype))
    beyond = np.where(a < 0, -1, 0) if function is np.right_shift else np.zeros(a.shape)
    return np.where(many, beyond.astype(a.dtype), result)


def _prmt(a: np.ndarray, b: np.ndarray, selector: np.ndarray) -> np.ndarray:
    both = a.astype(np.uint64) | b.astype(np.uint64) << np.uint64(32)
    result = np.zeros(a.shape, np.uint64)
    for n in range(4):
        nibble = selector >> np.uint32(4 * n) & np.uint32(15)
        assert (nibble < 8).all(), "a sign is asked for"
        byte = both >> (nibble * np.uint32(8)).astype(np.uint64) & np.uint64(255)
        result |= byte << np.uint64(8 * n)
    return result.astype(np.uint32)


def _bfi(a: np.ndarray, b: np.ndarray, start: np.ndarray, count: np.ndarray) -> np.ndarray:
    ones = np.uint64(1)
    mask = ((ones << count.astype(np.uint64)) - ones) << start.astype(np.uint64)
    mask &= np.uint64(0xFFFFFFFF)
    into = (a.astype(np.uint64) << start.astype(np.uint64)) & mask
    return (into | (b.astype(np.uint64) & ~mask)).astype(np.uint32)


class _Machine:
    """Blocks of a kernel on their way."""

    def __init__(
        self, program: Program, arguments: tuple[int, ...], memory: Memory, blocks: range
    ) -> None:
        self.program, self.arguments, self.memory = program, arguments, memory
        count = len(blocks) * THREADS
        self.registers: dict[str, np.ndarray] = {
            "%tid.x": np.tile(np.arange(THREADS, dtype=np.uint32), len(blocks)),
            "%ctaid.x": np.repeat(np.array(blocks, np.uint32), THREADS),
        }
        self.count = count
        self.block = np.repeat(np.arange(len(blocks)), THREADS)
        self.at = np.zeros(count, np.int64)  # the next instruction
        self.waits = np.zeros(count, bool)
        self.ended = np.zeros(count, bool)
        size = max([at + count - _SHARED for at, count in program.shared.values()], default=0)
        size += -size % 16
        self.shared = np.full((len(blocks), size), _POISON, np.uint8)
        # What is copied asynchronously: by whom, where to, the bytes; and whether it is awaited.
        self.copies: list[tuple[np.ndarray, tuple[np.ndarray, np.ndarray], np.ndarray]] = []
        self.awaited = np.zeros(self.shared.shape, bool)

    def run(self) -> None:
        for _ in range(100_000):
            going = np.flatnonzero(~(self.waits | self.ended))
            if going.size:
                at = int(self.at[going].min())
                self._step(at, going[self.at[going] == at])
            elif self.ended.all():
                assert not self.copies, "nobody waits for what is copied"
                return
            else:  # every thread of each block that has not ended has come to the barrier
                pairs = np.stack([self.block[self.waits], self.at[self.waits]])
                blocks = np.unique(self.block[self.waits]).size
                assert np.unique(pairs, axis=1).shape[1] == blocks, "threads wait at two barriers"
                self.waits[:] = False
        raise AssertionError("the kernel does not end")

    def _step(self, at: int, lanes: np.ndarray) -> None:
        guard, opcode, operands = self.program.code[at]
        self.at[lanes] = at + 1
        if guard:
            taken = self.registers[guard.lstrip("!")][lanes]
            lanes = lanes[~taken if guard[0] == "!" else taken]
        if not lanes.size:
            return
        if opcode in ("bra", "bra.uni"):
            self.at[lanes] = self.program.labels[operands[0]]
        elif opcode == "ret":
            self.ended[lanes] = True
        elif opcode == "bar.sync":
            self.waits[lanes] = True
        elif opcode.startswith("cp.async."):
            self._copy(opcode, operands, lanes)
        elif opcode.startswith(("ld.", "st.")):
            self._move(at, opcode, operands, lanes)
        else:
            self._compute(opcode, operands, lanes)

    def _value(self, name: str, lanes: np.ndarray, kind: Any) -> np.ndarray:
        """An operand, seen as a kind of number."""
        if name in self.registers:
            value = self.registers[name][lanes]
        elif name in self.program.shared:
            value = np.full(lanes.size, self.program.shared[name][0], np.uint64)
        else:
            value = np.full(lanes.size, int(name, 0) & (1 << 64) - 1, np.uint64)
        if value.dtype == kind:
            return value
        return value.astype(np.uint64).astype(kind) if kind != np.bool_ else value

    def _set(self, name: str, lanes: np.ndarray, value: np.ndarray) -> None:
        if name not in self.registers:
            prefix = re.match(r"%[a-z]+", name)
            assert prefix, name
            kinds = {"%p": np.bool_, "%rs": np.uint16, "%r": np.uint32, "%rd": np.uint64}
            self.registers[name] = np.zeros(self.count, kinds[prefix[0]])
        self.registers[name][lanes] = value.astype(self.registers[name].dtype)

    def _compute(self, opcode: str, operands: tuple[str, ...], lanes: np.ndarray) -> None:
        to, *given = operands
        name, _, suffix = opcode.rpartition(".")
        kind = _KIND[suffix]

        def values(*kinds: Any) -> list[np.ndarray]:
            return [self._value(x, lanes, k) for x, k in zip(given, kinds, strict=True)]

        with np.errstate(over="ignore"):
            if name in _PLAIN:
                result = _PLAIN[name](*values(*[kind] * len(given)))
            elif name.startswith("setp."):
                result = _COMPARE[name.removeprefix("setp.")](*values(kind, kind))
            elif name == "selp":
                a, b, choice = values(kind, kind, np.bool_)
                result = np.where(choice, a, b)
            elif opcode == "mul.hi.u32":
                a, b = values(np.uint32, np.uint32)
                result = a.astype(np.uint64) * b.astype(np.uint64) >> np.uint64(32)
            elif opcode in ("mul.wide.s32", "mul.wide.u32"):
                a, b = values(kind, kind)
                wide = np.int64 if kind is np.int32 else np.uint64
                result = (a.astype(wide) * b.astype(wide)).view(np.uint64)
            elif opcode == "prmt.b32":
                result = _prmt(*values(kind, kind, kind))
            elif opcode == "bfi.b32":
                result = _bfi(*values(kind, kind, kind, kind))
            elif found := re.fullmatch(r"cvt\.([us]\d+)\.([us]\d+)", opcode):
                (value,) = values(_KIND[found[2]])
                result = value.astype(np.int64).astype(_KIND[found[1]])
                result = result.view(_KIND["u" + found[1][1:]])
            else:
                raise NotImplementedError(opcode)
        self._set(to, lanes, result)

    def _move(self, at: int, opcode: str, operands: tuple[str, ...], lanes: np.ndarray) -> None:
        found = re.fullmatch(
            r"(ld|st)\.(param|global|shared)(?:\.nc)?(?:\.L1::no_allocate\.L2::128B|\.cs)?(?:\.v(\d))?\.([ub]\d+)",
            opcode,
        )
        assert found, opcode
        loads, space, count, suffix = found[1] == "ld", found[2], int(found[3] or 1), found[4]
        place, registers = operands if not loads else operands[::-1]
        names = re.findall(r"%\w+", registers)
        assert len(names) == count
        kind = _KIND[suffix]
        width = np.dtype(kind).itemsize * count
        base, _, offset = place.strip("[]").partition("+")
        if space == "param":
            number = self.arguments[self.program.parameters[base]] & (1 << 64) - 1
            self._set(names[0], lanes, np.full(lanes.size, number, np.uint64).astype(kind))
            return
        addresses = self._value(base, lanes, np.int64) + int(offset or 0)
        assert not (addresses % width).any(), f"{opcode} is misaligned at {at}"
        if loads:
            words = (
                self._from_shared(addresses, lanes, width)
                if space == "shared"
                else self.memory.load(width, addresses, str(at)).reshape(lanes.size, count)
            )
            for name, column in zip(names, words.reshape(lanes.size, count).T, strict=True):
                self._set(name, lanes, column)
            return
        words = np.stack([self._value(name, lanes, kind) for name in names], 1)
        if space == "shared":
            rows, columns = self._shared_places(addresses, lanes, width)
            self.shared[rows, columns] = words.view(np.uint8).reshape(lanes.size, width)
        else:
            words = words if width > 4 else words[:, 0]
            self.memory.store(width, addresses, words, str(at))

    def _copy(self, opcode: str, operands: tuple[str, ...], lanes: np.ndarray) -> None:
        if opcode == "cp.async.wait_all":
            copies, self.copies = self.copies, []
            for theirs, places, bytes_ in copies:
                done = np.isin(theirs, lanes)
                rows, columns = (part[done] for part in places)
                self.shared[rows, columns] = bytes_[done]
                self.awaited[rows, columns] = False
                if not done.all():
                    rest = places[0][~done], places[1][~done]
                    self.copies.append((theirs[~done], rest, bytes_[~done]))
            return
        to, at, count = operands
        cache = "cg" if count == "16" else "ca"
        assert opcode == f"cp.async.{cache}.shared.global", f"{opcode} of {count} bytes"
        width = int(count)
        addresses = self._value(at.strip("[]"), lanes, np.int64)
        offsets = self._value(to.strip("[]"), lanes, np.int64)
        assert not ((addresses | offsets) % width).any(), f"{opcode} is misaligned"
        words = np.ascontiguousarray(self.memory.load(width, addresses, opcode))
        places = self._shared_places(offsets, lanes, width)
        self.copies.append((lanes, places, words.view(np.uint8).reshape(lanes.size, width)))
        self.awaited[places] = True

    def _shared_places(
        self, addresses: np.ndarray, lanes: np.ndarray, width: int
    ) -> tuple[np.ndarray, np.ndarray]:
        offsets = addresses - _SHARED
        assert ((offsets >= 0) & (offsets + width <= self.shared.shape[1])).all(), "beside shared"
        places = self.block[lanes][:, None], offsets[:, None] + np.arange(width)
        assert not self.awaited[places].any(), "shared memory is touched while it is copied to"
        return places

    def _from_shared(self, addresses: np.ndarray, lanes: np.ndarray, width: int) -> np.ndarray:
        bytes_ = self.shared[self._shared_places(addresses, lanes, width)]
        kind = {1: np.uint8, 2: np.uint16}.get(width, np.uint32)
        return np.ascontiguousarray(bytes_).view(kind)


def copied(texts: Iterable[tuple[str, Plan]], dst: int, src: int, memory: Memory) -> None:
    """Run launches one after the other, and check what they have done."""
    for text, plan in texts:
        execute(text, plan, dst, src, memory)
    memory.check()
