"""Dask arrays as sharded arrays: a block is a shard."""

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
from ...sharding import Sharded

OPTIONS: dict[str, Any] = {}


def describe(x: dask.array.Array) -> Sharded:
    """Describe an array: the axes with several blocks are those of the mesh, in order."""
    if np.isnan(x.shape).any():
        raise ConversionError("the sizes of the blocks are not known: call x.compute_chunk_sizes()")
    parts = product(*(pairwise(np.cumsum((0, *sizes)).tolist()) for sizes in x.chunks))
    blocks = [x.blocks[at] if at else x for at in np.ndindex(x.numblocks)]
    split = [axis for axis, count in enumerate(x.numblocks) if count > 1]
    return Sharded(
        x.shape,
        [(part, None, block) for part, block in zip(parts, blocks, strict=True)],
        "rechunk the array, x.rechunk(...)",
        tuple(x.numblocks[axis] for axis in split) or (1,),
        [[split.index(axis)] if axis in split else [] for axis in range(x.ndim)],
        load=lambda blocks: dask.compute(*blocks),
    )


def check(source: Sharded) -> None:
    """Raise unless this process holds every part."""
    held = {part for part, *_ in source.shards}
    if sum(prod(stop - start for start, stop in part) for part in held) < prod(source.shape):
        raise ConversionError(
            f"this process holds {len(held)} of the parts of the array, and a Dask array needs all "
            "of them as blocks: use the local ones, arraybridge.sharding.shards(x)"
        )


def build(source: Sharded, mesh: None, convert: Callable[..., Any]) -> dask.array.Array:
    """Make an array of the parts."""
    held = {part: array for part, _, array in source.shards}
    axes = [sorted({part[axis] for part in held}) for axis in range(len(source.shape))]
    name = f"shards-{uuid4().hex}"
    keys = [(name, *at) for at in np.ndindex(tuple(map(len, axes)))]
    graph = {key: convert(held[part]) for key, part in zip(keys, product(*axes), strict=True)}
    chunks = [tuple(stop - start for start, stop in each) for each in axes]
    return dask.array.Array(graph, name, chunks, meta=graph[keys[0]])
