"""Dask: arrays in blocks that are computed later; each block is converted when it is computed."""

from collections.abc import Callable
from typing import Any

import dask.array
from dask.array.dispatch import concatenate_lookup
from dask.sizeof import sizeof
from dask.tokenize import tokenize

from ...core.library import Computing, Library
from ...core.records import Accepts, TensorInfo
from ...protocols.rejections import no_array


class _Computing(Computing):
    def map_blocks(self, function: Callable[[Any], Any], x: Any) -> Any:
        block = _Block(function)
        meta = block(x._meta)  # an array without elements, of the type of the blocks
        name = f"arraybridge-{tokenize(block, x)}"
        return dask.array.map_blocks(block, x, meta=meta, dtype=meta.dtype, name=name)

    def native_namespace(self) -> Any:
        import array_api_compat.dask.array as namespace

        return namespace


class Dask(Library):
    """Arrays of blocks that are computed later."""

    name = "dask"
    computing = _Computing()
    accepts = Accepts(
        library="dask",
        tested=dask.__version__,
        dtypes=frozenset(),
        remedies={"": "call dask.array.from_array(x, asarray=False)"},
    )

    def owns(self, array_type: type) -> bool:
        return issubclass(array_type, dask.array.Array)

    def describe(self, x: Any) -> TensorInfo:
        raise no_array(x)


class _Block:
    """A function of one block. A worker that unpickles it imports this module."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def __call__(self, block: Any) -> Any:
        return self.function(block)


# By default, Dask joins blocks as NumPy arrays, and takes a few bytes for the size of a tensor.


@concatenate_lookup.register_lazy("torch")  # type: ignore[untyped-decorator]
def _join_tensors() -> None:
    import torch

    concatenate_lookup.register(torch.Tensor, lambda blocks, axis=0: torch.concat(blocks, axis))


@concatenate_lookup.register_lazy("jaxlib")  # type: ignore[untyped-decorator]
def _join_jax() -> None:
    import jax

    concatenate_lookup.register(jax.Array, jax.numpy.concatenate)


@sizeof.register_lazy("torch")  # type: ignore[untyped-decorator]
def _size_tensors() -> None:
    import torch

    sizeof.register(torch.Tensor, lambda x: int(x.nbytes))


LIBRARY = Dask()
