"""Dask arrays as sharded ones: a block is a shard."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise, product
from math import prod
from typing import Any
from uuid import uuid4

import dask
import dask.array
import numpy as np

from ...core.records import ConversionError
from ...sharding import Sharded, Shardings


class DaskShardings(Shardings):
    """The axes with several blocks are those of the mesh, in their order."""

    def describe(self, x: dask.array.Array) -> Sharded:
        if np.isnan(x.shape).any():
            raise ConversionError(
                "the sizes of the blocks are not known: x.compute_chunk_sizes() first"
            )
        ends = [np.cumsum((0, *sizes)).tolist() for sizes in x.chunks]
        parts = product(*([slice(*pair) for pair in pairwise(each)] for each in ends))
        shards = [
            (index, None, x.blocks[at] if at else x)
            for at, index in zip(np.ndindex(x.numblocks), parts, strict=True)
        ]
        split = [axis for axis, count in enumerate(x.numblocks) if count > 1]
        return Sharded(
            x.shape,
            shards,
            tuple(x.numblocks[axis] for axis in split) or (1,),
            tuple((split.index(axis),) if axis in split else () for axis in range(x.ndim)),
            resplit="rechunk the array, x.rechunk(...)",
            load=lambda blocks: dask.compute(*blocks),
        )

    def build(self, source: Sharded, mesh: Any, convert: Callable[..., Any]) -> Any:
        found = source.parts()
        axes = [sorted({part[axis] for part in found}) for axis in range(len(source.shape))]
        sizes = tuple(sum(stop - start for start, stop in each) for each in axes)
        if not found or sizes != source.shape or len(found) != prod(map(len, axes)):
            raise ConversionError(
                f"this process holds {len(found)} of the parts of the array, and the blocks of a "
                "Dask array are all of them: take those, arraybridge.sharding.shards(x)"
            )
        name = f"shards-{uuid4().hex}"
        blocks = [convert(found[part]) for part in product(*axes)]
        keys = [(name, *at) for at in np.ndindex(tuple(map(len, axes)))]
        chunks = tuple(tuple(stop - start for start, stop in each) for each in axes)
        graph = dict(zip(keys, blocks, strict=True))
        return dask.array.Array(graph, name, chunks, meta=blocks[0])


SHARDINGS = DaskShardings()
