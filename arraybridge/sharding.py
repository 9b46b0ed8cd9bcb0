"""Sharded arrays: JAX arrays over a mesh, and PyTorch's ``DTensor``.

Each process converts its own shards; no shard is sent to another process.

A library's module ``sharding`` has ``describe(x)``, which returns a `Sharded`; ``check(source)``,
which raises an error if the library cannot express the split; ``build(source, mesh, convert)``,
which makes the shards with ``convert(array)``; ``MESH``, the class of its meshes; and ``OPTIONS``,
the options that ``convert`` gets.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from .array import Array, from_dlpack
from .conversion import convert
from .core.records import ConversionError
from .core.registry import library_of_type

if TYPE_CHECKING:
    from .dlpack import DeviceType

__all__ = ["shards", "to_jax", "to_torch"]

Index = tuple[slice, ...]
Part = tuple[tuple[int, int], ...]  # (start, stop) on each axis of the whole array


class Sharded(NamedTuple):
    """A sharded array, independent of its library.

    `shards` are this process's: part, device, the library's own array. `resplit` is the remedy that
    splits the array otherwise. `sizes` and `names` are those of the mesh's axes; `axes` lists for
    each axis of the array the mesh axes that split it, in order (None: no mesh describes the
    split). `processes` are those at the mesh's coordinates in C order.
    """

    shape: tuple[int, ...]
    shards: Sequence[tuple[Part, object, Any]]
    resplit: str
    sizes: tuple[int, ...] = ()
    axes: Sequence[Sequence[int]] | None = None
    names: tuple[str, ...] | None = None
    processes: tuple[int, ...] = ()
    platform: DeviceType | None = None

    def part_at(self, coordinate: Sequence[Any]) -> Part:
        """Return the part at a coordinate of the mesh; as with chunks, the last may be smaller."""
        part = []
        for stop, axes in zip(self.shape, self.axes or (), strict=True):
            start = 0
            for axis in axes:
                step = -(-(stop - start) // self.sizes[axis])
                start = min(start + int(coordinate[axis]) * step, stop)
                stop = min(start + step, stop)
            part.append((start, stop))
        return tuple(part)

    def arrays(self, parts: Sequence[Part]) -> Sequence[Any]:
        """Return arrays of this process; ConversionError if it does not hold them."""
        held = {part: array for part, _, array in self.shards}
        for part in parts:
            if part not in held:
                raise ConversionError(
                    f"this process needs the part {_text(part)} of the array but holds "
                    f"{', '.join(map(_text, held)) or 'nothing'}: number the processes alike in "
                    f"both libraries, pass a mesh in their order, or {self.resplit}"
                )
        return [held[part] for part in parts]

    def check_mesh(self, sizes: Sequence[int]) -> None:
        """Raise ConversionError for a mesh of other sizes than the array's."""
        if tuple(sizes) != self.sizes:
            raise ConversionError(
                f"the array is split over a mesh of {self.sizes} but the mesh passed is "
                f"{tuple(sizes)}: pass one of the same sizes, or {self.resplit}"
            )


def part_of(index: Index, shape: tuple[int, ...]) -> Part:
    """Return the part that slices select."""
    return tuple(each.indices(n)[:2] for each, n in zip(index, shape, strict=True))


def _text(part: Part) -> str:
    return f"[{', '.join(f'{start}:{stop}' for start, stop in part)}]"


def _shardings(library: str) -> Any:
    if library not in ("jax", "torch"):
        raise TypeError(
            "only a jax.Array or a DTensor is sharded, and becomes the other: call "
            "arraybridge.convert for other arrays"
        )
    return import_module(f".libraries.{library}.sharding", __package__)


def _described(x: Any) -> Sharded:
    x = x.native if isinstance(x, Array) else x
    library = library_of_type(type(x))
    source: Sharded = _shardings(library.name if library else "").describe(x)
    return source


