"""PyTorch's ``DTensor``: a shard in each process."""

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Replicate, Shard

from ...core.records import ConversionError
from ...layout import dense_strides
from ...sharding import Sharded
from .tables import place_of

OPTIONS: dict[str, Any] = {}
MESH = DeviceMesh
#: The meshes made, each with its process groups, by the default group.
_meshes: WeakKeyDictionary[Any, dict[Any, DeviceMesh]] = WeakKeyDictionary()


def describe(x: torch.Tensor) -> Sharded:
    """Describe a DTensor; raise for summands."""
    if not isinstance(x, DTensor):
        raise TypeError("a plain tensor is not sharded: pass a DTensor, or use convert")
    mesh, local = x.device_mesh, x.to_local()
    local = local.wait() if hasattr(local, "wait") else local  # for a collective in progress
    axes: list[list[int]] = [[] for _ in x.shape]
    for axis, placement in enumerate(x.placements):
        if type(placement) is Shard:
            axes[placement.dim].append(axis)
        elif type(placement) is not Replicate:
            raise ConversionError(
                f"{placement} does not place a part of the array in this process: pass "
                "x.redistribute(placements=...) with only Shard and Replicate"
            )
    source = Sharded(
        tuple(x.shape),
        [],
        "split the tensor otherwise, x.redistribute(placements=...)",
        tuple(mesh.shape),
        axes,
        mesh.mesh_dim_names,
        tuple(mesh.mesh.flatten().tolist()),
        getattr(place_of(local.device), "type", None),
    )
    _check_ranks(source, source.processes)
    coordinate = mesh.get_coordinate()
    if coordinate is None:
        return source
    part = source.part_at(coordinate)
    shape = tuple(stop - start for start, stop in part)
    if tuple(local.shape) != shape:
        raise ConversionError(
            f"the local tensor has the shape {tuple(local.shape)}, but its placements imply "
            f"{shape}: make the DTensor with the global shape, shape= of from_local"
        )
    return source._replace(shards=[(part, local.device, local)])


def check(source: Sharded) -> None:
    """Check the order in which axes of the mesh split an axis of the array."""
    for axis, axes in enumerate(source.axes or ()):
        split = [i for i in axes if source.sizes[i] > 1]
        if split != sorted(split):
            names = source.names or source.sizes
            raise ConversionError(
                f"axis {axis} is split by {tuple(names[i] for i in axes)}, but a DTensor is split "
                f"by the axes of its mesh in their order, {names}: {source.resplit}"
            )


def _check_ranks(source: Sharded, ranks: Any) -> None:
    # A process group sorts its ranks: a collective would join shards in another order.
    grid = np.array(ranks).reshape(source.sizes)
    for axis in {axis for axes in source.axes or () for axis in axes}:
        if (np.diff(grid, axis=axis) < 0).any():
            raise ConversionError(
                f"the ranks of the mesh descend along axis {axis}, {grid.tolist()}, but PyTorch "
                "joins shards in ascending order: make a mesh of ascending ranks"
            )


def build(source: Sharded, mesh: Any, convert: Callable[..., Any]) -> DTensor:
    """Make a DTensor; without a mesh, every process takes part in making one."""
    if not dist.is_initialized():
        raise ConversionError(
            "a DTensor needs a process group, with one process per device: call "
            "torch.distributed.init_process_group(), or take the shards of this process, "
            "arraybridge.sharding.shards(x)"
        )
    placements: list[Any] = [Replicate() for _ in source.sizes]
    for dim, axes in enumerate(source.axes or ()):
        for axis in axes:
            placements[axis] = Shard(dim)
    world, rank = dist.get_world_size(), dist.get_rank()
    if mesh is not None:
        source.check_mesh(mesh.shape)
        ranks = tuple(mesh.mesh.flatten().tolist())
    else:
        ranks = source.processes
        if sorted(ranks) != list(range(world)):
            raise ConversionError(
                f"the array has {len(ranks)} shards of processes {sorted(set(ranks))}, but a "
                f"DTensor has one in each of the {world} processes of torch.distributed: start one "
                "process per shard, pass mesh=, a DeviceMesh of those processes, or take the "
                "shards, arraybridge.sharding.shards(x)"
            )
    if rank not in ranks:
        raise ConversionError(
            f"the mesh has the ranks {ranks}, but this process has rank {rank}: call it in those"
        )
    coordinate = np.unravel_index(ranks.index(rank), source.sizes)
    arrays = source.arrays([source.part_at(coordinate)])
    _check_ranks(source, ranks)
    local = convert(*arrays)
    kind = local.device.type
    if mesh is None:
        known = _meshes.setdefault(dist.group.WORLD, {})
        key = kind, source.names, source.sizes, ranks
        if key not in known:
            grid = np.array(ranks).reshape(source.sizes)
            known[key] = DeviceMesh(kind, grid, mesh_dim_names=source.names)
        mesh = known[key]
    elif mesh.device_type != kind:  # from_local would copy it there
        raise ConversionError(
            f"the shard is on {local.device} but the mesh is on {mesh.device_type}: move the array "
            f"first, or pass a DeviceMesh of {kind!r}"
        )
    order = sorted(range(local.ndim), key=local.stride, reverse=True)
    shape = torch.Size(source.shape)
    stride = dense_strides(shape, tuple(order))
    return DTensor.from_local(local, mesh, placements, run_check=False, shape=shape, stride=stride)
