"""JAX arrays over a mesh of devices, in this process and others."""

from collections.abc import Callable
from math import prod
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

from ...core.records import ConversionError
from ...sharding import Sharded, part_of
from .exchange import PLATFORMS, check_memory

# If shards had two orders, JAX would read some wrongly.
OPTIONS = {"order": "C", "device": None}  # the devices are those of the mesh
MESH = Mesh
_RESPLIT = (
    "move the array to another mesh, jax.device_put(x, jax.sharding.NamedSharding(mesh, spec))"
)


def describe(x: jax.Array) -> Sharded:
    """Describe an array; raise for summands and for arrays without memory."""
    check_memory(x)
    sharding = x.sharding
    spec = getattr(sharding, "spec", ())
    if getattr(spec, "unreduced", None):
        raise ConversionError(
            f"the shards are summands, not parts, of the array ({spec}): sum them first, "
            "jax.sharding.reshard(x, spec), with a spec without unreduced axes"
        )
    shards = [(part_of(s.index, x.shape), s.device, s.data) for s in x.addressable_shards]
    source = Sharded(x.shape, shards, _RESPLIT)
    if isinstance(sharding, SingleDeviceSharding):
        (device,) = sharding.device_set
        return source._replace(sizes=(1,), axes=[()] * x.ndim, processes=(device.process_index,))
    if not isinstance(sharding, NamedSharding):
        return source
    mesh = sharding.mesh
    position = {name: i for i, name in enumerate(mesh.axis_names)}
    named = [e if isinstance(e, tuple) else () if e is None else (e,) for e in spec]
    return source._replace(
        sizes=mesh.devices.shape,
        axes=[*([position[name] for name in names] for names in named)]
        + [()] * (x.ndim - len(spec)),
        names=tuple(map(str, mesh.axis_names)),
        processes=tuple(device.process_index for device in mesh.devices.flat),
    )


def check(source: Sharded) -> None:
    """Check that the shards are equal."""
    for axis, (length, axes) in enumerate(zip(source.shape, source.axes or (), strict=True)):
        parts = prod(source.sizes[i] for i in axes)
        if length % parts:
            raise ConversionError(
                f"axis {axis} of {length} is split into {parts}, but JAX needs equal shards: pad "
                f"the array, or {source.resplit}"
            )


def build(source: Sharded, mesh: Any, convert: Callable[..., Any]) -> jax.Array:
    """Make an array, of which each process provides its devices' shards."""
    mesh = _mesh_of(source) if mesh is None else mesh
    source.check_mesh(mesh.devices.shape)
    names = mesh.axis_names
    spec = PartitionSpec(*(tuple(names[i] for i in axes) or None for axes in source.axes or ()))
    sharding = NamedSharding(mesh, spec)
    places = sharding.addressable_devices_indices_map(source.shape)
    arrays = source.arrays([part_of(index, source.shape) for index in places.values()])
    made = [convert(x, device=device) for x, device in zip(arrays, places, strict=True)]
    return jax.make_array_from_single_device_arrays(source.shape, sharding, made)


def _mesh_of(source: Sharded) -> Mesh:
    """Make a mesh like an array's, of one device per process."""
    devices = jax.devices(next((k for k, v in PLATFORMS.items() if v == source.platform), None))
    wanted, found = source.processes, {each.process_index: each for each in devices}
    if len(found) < len(devices) or not found.keys() >= set(wanted):
        raise ConversionError(
            f"a mesh of {source.sizes} needs one device per process, but JAX has {len(devices)} "
            f"devices in {jax.process_count()} processes: pass mesh=, or start JAX with one device "
            "in every process, jax.distributed.initialize()"
        )
    grid = np.array([found[process] for process in wanted], object).reshape(source.sizes)
    return Mesh(grid, source.names or tuple(f"axis_{i}" for i in range(grid.ndim)))
