"""Serve JAX weights with PyTorch, in the same processes, shard by shard.

Two processes train a network whose weights are split between them. Then PyTorch runs it, on
``DTensor``s over JAX's memory: no process ever holds all weights.
"""

from __future__ import annotations

import os
import socket
import tempfile
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
import torch.distributed as dist
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from torch.distributed.tensor import Replicate, distribute_tensor
from torch.multiprocessing import spawn

import arraybridge as ab

# Each process has half of the hidden units: columns of the first layer, rows of the second.
SPECS = {"w1": P(None, "model"), "b1": P("model"), "w2": P("model", None), "b2": P()}


def network(weights: Any, x: Any) -> Any:
    """Compute the network in JAX."""
    return jnp.tanh(x @ weights["w1"] + weights["b1"]) @ weights["w2"] + weights["b2"]


def trained(mesh: Mesh) -> Any:
    """Return weights that approximate the sine, split over the devices of a mesh."""
    rng = np.random.default_rng(0)
    shapes = {"w1": (1, 64), "b1": (64,), "w2": (64, 1), "b2": (1,)}
    weights = {
        name: jax.device_put(rng.normal(size=shape).astype("f4"), NamedSharding(mesh, SPECS[name]))
        for name, shape in shapes.items()
    }

    def step(weights: Any, x: Any) -> Any:
        slopes = jax.grad(lambda w: jnp.mean((network(w, x) - jnp.sin(x)) ** 2))(weights)
        return jax.tree.map(lambda w, slope: w - 0.02 * slope, weights, slopes)

    compiled = jax.jit(step)
    for _ in range(300):
        weights = compiled(weights, rng.uniform(-3, 3, size=(128, 1)).astype("f4"))
    return weights


def served(weights: Any) -> torch.nn.Module:
    """Return the network in PyTorch, on JAX's weights."""
    t = {name: ab.sharding.to_torch(w, alias_readonly=True) for name, w in weights.items()}
    with torch.device("meta"):
        model = torch.nn.Sequential(
            torch.nn.Linear(1, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1)
        ).requires_grad_(False)
    # Linear stores its weight transposed, which is a view.
    state = {"0.weight": t["w1"].T, "0.bias": t["b1"], "2.weight": t["w2"].T, "2.bias": t["b2"]}
    model.load_state_dict(state, assign=True)
    return model


def work(rank: int, world: int, port: int, store: str) -> None:
    """Train, serve and compare, in each process."""
    stdout = os.dup(1)
    os.dup2(2, 1)  # JAX's collectives report their connections on stdout
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"127.0.0.1:{port}", num_processes=world, process_id=rank)
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=world)
    weights = trained(Mesh(np.array(jax.devices()), ("model",)))
    model = served(weights)

    x = np.linspace(-3, 3, 49, dtype="f4")[:, None]
    expected = np.asarray(jax.jit(network, out_shardings=weights["b2"].sharding)(weights, x))
    with torch.no_grad():
        mesh = model[0].weight.device_mesh
        y = model(distribute_tensor(ab.convert(x, "torch"), mesh, [Replicate()])).full_tensor()
    if rank == 0:
        lines = [
            f"{name:9} {tuple(t.shape)!s:8} {tuple(t.to_local().shape)!s:8} here, {t.placements[0]}"
            for name, t in model.state_dict().items()
        ]
        pointer = weights["w1"].addressable_data(0).unsafe_buffer_pointer()
        lines += [
            f"JAX's own memory: {model[0].weight.to_local().data_ptr() == pointer}",
            f"JAX and PyTorch differ by {abs(y.numpy() - expected).max():.1e} at most",
            f"sin(1) is {np.sin(1):.1f}, by the network {y[32, 0]:.1f}\n",
        ]
        os.write(stdout, "\n".join(lines).encode())
    dist.destroy_process_group()
    jax.distributed.shutdown()


def main() -> None:
    """Start two processes."""
    with socket.socket() as free, tempfile.TemporaryDirectory() as folder:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        spawn(work, (2, port, f"file://{folder}/ranks"), nprocs=2)


if __name__ == "__main__":
    main()
