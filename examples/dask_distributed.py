"""JAX in two worker processes: Dask sends the blocks, and each worker computes with JAX arrays.

Needs JAX and ``distributed``.
"""

from typing import Any

import dask.array as da
import jax
import jax.numpy as jnp
from distributed import Client, LocalCluster

import arraybridge as ab


def main() -> None:
    """Start two workers, compute in them, and stop them."""
    cluster = LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
    )
    with cluster, Client(cluster) as client:
        x = da.random.default_rng(1).random((4_000, 256), chunks=(500, 256)).astype("float32")
        j = ab.convert(x, "jax")
        print(f"On {len(client.scheduler_info()['workers'])} workers: {j}")

        norms = da.sqrt((j**2).sum(axis=1)).compute()
        kind = "a jax.Array" if isinstance(norms, jax.Array) else type(norms)
        print(f"The norms of the rows: {kind}, {norms.shape}")

        logs = j.map_blocks(lambda block: jnp.logaddexp(block, 0.5), dtype="float32")
        print(f"A function of jax.numpy by blocks; the mean is {float(logs.mean().compute()):.4f}")

        both = da.concatenate([j, logs], axis=1)
        lazy: Any = ab.convert(both, "numpy")
        back = lazy[:2, :3].compute()
        print(f"Back in NumPy: {type(back).__name__} {back.dtype}\n{back}")


if __name__ == "__main__":
    main()