def _converted(x: Any, to: str, mesh: Any, options: dict[str, Any]) -> Any:
    source, target = _described(x), _shardings(to)
    if source.axes is None:
        raise ConversionError(f"no mesh describes how the array is split: {source.resplit}")
    target.check(source)
    if mesh is not None and not isinstance(mesh, target.MESH):
        raise TypeError(f"mesh must be a {target.MESH.__name__} of {to}, got {mesh!r}")
    return target.build(source, mesh, partial(convert, to=to, **options, **target.OPTIONS))


def to_torch(x: Any, mesh: Any = None, **options: Any) -> Any:
    """Convert a sharded array to a ``DTensor``; each process converts its own shard.

    Parameters
    ----------
    x : jax.Array
        An array with a ``NamedSharding`` and one device per process.
    mesh : DeviceMesh, optional
        A mesh whose axes are those of the array's mesh, in order. By default, one is made with the
        same names and reused for later arrays. All processes must take part, and the rank of a
        process is its ``process_index``.
    **options
        ``copy``, ``alias_readonly``, ``dtype`` and ``casting`` as for :func:`arraybridge.convert`.
        JAX arrays never change and PyTorch tensors do, so memory is copied unless
        ``alias_readonly=True``.

    Returns
    -------
    DTensor
        ``Shard(i)`` on mesh axes that split axis ``i``, ``Replicate()`` on the others.

    Raises
    ------
    ConversionError
        If the target cannot express the split; if this process does not hold the part of its rank;
        or if a shard cannot be converted.

    Examples
    --------
    >>> import arraybridge as ab
    >>> import jax, numpy as np
    >>> import torch.distributed as dist
    >>> from jax.sharding import Mesh, NamedSharding, PartitionSpec
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> mesh = Mesh(np.array(jax.devices()[:1]), ("data",))
    >>> x = jax.device_put(np.ones((4, 2), "f4"), NamedSharding(mesh, PartitionSpec("data")))
    >>> t = ab.sharding.to_torch(x, alias_readonly=True)
    >>> t.placements, t.device_mesh.mesh_dim_names
    ((Shard(dim=0),), ('data',))
    >>> ab.sharding.to_jax(t).sharding.spec
    P('data', None)
    >>> dist.destroy_process_group()
    """
    return _converted(x, "torch", mesh, options)


def to_jax(x: Any, mesh: Any = None, **options: Any) -> Any:
    """Convert a ``DTensor`` to a ``jax.Array``; each process converts its shard.

    Errors are as in :func:`to_torch`; partial and unequal shards are a ConversionError, too.

    Parameters
    ----------
    x : DTensor
        The sharded tensor.
    mesh : jax.sharding.Mesh, optional
        As for :func:`to_torch`; axes without names become ``"axis_0"`` and so on.
    **options
        As for :func:`to_torch`. Memory that may still be written is copied unless ``copy=False``,
        and shards that are not in C order always, because JAX has one order for all shards.

    Returns
    -------
    jax.Array
        With a ``NamedSharding``.

    Examples
    --------
    >>> import arraybridge as ab
    >>> import torch
    >>> import torch.distributed as dist
    >>> from torch.distributed.tensor import DeviceMesh, distribute_tensor
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> t = distribute_tensor(torch.ones(4, 2), DeviceMesh("cpu", [0]))
    >>> ab.sharding.to_jax(t).sharding.spec
    P(None, None)
    >>> dist.destroy_process_group()
    """
    return _converted(x, "jax", mesh, options)


def shards(x: Any) -> list[tuple[Index, object, Array]]:
    """List the shards of a jax.Array or DTensor that this process holds.

    Each is its index, device, and an Array on the memory, which has the elements of ``x[index]``;
    replicas have the same index. The device is the library's own.

    Examples
    --------
    >>> import arraybridge as ab
    >>> import jax.numpy as jnp
    >>> ((index, device, array),) = ab.sharding.shards(jnp.arange(3.0))
    >>> index, ab.convert(array, "numpy")
    ((slice(0, 3, None),), array([0., 1., 2.], dtype=float32))
    """
    return [
        (tuple(slice(*each) for each in part), device, from_dlpack(array))
        for part, device, array in _described(x).shards
    ]
