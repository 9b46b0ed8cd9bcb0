"""JAX's arrays over a mesh of devices, of this process and others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, ClassVar

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

from ...core.records import ConversionError
from ...sharding import Sharded, Shardings, bounds, index_of
from .exchange import LIBRARY, PLATFORMS, check_memory

_RESPLIT = (
    "move the array to another mesh, jax.device_put(x, jax.sharding.NamedSharding(mesh, spec))"
)


class JaxShardings(Shardings):
    """``NamedSharding``."""

    # Of two orders in one array, JAX would read the one as the other.
    options: ClassVar = {"order": "C"}

    def describe(self, x: jax.Array) -> Sharded:
        if isinstance(x, jax.core.Tracer) or jax.dtypes.issubdtype(x.dtype, jax.dtypes.extended):
            LIBRARY.describe(x)  # which refuses it
        check_memory(x)
        sharding = x.sharding
        spec = getattr(sharding, "spec", None)
        if getattr(spec, "unreduced", None):
            raise ConversionError(
                f"the shards are summands, not parts, of the array ({spec}): sum them first, "
                "jax.sharding.reshard(x, spec), with a spec that has nothing unreduced"
            )
        shards = [
            (index_of(bounds(shard.index, x.shape)), shard.device, shard.data)
            for shard in x.addressable_shards
        ]
        source = Sharded(x.shape, shards, resplit=_RESPLIT)
        if isinstance(sharding, SingleDeviceSharding):
            (device,) = sharding.device_set
            whole: tuple[tuple[int, ...], ...] = ((),) * x.ndim
            return source._replace(sizes=(1,), axes=whole, processes=(device.process_index,))
        if not isinstance(sharding, NamedSharding):
            why = f"no mesh describes a {type(sharding).__name__}: {_RESPLIT}"
            return source._replace(refused=why)
        mesh = sharding.mesh
        position = {name: i for i, name in enumerate(mesh.axis_names)}
        entries = [*sharding.spec, *[None] * (x.ndim - len(sharding.spec))]
        named = [e if isinstance(e, tuple) else () if e is None else (e,) for e in entries]
        return source._replace(
            sizes=mesh.devices.shape,
            axes=tuple(tuple(position[name] for name in names) for names in named),
            names=tuple(map(str, mesh.axis_names)),
            processes=tuple(device.process_index for device in mesh.devices.flat),
        )

    def check(self, source: Sharded) -> None:
        for axis, (length, axes) in enumerate(zip(source.shape, source.axes, strict=True)):
            parts = prod(source.sizes[i] for i in axes)
            if length % parts:
                raise ConversionError(
                    f"axis {axis} of {length} is split into {parts} and JAX has equal shards only: "
                    f"pad the array, or {source.resplit}"
                )

    def build(self, source: Sharded, mesh: Any, convert: Callable[..., Any]) -> jax.Array:
        if mesh is None:
            mesh = _mesh_of(source)
        source.check_mesh(mesh.devices.shape)
        names = mesh.axis_names
        spec = PartitionSpec(*(tuple(names[i] for i in axes) or None for axes in source.axes))
        sharding = NamedSharding(mesh, spec)
        places = sharding.addressable_devices_indices_map(source.shape)
        arrays = source.arrays(list(places.values()))
        made = [convert(x, device=device) for x, device in zip(arrays, places, strict=True)]
        return jax.make_array_from_single_device_arrays(source.shape, sharding, made)


def _mesh_of(source: Sharded) -> Mesh:
    """Make a mesh as that of an array, of the device that each process has."""
    platform = next((k for k, v in PLATFORMS.items() if v == source.platform), None)
    devices = jax.devices(platform)
    wanted: Sequence[int]
    if source.processes is None:  # any device will do
        wanted, found = range(prod(source.sizes)), dict(enumerate(devices))
    else:
        wanted, found = source.processes, {each.process_index: each for each in devices}
        found = found if len(found) == len(devices) else {}
    if not found.keys() >= set(wanted):
        raise ConversionError(
            f"a mesh of {source.sizes} needs a device in each of as many processes, and JAX has "
            f"{len(devices)} devices in {jax.process_count()}: pass mesh=, or start JAX in every "
            "process with one device, jax.distributed.initialize()"
        )
    names = source.names or tuple(f"axis_{i}" for i in range(len(source.sizes)))
    grid = np.empty(len(wanted), object)
    grid[:] = [found[process] for process in wanted]
    return Mesh(grid.reshape(source.sizes), names)


SHARDINGS = JaxShardings()
