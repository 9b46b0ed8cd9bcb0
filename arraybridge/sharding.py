"""Sharded arrays: JAX's arrays over a mesh and PyTorch's ``DTensor``, shard by shard.

Each process converts its own shards; nothing is gathered. A process that holds one shard of a
``jax.Array`` (``jax.distributed``, one device per process) holds that of the ``DTensor``, too::

    to_torch(x)         a DTensor of a sharded jax.Array, or of a Dask array
    to_jax(x)           a jax.Array of a DTensor, or of a Dask array
    to_dask(x)          a Dask array whose blocks are the shards
    shards(x)           the shards of this process: where they belong, device, Array
    explain(x, "torch") the route of each
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from .array import Array, from_dlpack
from .conversion import convert
from .core.records import ConversionError, Route
from .core.registry import RECORDS, library_named
from .explaining import explain as explained

if TYPE_CHECKING:
    from .dlpack import DeviceType

__all__ = ["Shard", "ShardRoute", "explain", "shards", "to_dask", "to_jax", "to_torch"]

Index = tuple[slice, ...]
Bounds = tuple[tuple[int, int], ...]


class Shard(NamedTuple):
    """A shard: ``x[index]`` of the whole array, the library's own device (None: Dask), an Array.

    Examples
    --------
    >>> import arraybridge as ab
    >>> import jax.numpy as jnp
    >>> (shard,) = ab.sharding.shards(jnp.arange(3.0))
    >>> shard.index, shard.array.device
    ((slice(0, 3, None),), Device('cpu'))
    """

    index: Index  # type: ignore[assignment]  # which hides tuple.index
    device: object
    array: Array


class ShardRoute(NamedTuple):
    """The route of a shard: ``x[index]`` of the whole array, the library's own device, a Route.

    Examples
    --------
    >>> import arraybridge as ab
    >>> import jax.numpy as jnp
    >>> ab.sharding.explain(jnp.zeros(3), "torch")[0].route.nbytes
    12
    """

    index: Index  # type: ignore[assignment]
    device: object
    route: Route


class Sharded(NamedTuple):
    """A sharded array, in the terms of no library.

    `shape` is that of the whole array, `sizes` that of the mesh, `names` its axes, if they have
    names, and `processes` the process at each of its coordinates in C order (None: in their order).
    `axes` has, for each axis of the array, the axes of the mesh that split it one after another.
    `shards` are those of this process: index, device, the library's own array. `load` computes
    some of them. Where no mesh describes them, `refused` says so and what to do; `resplit` is how
    to split the array otherwise.
    """

    shape: tuple[int, ...]
    shards: Sequence[tuple[Index, object, Any]]
    sizes: tuple[int, ...] = ()
    axes: tuple[tuple[int, ...], ...] = ()
    names: tuple[str, ...] | None = None
    processes: tuple[int, ...] | None = None
    resplit: str = ""
    platform: DeviceType | None = None
    load: Callable[[Sequence[Any]], Sequence[Any]] = list
    refused: str | None = None

    def index_at(self, coordinate: Sequence[int]) -> Index:
        """Return what a coordinate of the mesh holds; the last parts are smaller, as of chunks."""
        index = []
        for stop, axes in zip(self.shape, self.axes, strict=True):
            start = 0
            for axis in axes:
                step = -(-(stop - start) // self.sizes[axis])
                start = min(start + coordinate[axis] * step, stop)
                stop = min(start + step, stop)
            index.append(slice(start, stop))
        return tuple(index)

    def arrays(self, indices: Sequence[Index]) -> Sequence[Any]:
        """Return this process's arrays of some indices.

        Raises
        ------
        ConversionError
            If it does not hold them: each process must hold the same part of both arrays.
        """
        held = self.parts()
        wanted = [bounds(index, self.shape) for index in indices]
        for part in wanted:
            if part not in held:
                raise ConversionError(
                    f"this process needs the part {_text(part)} of the array and holds "
                    f"{', '.join(map(_text, held)) or 'nothing'}: number the processes alike in "
                    f"both libraries, and pass a mesh in their order, or {self.resplit}"
                )
        return self.load([held[part] for part in wanted])

    def parts(self) -> dict[Bounds, Any]:
        """Return this process's arrays by the (start, stop) of each axis."""
        return {bounds(index, self.shape): x for index, _, x in self.shards}

    def check_mesh(self, sizes: Sequence[int]) -> None:
        """Raise ConversionError for a mesh of other sizes than the array's."""
        if tuple(sizes) != self.sizes:
            raise ConversionError(
                f"the array is split over a mesh of {self.sizes} and the mesh given is "
                f"{tuple(sizes)}: pass one of the same sizes, or {self.resplit}"
            )


