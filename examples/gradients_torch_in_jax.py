"""Differentiate a PyTorch module inside ``jax.grad`` and ``jax.jit``.

A network trained in PyTorch approximates an energy; JAX finds its minima. Inside the program that
JAX compiles, the module and its gradient are callbacks on the host.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import torch

import arraybridge as ab


def trained() -> torch.nn.Module:
    """Return a network that approximates the energy of a double well, (x² - 1)² + y²."""
    torch.manual_seed(0)
    torch.set_num_threads(1)  # fastest for a small network
    hidden = torch.nn.Linear(2, 32), torch.nn.Tanh(), torch.nn.Linear(32, 32), torch.nn.Tanh()
    model = torch.nn.Sequential(*hidden, torch.nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(800):
        x = torch.rand(256, 2) * 4 - 2
        energy = (x[:, 0] ** 2 - 1) ** 2 + x[:, 1] ** 2
        optimizer.zero_grad()
        (model(x)[:, 0] - energy).square().mean().backward()
        optimizer.step()
    return model


def main() -> None:
    """Descend from random positions, and print where they end."""

    def number(places: Any) -> Any:
        """Describe the result: one energy for each position."""
        return jax.ShapeDtypeStruct((*places.shape[:-1], 1), places.dtype)

    energy = ab.adapt("torch", differentiable=True, callback=number)(trained())

    def descent(places: Any) -> Any:
        def step(places: Any, _: None) -> Any:
            total, slope = jax.value_and_grad(lambda p: energy(p).sum())(places)
            return places - 0.05 * slope, total

        return jax.lax.scan(step, places, length=60)

    places = jax.random.uniform(jax.random.key(0), (5, 2), minval=-1.5, maxval=1.5)
    found, totals = jax.jit(descent)(places)
    print(f"Total energy: {totals[0]:.3f} at first, {totals[-1]:.3f} after 60 steps")
    for start, end in zip(places, found, strict=True):
        (x, y), (u, v) = map(float, start), map(float, end)
        print(f"from ({x:5.2f}, {y:5.2f}) to ({u:5.2f}, {v:5.2f})")
    print("The wells are at x = -1 and x = 1.")
    slopes = jax.vmap(jax.grad(lambda p: energy(p).sum()))(found)
    print(f"The steepest remaining slope: {jnp.abs(slopes).max():.3f}")


if __name__ == "__main__":
    main()
