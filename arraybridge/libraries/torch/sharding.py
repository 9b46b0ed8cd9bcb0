"""PyTorch's ``DTensor``: a shard in each process."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Replicate, Shard

from ...core.records import ConversionError
from ...core.signature import strides_in
from ...sharding import Sharded, Shardings
from .tables import place_of

_RESPLIT = "split the tensor otherwise, x.redistribute(placements=...)"
#: The meshes that were made, as each makes process groups, by the default group that they are of.
_meshes: WeakKeyDictionary[Any, dict[Any, DeviceMesh]] = WeakKeyDictionary()


class TorchShardings(Shardings):
    """``Shard`` and ``Replicate``."""

    def describe(self, x: torch.Tensor) -> Sharded:
        if not isinstance(x, DTensor):
            raise TypeError(
                "a tensor of this process alone has no shards: pass a DTensor, or convert the "
                "tensor, arraybridge.convert"
            )
        mesh, local = x.device_mesh, x.to_local()
        axes: list[list[int]] = [[] for _ in x.shape]
        for axis, placement in enumerate(x.placements):
            if type(placement) is Shard:
                axes[placement.dim].append(axis)
            elif type(placement) is not Replicate:
                raise ConversionError(
                    f"{placement} says of no part of the array that this process holds it: pass "
                    "x.redistribute(placements=...) with Shard and Replicate alone"
                )
        source = Sharded(
            tuple(x.shape),
            [],
            tuple(mesh.shape),
            tuple(map(tuple, axes)),
            mesh.mesh_dim_names,
            tuple(mesh.mesh.flatten().tolist()),
            _RESPLIT,
            getattr(place_of(local.device), "type", None),
        )
        coordinate = mesh.get_coordinate()
        if coordinate is None:
            return source
        index = source.index_at(coordinate)
        shape = tuple(part.stop - part.start for part in index)
        if tuple(local.shape) != shape:
            raise ConversionError(
                f"the local tensor has the shape {tuple(local.shape)} and its placements say "
                f"{shape}: make the DTensor with the shape of the whole, shape= of from_local"
            )
        return source._replace(shards=[(index, local.device, local)])

    def check(self, source: Sharded) -> None:
        for axis, axes in enumerate(source.axes):
            split = [i for i in axes if source.sizes[i] > 1]
            if split != sorted(split):
                names = source.names or source.sizes
                raise ConversionError(
                    f"axis {axis} is split by {tuple(names[i] for i in axes)}, and a DTensor is "
                    f"split by the axes of its mesh in their order, {names}: {source.resplit}"
                )

    def build(self, source: Sharded, mesh: Any, convert: Callable[..., Any]) -> DTensor:
        if not dist.is_initialized():
            raise ConversionError(
                "a DTensor is of a process group: torch.distributed.init_process_group() first"
            )
        placements: list[Any] = [Replicate() for _ in source.sizes]
        for dim, axes in enumerate(source.axes):
            for axis in axes:
                placements[axis] = Shard(dim)
        world, rank = dist.get_world_size(), dist.get_rank()
        if mesh is not None:
            source.check_mesh(mesh.shape)
            ranks = tuple(mesh.mesh.flatten().tolist())
        else:
            ranks = source.processes or tuple(range(prod(source.sizes)))
            if sorted(ranks) != list(range(world)):
                raise ConversionError(
                    f"the array lies on {len(ranks)} devices of {len(set(ranks))} processes, and a "
                    f"DTensor on one of each of the {world} ranks of torch.distributed: start one "
                    "process per device, pass mesh=, a DeviceMesh of those ranks, or take the "
                    "shards, arraybridge.sharding.shards(x)"
                )
        if rank not in ranks:
            raise ConversionError(
                f"the mesh has the ranks {ranks}, and this process is {rank}: call it in those"
            )
        coordinate = list(map(int, np.unravel_index(ranks.index(rank), source.sizes)))
        local = convert(*source.arrays([source.index_at(coordinate)]))
        kind = local.device.type
        if mesh is None:
            known = _meshes.setdefault(dist.group.WORLD, {})
            key = kind, source.names, source.sizes, ranks
            if key not in known:
                grid = torch.tensor(ranks, dtype=torch.int, device="cpu").reshape(source.sizes)
                known[key] = DeviceMesh(kind, grid, mesh_dim_names=source.names)
            mesh = known[key]
        elif mesh.device_type != kind:  # from_local would copy it there
            raise ConversionError(
                f"the shard is on {local.device} and the mesh on {mesh.device_type}: move the "
                f"array first, or pass a DeviceMesh of {kind!r}"
            )
        order = sorted(range(local.ndim), key=local.stride, reverse=True)
        return DTensor.from_local(
            local,
            mesh,
            placements,
            run_check=False,
            shape=torch.Size(source.shape),
            stride=strides_in(source.shape, tuple(order)),
        )


SHARDINGS = TorchShardings()