class Shardings:
    """How a library describes its sharded arrays, and makes them; see ``Library.shardings``."""

    #: What ``convert`` is asked for shards of this library.
    options: ClassVar[Mapping[str, Any]] = {}

    def describe(self, x: Any) -> Sharded:
        """Describe an array of the library.

        Raises
        ------
        ConversionError
            If its local arrays are not parts of it.
        """
        raise NotImplementedError

    def check(self, source: Sharded) -> None:
        """Raise ConversionError for a split that the library cannot express."""

    def build(self, source: Sharded, mesh: Any, convert: Callable[..., Any]) -> Any:
        """Make a sharded array; ``convert(array, **options)`` makes a shard of this library."""
        raise NotImplementedError


def bounds(index: Index, shape: tuple[int, ...]) -> Bounds:
    """Return the (start, stop) of each axis."""
    return tuple(part.indices(n)[:2] for part, n in zip(index, shape, strict=True))


def index_of(bounds: Bounds) -> Index:
    """Return the slices of the (start, stop) of each axis."""
    return tuple(slice(*pair) for pair in bounds)


def _text(bounds: Bounds) -> str:
    return f"[{', '.join(f'{start}:{stop}' for start, stop in bounds)}]"


def _shardings(library: Any) -> Shardings:
    found: Shardings | None = None if library is None else library.shardings()
    if found is None:
        raise TypeError(
            f"arraybridge.sharding has arrays of JAX, PyTorch (DTensor) and Dask, not of "
            f"{'this type' if library is None else library.name}: arraybridge.convert has others"
        )
    return found


def _described(x: Any) -> Sharded:
    if isinstance(x, Array):
        x = x.native
    record = RECORDS[type(x)]
    return _shardings(record.library or record.lazy).describe(x)


def _checked(x: Any, to: object) -> tuple[Sharded, Shardings]:
    source, target = _described(x), _shardings(library_named(to))
    if source.refused is not None:
        raise ConversionError(source.refused)
    target.check(source)
    return source, target


def _converted(x: Any, to: str, mesh: Any, asked: Mapping[str, Any]) -> Any:
    source, target = _checked(x, to)
    return target.build(source, mesh, partial(convert, to=to, **asked, **target.options))


