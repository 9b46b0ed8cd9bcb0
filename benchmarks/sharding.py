"""Convert a sharded array in two processes: shard by shard, or gathered, as without arraybridge.

python -m benchmarks.sharding        time and memory per process, for 64 MB of float32
"""

from __future__ import annotations

import os
import socket
import tempfile
from statistics import median
from time import perf_counter

import numpy as np

from .resident import peak

MB = 1 << 20


def work(rank: int, port: int, store: str) -> None:
    """Measure in one process; the first prints."""
    said = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # JAX's collectives report their connections on stdout
    import jax
    import torch
    import torch.distributed as dist
    from jax.experimental.multihost_utils import process_allgather

    import arraybridge as ab

    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"127.0.0.1:{port}", num_processes=2, process_id=rank)
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=2)
    place = jax.NamedSharding(jax.make_mesh((2,), ("rows",)), jax.P("rows"))
    part = jax.numpy.ones((4096, 2048), "f4").block_until_ready()
    x = jax.make_array_from_single_device_arrays((8192, 2048), place, [part])
    t = ab.sharding.to_torch(x)

    def gathered():
        return torch.tensor(np.asarray(process_allgather(x, tiled=True)))

    def placed():
        whole = t.full_tensor().numpy()
        return jax.make_array_from_callback(whole.shape, place, lambda index: whole[index])

    ways = {
        "JAX to PyTorch: process_allgather, torch.tensor": gathered,
        "to_torch(x)": lambda: ab.sharding.to_torch(x),
        "to_torch(x, alias_readonly=True)": lambda: ab.sharding.to_torch(x, alias_readonly=True),
        "PyTorch to JAX: full_tensor, make_array_from_callback": placed,
        "to_jax(t)": lambda: ab.sharding.to_jax(t).block_until_ready(),
        "to_jax(t, copy=False)": lambda: ab.sharding.to_jax(t, copy=False).block_until_ready(),
    }
    base = 0.0
    for name, way in ways.items():
        way()
        ab.empty_block_cache()  # the next result would reuse the memory of a dropped one
        more, times = peak(way, warm=False), []
        for _ in range(7):
            dist.barrier()
            start = perf_counter()
            way()
            times.append(perf_counter() - start)
        taken = median(times)
        base = taken if ":" in name else base
        if rank == 0:
            figures = (
                f"{taken * 1e3:9.3f} ms {more / MB:6.1f} MB more {base / taken:8.1f} times as fast"
            )
            print(f"{name:54}{figures}", file=said)
    said.close()
    dist.destroy_process_group()
    jax.distributed.shutdown()


if __name__ == "__main__":
    from torch.multiprocessing import spawn

    with socket.socket() as free, tempfile.TemporaryDirectory() as folder:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        spawn(work, (port, f"file://{folder}/ranks"), nprocs=2)
