"""The operations of kernels on arrays of threads, with the checks of compute-sanitizer and more.

Memory checks what it is asked for: global memory in `memory`, shared memory in `shared`.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from arraybridge.kernels.cuda.plan_types import THREADS

from .interpreter import device
from .shared import Shared
from .values import MASK, NUMBERS, WIDTHS, WORD, Fault, Op, aligned

__all__ = ["Fault", "Machine"]

MOST_SHARED = 48 << 10  # bytes a block may have without being asked for


class Machine:
    """Threads of some blocks, side by side, and `ops`, which kernels are written in.

    Without `asynchronous` the device is one that cannot
    copy to shared memory past the registers.
    """

    def __init__(self, memory: Any, blocks: Any, *, asynchronous: bool = True) -> None:
        self.memory = memory
        self.blocks = np.asarray(blocks, np.int64)
        self.threads = self.blocks.size * THREADS
        self.lanes = np.arange(self.threads)
        self.shared: list[Shared] = []
        self.random = np.random.default_rng(1)
        self.ops = self._ops(asynchronous)

    def _ops(self, asynchronous: bool) -> SimpleNamespace:
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
            copy_async={w: Op(f"copy_async[{w}]", self._copy_async(w)) for w in (4, 8)},
            wait_async=Op("wait_async", self._wait_async) if asynchronous else None,
        )

    def finish(self) -> None:
        """The end of the kernel: what a barrier finds; and that all copies were waited for."""
        for shared in self.shared:
            shared.phase_ends(None)
            shared.ends()

    # -- the threads of an operation

    def _taking(self, mask: Any, value: Any) -> tuple[np.ndarray, np.ndarray]:
        """The threads of a mask, and their values."""
        if not isinstance(value, np.ndarray):
            value = np.full(self.threads, value, np.int64)
        if mask is None:
            return self.lanes, value
        lanes = np.flatnonzero(mask)
        return lanes, value[lanes]

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
        assert len(parts) == max(1, width // 4)
        everyone = lanes is self.lanes
        words = np.empty((lanes.size, len(parts)), WORD[width])
        for at, part in enumerate(parts):
            if isinstance(part, np.ndarray):
                words[:, at] = part if everyone else part[lanes]
            else:
                words[:, at] = int(part) & (1 << 8 * words.itemsize) - 1
        return words if width > 4 else words[:, 0]

    # -- memory

    def _load(self, width: int) -> Any:
        def load(mask: Any, where: str, address: Any) -> Any:
            lanes, addresses = self._taking(mask, address)
            aligned(addresses, width, "an address", where)
            return self._given(mask, lanes, width, self.memory.load(width, addresses, where))

        return load

    def _store(self, width: int) -> Any:
        def store(mask: Any, where: str, address: Any, value: Any) -> None:
            lanes, addresses = self._taking(mask, address)
            aligned(addresses, width, "an address", where)
            words = self._taken(lanes, width, value, where)
            self.memory.store(width, addresses, words, where)

        return store

    def _fetch(self, width: int) -> Any:
        def fetch(mask: Any, where: str, shared: Any, offset: Any) -> Any:
            lanes, offsets = self._taking(mask, offset)
            loaded = shared.load(width, lanes, offsets, where)
            return self._given(mask, lanes, width, loaded)

        return fetch

    def _stage(self, width: int) -> Any:
        def stage(mask: Any, where: str, shared: Any, offset: Any, value: Any) -> None:
            lanes, offsets = self._taking(mask, offset)
            words = self._taken(lanes, width, value, where)
            shared.store(width, lanes, offsets, words, where)

        return stage

    def _copy_async(self, width: int) -> Any:
        def copy(mask: Any, where: str, shared: Any, offset: Any, address: Any) -> None:
            lanes, addresses = self._taking(mask, address)
            _, offsets = self._taking(mask, offset)
            aligned(addresses, width, "an address", where)
            words = self.memory.load(width, addresses, where)
            shared.copy_async(width, lanes, offsets, words, where)

        return copy

    def _wait_async(self, mask: Any, where: str) -> None:
        for shared in self.shared:
            shared.wait_async(mask)

    def allocate(self, mask: Any, where: str, words: Any, kind: Any, alignment: int = 4) -> Shared:
        assert type(words) is int
        assert kind is self.ops.u32
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

    # -- bytes of words

    def _bytes(self, values: tuple[Any, ...]) -> np.ndarray:
        """Words as bytes, a row a thread."""
        words = np.empty((self.threads, len(values)), np.uint32)
        for at, value in enumerate(values):
            words[:, at] = value if isinstance(value, np.ndarray) else int(value) & MASK
        return words.view(np.uint8)

    def prmt(self, mask: Any, where: str, a: Any, b: Any, selector: Any) -> Any:
        """Byte n of the result is byte (nibble n of the selector, below 8) of b:a."""
        raw = self._bytes((a, b))
        nibbles = np.asarray(selector)[..., None] >> np.array([0, 4, 8, 12]) & 15
        if (nibbles > 7).any():
            raise Fault(f"a sign is asked for at {where}")
        if nibbles.ndim == 2:
            chosen = np.take_along_axis(raw, nibbles, 1)
        else:
            chosen = raw.take(nibbles, axis=1)
        return chosen.view(np.uint32)[:, 0].astype(np.int64)

    def permute(self, table: Any, words: int) -> Op:
        """A network of bytes: those of the result, of so many words."""
        indices = [int(index) for index in table]
        assert max(indices) < 4 * words

        def permuted(mask: Any, where: str, values: Any) -> Any:
            assert len(values) == words
            chosen = self._bytes(values).take(indices, axis=1).view(np.uint32)
            return tuple(chosen.T.astype(np.int64))

        return Op("permute", permuted)