def to_torch(
    x: Any,
    mesh: Any = None,
    *,
    copy: bool | None = None,
    alias_readonly: bool = False,
    dtype: object = None,
) -> Any:
    """Convert a sharded array to a ``DTensor``, each process its own shard.

    Every process of the mesh must call it; nothing is sent, but to make a ``DeviceMesh``.

    Parameters
    ----------
    x : jax.Array or Dask array
        With a ``NamedSharding``, one device per process. The blocks of a Dask array are the shards.
    mesh : DeviceMesh, optional
        Its axes are those of the array's mesh, in order. By default one is made, with the same
        names, once for all arrays: the rank of a process is its ``process_index``.
    copy, alias_readonly, dtype
        As for :func:`arraybridge.convert`. JAX's arrays never change and PyTorch's do: their memory
        is shared with ``alias_readonly=True``, else copied.

    Returns
    -------
    DTensor
        ``Shard(i)`` on the axes of the mesh that split axis ``i``, ``Replicate()`` on others.

    Raises
    ------
    ConversionError
        If placements cannot express the split, such as ``PartitionSpec(("b", "a"))`` on a mesh of
        ``("a", "b")``; if this process does not hold the part that its rank has; if ``convert``
        refuses the shard.

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
    asked: dict[str, Any] = {"copy": copy, "alias_readonly": alias_readonly, "dtype": dtype}
    return _converted(x, "torch", mesh, asked)


def to_jax(x: Any, mesh: Any = None, *, copy: bool | None = None, dtype: object = None) -> Any:
    """Convert a sharded array to a ``jax.Array``, each process its own shards.

    Parameters
    ----------
    x : DTensor or Dask array
        The blocks of a Dask array are the shards; each process computes its own.
    mesh : jax.sharding.Mesh, optional
        Its axes are those of the array's mesh, in order. By default one is made, with the same
        names, or ``"axis_0"`` and so on.
    copy, dtype
        As for :func:`arraybridge.convert`: memory that may still be written is copied, and shared
        with ``copy=False``. Shards that are not in C order are copied: those of other processes
        might have another order, and JAX knows one for all.

    Returns
    -------
    jax.Array
        With a ``NamedSharding``.

    Raises
    ------
    ConversionError
        For ``Partial`` placements, shards of unequal sizes, and as for :func:`to_torch`.

    Examples
    --------
    >>> import arraybridge as ab
    >>> import dask.array as da
    >>> ab.sharding.to_jax(da.ones((4, 2), dtype="f4")).sharding.spec
    P(None, None)
    """
    return _converted(x, "jax", mesh, {"copy": copy, "dtype": dtype})


def to_dask(x: Any) -> Any:
    """Make a Dask array whose blocks are NumPy's on the shards, as ``convert`` makes them.

    Parameters
    ----------
    x : jax.Array or DTensor
        All of whose parts this process holds.

    Returns
    -------
    dask.array.Array

    Raises
    ------
    ConversionError
        If this process holds some parts only.

    Examples
    --------
    >>> import arraybridge as ab
    >>> import jax.numpy as jnp
    >>> ab.sharding.to_dask(jnp.arange(6.0)).chunks
    ((6,),)
    """
    source, target = _checked(x, "dask")
    return target.build(source, None, partial(convert, to="numpy"))


def shards(x: Any) -> list[Shard]:
    """List the shards of an array that this process addresses, each as an Array on its memory.

    Parameters
    ----------
    x : jax.Array, DTensor or Dask array
        Of a Dask array the blocks, which are computed.

    Returns
    -------
    list of Shard
        ``x[index]`` is what the Array has; replicas have the same index.

    Raises
    ------
    ConversionError
        If local arrays are summands, not parts, of the whole (``Partial``).

    Examples
    --------
    >>> import arraybridge as ab
    >>> import jax.numpy as jnp
    >>> ((index, device, array),) = ab.sharding.shards(jnp.arange(3.0))
    >>> index, ab.convert(array, "numpy")
    ((slice(0, 3, None),), array([0., 1., 2.], dtype=float32))
    """
    source = _described(x)
    arrays = source.load([array for *_, array in source.shards])
    return [
        Shard(index, device, from_dlpack(array))
        for (index, device, _), array in zip(source.shards, arrays, strict=True)
    ]


def explain(
    x: Any,
    to: object,
    *,
    copy: bool | None = None,
    alias_readonly: bool = False,
    dtype: object = None,
) -> list[ShardRoute]:
    """Return the route that each shard of this process would take.

    Parameters
    ----------
    x : jax.Array or DTensor
    to : {"torch", "jax"}
    copy, alias_readonly, dtype
        As for :func:`to_torch`.

    Raises
    ------
    ConversionError
        If the split cannot be expressed in the other library.

    Examples
    --------
    >>> import arraybridge as ab
    >>> import jax.numpy as jnp
    >>> ((_, _, route),) = ab.sharding.explain(jnp.zeros(3), "torch", alias_readonly=True)
    >>> route.kind
    'view'
    """
    source, target = _checked(x, to)
    asked: dict[str, Any] = {"copy": copy, "alias_readonly": alias_readonly, "dtype": dtype}
    return [
        ShardRoute(index, device, explained(array, to, **asked, **target.options))
        for index, device, array in source.shards
    ]
