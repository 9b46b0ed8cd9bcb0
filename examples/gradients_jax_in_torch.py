"""Train a PyTorch model through a simulation written in JAX.

The simulation is compiled by ``jax.jit``; ``arraybridge.adapt`` makes it a node of PyTorch's graph.
A small network learns how hard, and at what angle, to throw a ball, against drag and wind, so that
it hits a target.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import torch

import arraybridge as ab


def simulated(throws: Any, wind: Any) -> Any:
    """Return where balls land; ``throws`` has a speed and an angle per ball."""
    speed, angle = throws[:, 0], throws[:, 1]
    velocity = jnp.stack([speed * jnp.cos(angle), speed * jnp.sin(angle)], axis=1)

    def step(state: Any, _: None) -> Any:
        place, velocity = state
        drag = -0.05 * velocity + jnp.stack([wind, jnp.zeros_like(wind)], axis=1)
        velocity = velocity + 0.05 * (drag + jnp.array([0.0, -9.81]))
        return (place + 0.05 * velocity * (place[:, 1:] >= 0), velocity), None

    start = (jnp.zeros_like(velocity), velocity)
    (place, _), _ = jax.lax.scan(step, start, length=80)
    return place[:, 0]


landing = ab.adapt("jax", differentiable=True)(jax.jit(simulated))


def main() -> None:
    """Train the network."""
    torch.manual_seed(0)
    torch.set_num_threads(1)  # fastest for a small network
    model = torch.nn.Sequential(torch.nn.Linear(2, 32), torch.nn.Tanh(), torch.nn.Linear(32, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(201):
        goal, wind = torch.rand(64) * 10 + 5, torch.randn(64)
        throws = model(torch.stack([goal / 10, wind], dim=1)) + torch.tensor([10.0, 0.8])
        miss = landing(throws, wind) - goal
        optimizer.zero_grad()
        miss.square().mean().backward()  # through the compiled JAX function
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step:3}: the balls miss by {miss.abs().mean():.2f} m")
    speed = model[0].weight.grad.norm()
    print(f"The gradient passed through {landing.__name__}, as a {type(speed).__name__}.")


if __name__ == "__main__":
    main()
