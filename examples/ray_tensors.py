"""Tensors through Ray's object store: in any dtype as Arrays, and views on request.

    python examples/ray_tensors.py

It prints how long each takes to get. Needs ray, torch and jax.
"""

from __future__ import annotations

import logging
import os
import time
from typing import Any

import jax.numpy as jnp
import ray
import torch

import arraybridge as ab

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")


@ray.remote  # type: ignore[untyped-decorator]
def normalized(x: ab.Array) -> Any:
    """Compute in the library of ``x``, on the memory of the store: it is mapped, not copied."""
    xp = ab.namespace(x)
    return (x - xp.mean(x)) / xp.std(x)


def fetched(name: str, x: Any) -> Any:
    """Put an object into the store, and print how long it takes to get it."""
    ref = ray.put(x)
    start = time.perf_counter()
    again = ray.get(ref)
    print(f"{name:28} {1e3 * (time.perf_counter() - start):6.2f} ms  {type(again).__name__}")
    return again


def main() -> None:
    """Send tensors through the store of a small cluster, and to a task."""
    ray.init(
        num_cpus=1,
        object_store_memory=500 << 20,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        _node_ip_address="127.0.0.1",
    )
    tensor, array = torch.ones(8 << 20), jnp.ones(8 << 20)

    print("ray.get of 32 MB, without and with arraybridge:")
    fetched("torch.Tensor", tensor)
    fetched("jax.Array", array)
    fetched("Array over NumPy", ab.from_dlpack(tensor.numpy()))
    fetched("Array over PyTorch", ab.from_dlpack(tensor))
    fetched("Array over bfloat16", ab.from_dlpack(tensor.bfloat16()))
    fetched("Array over a transpose", ab.from_dlpack(tensor.reshape(4096, -1).T))

    # A view of the store as a tensor, on request: nobody may write to it.
    stored = ray.get(ray.put(ab.convert(tensor, "numpy")))
    shared = ab.convert(stored, "torch", alias_readonly=True)
    print(f"\nIts sum, computed in the store: {float(shared.sum()):,.0f}")

    there = ab.from_dlpack(torch.arange(1e6))
    back = ray.get(normalized.remote(there))
    deviation = float(ab.namespace(back).std(back))
    print(f"\nFrom a task: an Array of {back.library}, standard deviation {deviation:.3f}")
    ray.shutdown()


if __name__ == "__main__":
    main()
