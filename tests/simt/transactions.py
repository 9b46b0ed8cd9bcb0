"""What the accesses of warps become: sectors of 32 bytes, passes through shared memory.

A request is what one instruction asks for in one warp. Of global memory it moves the sectors that
its threads touch; a block that touches a sector again finds it in L1. Of shared memory, 32 banks of
4 bytes, it takes as many passes as there are words of one bank: all 32 threads at once for accesses
of up to 4 bytes, half of them for 8, a quarter for 16; threads that want the same word share it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from arraybridge.kernels.cuda.plan_types import THREADS

__all__ = ["LINE", "SECTOR", "Traffic", "traffic"]

WARP = 32
SECTOR = 32  # bytes
LINE = 128  # bytes


class Traffic(NamedTuple):
    """Counts over some blocks."""

    loads: int = 0  # requests of global memory
    stores: int = 0
    bytes_loaded: int = 0  # what the threads asked for
    bytes_stored: int = 0
    load_sectors: int = 0  # a request, summed
    store_sectors: int = 0
    load_block: int = 0  # once a block: what misses an L1 that keeps a block's lines
    store_block: int = 0
    load_once: int = 0  # over all blocks: what misses an L2 that keeps all of them
    store_once: int = 0
    lines: int = 0  # of 128 bytes a request, summed: passes through the load-store units
    shared_reads: int = 0  # passes through shared memory
    shared_writes: int = 0
    least_reads: int = 0  # the fewest that the same words could take
    least_writes: int = 0

    @property
    def conflicts(self) -> float:
        """Passes of shared memory over the fewest, of reads and of writes, the worse of the two."""
        return max(
            self.shared_reads / max(1, self.least_reads),
            self.shared_writes / max(1, self.least_writes),
        )


def traffic(chunks: list[list[tuple[str, int, np.ndarray, np.ndarray]]]) -> Traffic:
    """Count what `launch` recorded: a list of requests for each chunk of blocks."""
    counts = dict.fromkeys(Traffic._fields, 0)
    everywhere: dict[str, list[np.ndarray]] = {"load": [], "store": []}
    for requests in chunks:
        by_block: dict[str, list[np.ndarray]] = {"load": [], "store": []}
        for kind, width, lanes, addresses in requests:
            warps = lanes // WARP
            if kind in ("lds", "sts"):
                what = "reads" if kind == "lds" else "writes"
                passes, least = _passes(width, lanes, addresses)
                counts[f"shared_{what}"] += passes
                counts[f"least_{what}"] += least
                continue
            what = "load" if kind == "ldg" else "store"
            counts[f"{what}s"] += _distinct(warps)
            counts["bytes_loaded" if kind == "ldg" else "bytes_stored"] += width * lanes.size
            sectors = addresses // SECTOR  # aligned accesses of 16 bytes at most: one each
            counts[f"{what}_sectors"] += _distinct(warps, sectors)
            counts["lines"] += _distinct(warps, addresses // LINE)
            by_block[what].append(_pairs(lanes // THREADS, sectors))
            everywhere[what].append(_unique(sectors))
        for what, pairs in by_block.items():
            if pairs:
                counts[f"{what}_block"] += _unique(np.concatenate(pairs)).size
    for what, sectors in everywhere.items():
        if sectors:
            counts[f"{what}_once"] = _unique(np.concatenate(sectors)).size
    return Traffic(**{name: int(count) for name, count in counts.items()})


def _pairs(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """One number for each pair; `b` is below 2**44."""
    return a << 44 | b


def _distinct(a: np.ndarray, b: Any = 0) -> int:
    return int(_unique(_pairs(a, np.asarray(b))).size)


def _passes(width: int, lanes: np.ndarray, offsets: np.ndarray) -> tuple[int, int]:
    """Passes of one instruction over all warps, and the fewest."""
    words = (offsets // 4)[:, None] + np.arange(max(1, width // 4))
    threads = min(WARP, WARP * 4 // width)  # that one pass serves
    groups = np.repeat(lanes // threads, words.shape[1])
    wanted = _unique(_pairs(groups, words.ravel()))
    banks, counts = _counted(np.sort(_pairs(wanted >> 44, wanted % WARP)))
    groups = banks >> 44
    first = np.flatnonzero(np.concatenate(([True], groups[1:] != groups[:-1])))
    passes = int(np.maximum.reduceat(counts, first).sum())
    whole = _unique(_pairs(np.repeat(lanes // WARP, words.shape[1]), words.ravel()))
    _, counts = _counted(whole >> 44)
    return passes, int((-(-counts // WARP)).sum())


def _counted(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different ones of numbers that are sorted, and how often each occurs."""
    first = np.flatnonzero(np.concatenate(([True], values[1:] != values[:-1])))
    return values[first], np.diff(first, append=values.size)


def _unique(values: np.ndarray) -> np.ndarray:
    """The different ones, sorted: by the factor of ten quicker than NumPy's, which hashes."""
    return _counted(np.sort(values))[0]
