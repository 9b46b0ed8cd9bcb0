"""One batch for two frameworks: a teacher in JAX, a student in PyTorch.

    python examples/one_batch_two_frameworks.py

Needs torch and jax.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import torch

import arraybridge as ab

BATCH, WIDTH, CLASSES = 256, 32, 10


@jax.jit  # type: ignore[untyped-decorator]
def teacher(weights: dict[str, jax.Array], x: jax.Array) -> jax.Array:
    """Return the teacher's logits."""
    hidden = jnp.tanh(x @ weights["inner"])
    return hidden @ weights["outer"]


def main() -> None:
    """Train the student on the teacher's logits, and count the copies."""
    torch.manual_seed(0)
    torch.set_num_threads(1)  # fastest for a small network
    keys = jax.random.split(jax.random.key(0))
    weights = {
        "inner": jax.random.normal(keys[0], (WIDTH, 64)) / 4,
        "outer": jax.random.normal(keys[1], (64, CLASSES)) / 4,
    }
    student = torch.nn.Sequential(
        torch.nn.Linear(WIDTH, 128), torch.nn.Tanh(), torch.nn.Linear(128, CLASSES)
    )
    optimizer = torch.optim.Adam(student.parameters(), lr=0.004)
    # PyTorch aligns memory to 64 bytes, which JAX needs for a view; NumPy does not always.
    data = torch.randn(100, BATCH, WIDTH)

    with ab.audit() as log:
        for step in range(600):
            x = data[step % 100]
            # JAX computes later: it gets a copy, unless you promise that nobody writes until then.
            logits = teacher(weights, ab.convert(x, "jax", copy=False))
            # JAX arrays never change, and PyTorch has no read-only tensors: promise not to write.
            target = ab.convert(logits, "torch", alias_readonly=True)
            loss = torch.nn.functional.mse_loss(student(x), target)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 200 == 0 or step == 599:
                print(f"step {step:3}: the student is off by {loss.item() ** 0.5:.2f}")
    print(log)

    with torch.inference_mode():
        test = torch.randn(2000, WIDTH)
        logits = teacher(weights, ab.convert(test, "jax"))
        agree = student(test).argmax(1) == ab.convert(logits.argmax(1), "torch")
    print(f"they choose the same class for {agree.float().mean():.0%} of new inputs")


if __name__ == "__main__":
    main()
