"""Exchanges on the device without a copy, compared with each library's own conversion."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..timing import paired

Exchange = tuple[str, Callable[[], object], str, Callable[[], object]]


def exchanges() -> Iterator[Exchange]:
    """(what, ours, the peer's name, the peer), on device 0."""
    import torch

    import arraybridge as ab

    convert = ab.convert
    tensor = torch.arange(12, dtype=torch.float32, device="cuda").reshape(3, 4)
    cupy, cuda, jax = (_module(name) for name in ("cupy", "numba.cuda", "jax"))
    yield (
        "torch to Array",
        lambda: ab.from_dlpack(tensor),
        "torch.from_dlpack",
        lambda: torch.from_dlpack(tensor),
    )
    if cupy is not None:
        array = cupy.arange(12, dtype="float32").reshape(3, 4)
        yield (
            "torch to CuPy",
            lambda: convert(tensor, "cupy"),
            "cupy.from_dlpack",
            lambda: cupy.from_dlpack(tensor),
        )
        yield (
            "CuPy to torch",
            lambda: convert(array, "torch"),
            "torch.from_dlpack",
            lambda: torch.from_dlpack(array),
        )
        yield (
            "torch to CuPy",
            lambda: convert(tensor, "cupy"),
            "cupy.asarray",
            lambda: cupy.asarray(tensor),
        )
    if cuda is not None:
        yield (
            "torch to Numba",
            lambda: convert(tensor, "numba"),
            "as_cuda_array",
            lambda: cuda.as_cuda_array(tensor),
        )
    if jax is not None:
        theirs = jax.numpy.arange(12, dtype="float32").reshape(3, 4)
        own = jax.dlpack.from_dlpack
        yield (
            "torch to JAX",
            lambda: convert(tensor, "jax"),
            "jax.dlpack.from_dlpack",
            lambda: own(tensor),
        )
        yield (
            "JAX to torch",
            lambda: convert(theirs, "torch"),
            "torch.from_dlpack",
            lambda: torch.from_dlpack(theirs),
        )


def _module(name: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def measure(ours: Callable[[], object], name: str, peer: Callable[[], object]) -> dict[str, Any]:
    ours(), peer()
    pair = paired(ours, peer, rounds=9)
    return {"ours": pair.ours, "peer": name, "theirs": pair.peer, "ratio": pair.ratio}


def run(record: Any) -> None:
    """JAX's 32-bit default is enough: the arrays have float32 elements."""
    for what, ours, name, peer in exchanges():
        record.attempt(f"{what} / {name}", measure, ours, name, peer, needs=2)
