"""The operations of kernels on arrays of threads, with the checks of compute-sanitizer and more.

Global loads read the source alone; a vector of it may reach past its bytes where it holds one of
them at least, since it lies within 16 aligned bytes and no GPU faults on that. A store writes bytes
of the destination's items alone, each once. Shared memory begins with random bytes, and what each
block does between two barriers is compared, byte by byte and thread by thread. ``i32`` and ``u32``
refuse what does not fit.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from arraybridge.kernels.cuda.record import THREADS

from .interpreter import device
from .memory import DST, SRC, Memory
from .numbers import MASK, NUMBERS
from .values import Fault, Op

__all__ = ["Fault", "Machine"]

WIDTHS = (1, 2, 4, 8, 16)  # bytes of an access
WORD = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint32, 16: np.uint32}
MOST_SHARED = 48 << 10  # bytes a block may have without being asked for


class Shared:
    """An array in the shared memory of each block that runs, one after the other.

    Attributes
    ----------
    size : int
        Bytes a block.
    stride : int
        Bytes from a block's to the next one's.
    accesses : list
        What was done since the last barrier: (where, writes, width in bytes, threads, offsets).
    """

    def __init__(self, size: int, blocks: int, alignment: int, random: np.random.Generator) -> None:
        self.size = size
        self.stride = size + -size % 16
        self.alignment = alignment
        self.bytes = np.frombuffer(random.bytes(self.stride * blocks), np.uint8).copy()
        self.accesses: list[tuple[str, bool, int, np.ndarray, np.ndarray]] = []

    def phase_ends(self, threads: Any) -> None:
        """Find races since the last barrier; of some threads' blocks, where there is a mask."""
        chosen, later = self.accesses, []
        if threads is not None:
            chosen = []
            for where, writes, width, lanes, offsets in self.accesses:
                ends = threads[lanes]
                chosen.append((where, writes, width, lanes[ends], offsets[ends]))
                later.append((where, writes, width, lanes[~ends], offsets[~ends]))
        self.accesses = [access for access in later if access[3].size]
        if any(access[1] for access in chosen):
            self._races(chosen)

    def _races(self, accesses: list[tuple[str, bool, int, np.ndarray, np.ndarray]]) -> None:
        unit = min(access[2] for access in accesses)
        writer = np.full(self.bytes.size // unit, -1, np.int32)
        for _, writes, width, lanes, offsets in accesses:
            if writes:
                writer.reshape(-1, width // unit)[offsets // width] = lanes[:, None]
        for where, writes, width, lanes, offsets in accesses:
            wrote = writer.reshape(-1, width // unit)[offsets // width]
            other = wrote != lanes[:, None]
            if not writes:
                other &= wrote >= 0
            if other.any():
                at = int(np.flatnonzero(other.any(1))[0])
                raise Fault(
                    f"a race: thread {lanes[at] % THREADS} {'writes' if writes else 'reads'} "
                    f"{width} bytes at {offsets[at] % self.stride} of shared memory at {where}, "
                    f"where thread {wrote[at][other[at]][0] % THREADS} writes in the same phase"
                )


class Machine:
    """Threads of some blocks, and `ops`, which kernels are written in.

    Parameters
    ----------
    memory : Memory or None
        None: every load gives zeros; for the addresses alone.
    blocks : sequence of int
        Those that run, side by side.
    requests : list or None
        What `transactions` counts: (kind, bytes an access, threads, addresses) for each operation.
    """

    def __init__(
        self, memory: Memory | None, blocks: Any, requests: list[Any] | None = None
    ) -> None:
        self.memory = memory
        self.blocks = np.asarray(blocks, np.int64)
        self.threads = self.blocks.size * THREADS
        self.lanes = np.arange(self.threads)
        self.requests = requests
        self.shared: list[Shared] = []
        self.random = np.random.default_rng(1)
        if memory is not None:
            self.source, self.target, self.pending = (
                {width: _vectors(part, width) for width in WIDTHS}
                for part in (memory.source, memory.target, memory.pending)
            )
            self.once = {width: _vectors(np.ones(16, np.uint8), width)[0] for width in WIDTHS}
        self.ops = self._ops()

    def _ops(self) -> SimpleNamespace:
        cuda = SimpleNamespace(
            threadIdx=SimpleNamespace(x=self.lanes % THREADS),
            blockIdx=SimpleNamespace(x=np.repeat(self.blocks, THREADS)),
            syncthreads=Op("syncthreads", self.barrier),
            shared=SimpleNamespace(array=Op("shared.array", self.allocate)),
        )
        return SimpleNamespace(
            cuda=cuda,
            device=device,
            permute=self.permute,
            prmt=Op("prmt", self.prmt),
            **NUMBERS,
            ld={width: Op(f"ld[{width}]", self._load(width)) for width in WIDTHS},
            st={width: Op(f"st[{width}]", self._store(width)) for width in WIDTHS},
            lds={width: Op(f"lds[{width}]", self._fetch(width)) for width in WIDTHS},
            sts={width: Op(f"sts[{width}]", self._stage(width)) for width in WIDTHS},
        )

    def finish(self) -> None:
        """The end of the kernel: what a barrier finds."""
        for shared in self.shared:
            shared.phase_ends(None)

    # -- the threads of an operation

    def _taking(self, mask: Any, value: Any) -> tuple[np.ndarray, np.ndarray]:
        """The threads of a mask, and their values."""
        if not isinstance(value, np.ndarray):
            value = np.full(self.threads, value, np.int64)
        if mask is None:
            return self.lanes, value
        lanes = np.flatnonzero(mask)
        return lanes, value[lanes]

    def _note(self, kind: str, width: int, lanes: np.ndarray, addresses: np.ndarray) -> None:
        if self.requests is not None and lanes.size:
            self.requests.append((kind, width, lanes, addresses))

    def _given(self, mask: Any, lanes: np.ndarray, width: int, words: np.ndarray) -> Any:
        """What was loaded as values: zeros in threads that took no part."""
        if width > 4:
            words = words.T
        if mask is None:
            loaded = words.astype(np.int64)
        else:
            loaded = np.zeros((*words.shape[:-1], self.threads), np.int64)
            loaded[..., lanes] = words
        return loaded if width <= 4 else tuple(loaded)

    def _taken(self, lanes: np.ndarray, width: int, value: Any, where: str) -> np.ndarray:
        """A value to be stored as words, in the threads that take part."""
        parts = (value,) if width <= 4 else value
        if not isinstance(parts, tuple) or len(parts) != max(1, width // 4):
            raise Fault(f"{width} bytes are not stored from {value!r} at {where}")
        everyone = lanes is self.lanes
        words = np.empty((lanes.size, len(parts)), WORD[width])
        for at, part in enumerate(parts):
            if isinstance(part, np.ndarray):
                words[:, at] = part if everyone else part[lanes]
            else:
                words[:, at] = int(part) & (1 << 8 * words.itemsize) - 1
        return words if width > 4 else words[:, 0]

    def _nothing(self, width: int) -> Any:
        zero = np.int64(0)
        return zero if width <= 4 else (zero,) * (width // 4)

    # -- global memory

    def _load(self, width: int) -> Any:
        def load(mask: Any, where: str, address: Any) -> Any:
            lanes, addresses = self._taking(mask, address)
            self._note("ldg", width, lanes, addresses)
            _aligned(addresses, width, "an address", where)
            if self.memory is None:
                return self._nothing(width)
            offsets = addresses - SRC
            low, high = self.memory.readable
            _inside((offsets > low - width) & (offsets < high), offsets - low, width,
                    f"of the source's {high - low} are read", where)  # fmt: skip
            return self._given(mask, lanes, width, self.source[width][offsets // width])

        return load

    def _store(self, width: int) -> Any:
        def store(mask: Any, where: str, address: Any, value: Any) -> None:
            lanes, addresses = self._taking(mask, address)
            self._note("stg", width, lanes, addresses)
            _aligned(addresses, width, "an address", where)
            words = self._taken(lanes, width, value, where)
            if self.memory is None:
                return
            offsets = addresses - DST
            _inside((offsets >= 0) & (offsets + width <= self.memory.target.size), offsets, width,
                    "far from the destination are written", where)  # fmt: skip
            at, pending = offsets // width, self.pending[width]
            ready = pending[at] == self.once[width]
            there = addresses - self.memory.dst
            _inside(
                ready if width <= 4 else ready.all(1),
                there,
                width,
                "of no item of the destination, or written before, are written",
                where,
            )
            pending[at] = 0
            order = np.empty(len(pending), np.int32)
            order[at] = np.arange(at.size)
            _inside(
                order[at] == np.arange(at.size),
                there,
                width,
                "of the destination are written by two threads",
                where,
            )
            self.target[width][at] = words

        return store

    # -- shared memory

    def allocate(self, mask: Any, where: str, words: Any, kind: Any, alignment: int = 4) -> Shared:
        if type(words) is not int or kind is not self.ops.u32:
            raise Fault(f"shared memory is so many uint32, a constant, not {words!r} at {where}")
        if sum(shared.size for shared in self.shared) + 4 * words > MOST_SHARED:
            raise Fault(f"{4 * words} bytes of shared memory at {where}: more than {MOST_SHARED}")
        self.shared.append(Shared(4 * words, self.blocks.size, alignment, self.random))
        return self.shared[-1]

    def barrier(self, mask: Any, where: str) -> None:
        if mask is not None:
            whole = mask.reshape(-1, THREADS)
            if (whole.any(1) != whole.all(1)).any():
                raise Fault(f"some threads of a block do not reach the barrier at {where}")
        for shared in self.shared:
            shared.phase_ends(mask)

    def _reach(self, mask: Any, where: str, width: int, shared: Any, offset: Any) -> Any:
        if not isinstance(shared, Shared):
            raise Fault(f"{shared!r} is no shared memory at {where}")
        if width > shared.alignment:
            raise Fault(f"{width} bytes of shared memory aligned to {shared.alignment} at {where}")
        lanes, offsets = self._taking(mask, offset)
        _aligned(offsets, width, "an offset", where)
        _inside((offsets >= 0) & (offsets + width <= shared.size), offsets, width,
                f"of {shared.size} of shared memory are accessed", where)  # fmt: skip
        return lanes, offsets

    def _fetch(self, width: int) -> Any:
        def fetch(mask: Any, where: str, shared: Any, offset: Any) -> Any:
            lanes, offsets = self._reach(mask, where, width, shared, offset)
            self._note("lds", width, lanes, offsets)
            if self.memory is None:
                return self._nothing(width)
            offsets = offsets + lanes // THREADS * shared.stride
            shared.accesses.append((where, False, width, lanes, offsets))
            return self._given(mask, lanes, width, _vectors(shared.bytes, width)[offsets // width])

        return fetch

    def _stage(self, width: int) -> Any:
        def stage(mask: Any, where: str, shared: Any, offset: Any, value: Any) -> None:
            lanes, offsets = self._reach(mask, where, width, shared, offset)
            self._note("sts", width, lanes, offsets)
            words = self._taken(lanes, width, value, where)
            if self.memory is None:
                return
            offsets = offsets + lanes // THREADS * shared.stride
            shared.accesses.append((where, True, width, lanes, offsets))
            _vectors(shared.bytes, width)[offsets // width] = words

        return stage

    # -- bytes of words

    def _bytes(self, values: tuple[Any, ...]) -> np.ndarray:
        """Words as bytes, a row a thread."""
        words = np.empty((self.threads, len(values)), np.uint32)
        for at, value in enumerate(values):
            words[:, at] = value if isinstance(value, np.ndarray) else int(value) & MASK
        return words.view(np.uint8)

    def prmt(self, mask: Any, where: str, a: Any, b: Any, selector: Any) -> Any:
        """Byte n of the result is byte (nibble n of the selector) of b:a; 8 more: its sign."""
        if not any(isinstance(value, np.ndarray) for value in (a, b, selector)):
            both = (int(a) & MASK) | (int(b) & MASK) << 32
            chosen = [(both >> 8 * (int(selector) >> 4 * n & 7)) & 255 for n in range(4)]
            signs = [int(selector) >> 4 * n & 8 for n in range(4)]
            bytes_ = [255 * (c >> 7) if s else c for c, s in zip(chosen, signs, strict=True)]
            return np.int64(int.from_bytes(bytes_, "little"))
        raw = self._bytes((a, b))
        if isinstance(selector, np.ndarray):
            nibbles = selector[:, None] >> np.array([0, 4, 8, 12])
            chosen = np.take_along_axis(raw, nibbles & 7, 1)
            if (nibbles & 8).any():
                chosen = np.where(nibbles & 8, 255 * (chosen >> 7), chosen).astype(np.uint8)
        else:
            nibbles = [int(selector) >> 4 * n & 15 for n in range(4)]
            chosen = raw.take([nibble & 7 for nibble in nibbles], axis=1)
            for n, nibble in enumerate(nibbles):
                if nibble & 8:
                    chosen[:, n] = 255 * (chosen[:, n] >> 7)
        return chosen.view(np.uint32)[:, 0].astype(np.int64)

    def permute(self, table: Any, words: int) -> Op:
        """A network of bytes: those of the result, of so many words."""
        indices = [int(index) for index in table]
        if len(indices) % 4 or not all(0 <= index < 4 * words for index in indices):
            raise ValueError(f"{table} is no table of bytes of {words} words")

        def permuted(mask: Any, where: str, values: Any) -> Any:
            if not isinstance(values, tuple) or len(values) != words:
                raise Fault(f"{words} words, not {values!r}, are permuted at {where}")
            chosen = self._bytes(values).take(indices, axis=1).view(np.uint32)
            return tuple(chosen.T.astype(np.int64))

        return Op("permute", permuted)


# -- checks


def _vectors(part: np.ndarray, width: int) -> np.ndarray:
    words = part.view(WORD[width])
    return words if width <= 4 else words.reshape(-1, width // 4)


def _aligned(addresses: np.ndarray, width: int, what: str, where: str) -> None:
    if width > 1 and (addresses & (width - 1)).any():
        wrong = int(addresses[np.flatnonzero(addresses & (width - 1))[0]])
        raise Fault(f"{what} of {width} bytes is misaligned: {wrong:#x} at {where}")


def _inside(good: np.ndarray, offsets: np.ndarray, width: int, what: str, where: str) -> None:
    if not good.all():
        wrong = int(offsets[np.flatnonzero(~good)[0]])
        raise Fault(f"{width} bytes at {wrong} {what} at {where}")
