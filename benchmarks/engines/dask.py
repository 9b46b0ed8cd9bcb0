"""Dask: PyTorch blocks in its own functions."""

from __future__ import annotations

from collections.abc import Iterator

import dask
import dask.array as da
import numpy as np
import torch

import arraybridge as ab
from arraybridge.libraries.dask.arrays import OnNativeArrays

from ..goals import Case

SIDE, PART = 4096, 1024


def cases() -> Iterator[Case]:
    """Compare the same work with NumPy blocks, and by hand: map_blocks(torch.from_numpy).

    By hand, a reduction is written as a function of tensors over the blocks, and one that joins
    what they give: Dask's own fails there. (Its hooks for CuPy take a GPU.)
    """
    numbers = np.random.default_rng(0).random((SIDE, SIDE), dtype=np.float32)
    d = da.from_array(numbers, chunks=PART)
    x = ab.convert(d, "torch")
    hand = d.map_blocks(torch.from_numpy, dtype="float32", meta=np.empty((0, 0), "float32"))
    torch.set_num_threads(1)

    def run(lazy):
        return lambda: lazy.compute(scheduler="sync")

    def by_hand(part, join):
        keys = [key for row in hand.__dask_keys__() for key in row]
        graph = dict(hand.__dask_graph__())
        graph |= {("part", *key[1:]): (part, key) for key in keys}
        graph["joined"] = (join, [("part", *key[1:]) for key in keys])
        return lambda: dask.get(graph, "joined")

    small = da.ones(4, chunks=2, dtype="float32")
    yield Case(
        "convert, only the graph",
        lambda: ab.convert(small, "torch"),
        "map_blocks(torch.from_numpy)",
        lambda: small.map_blocks(torch.from_numpy, dtype="float32", meta=small._meta),
        2.0,
    )
    yield Case("compute, one block of 16", run(x.blocks[0, 0]), "by hand", run(hand.blocks[0, 0]))
    yield Case(
        "sum, 64 MB",
        run(x.sum()),
        "by hand",
        by_hand(torch.sum, lambda parts: torch.stack(parts).sum()),
        1.2,
    )
    yield Case("sum, 64 MB", run(x.sum()), "NumPy's blocks", run(d.sum()), 1.2)
    yield Case(
        "sum of exp, 64 MB",
        run(da.exp(x).sum()),
        "by hand",
        by_hand(lambda t: torch.exp(t).sum(), lambda parts: torch.stack(parts).sum()),
        1.2,
    )
    yield Case(
        "sum of exp, 64 MB", run(da.exp(x).sum()), "NumPy's blocks", run(da.exp(d).sum()), 1.2
    )
    part, other = x[:PART], d[:PART]
    yield Case(
        "matmul, 1024 x 4096",
        run((part @ part.T).sum()),
        "NumPy's blocks",
        run((other @ other.T).sum()),
        1.2,
    )
    block = x._meta.of(x._meta.xp.ones(4))
    tensor = torch.ones(4)
    yield Case(
        "one ufunc on a block of 4", lambda: np.sqrt(block), "tensor.sqrt", lambda: tensor.sqrt()
    )
    on_native_arrays = OnNativeArrays(torch.sqrt)
    yield Case(
        "a user's function on a block of 4",
        lambda: on_native_arrays(block),
        "itself",
        lambda: torch.sqrt(tensor),
    )
