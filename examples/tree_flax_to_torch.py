"""Move the parameters of a JAX model to PyTorch and back: names, layouts and values.

    python examples/tree_flax_to_torch.py

Needs torch and jax. The parameters are nested as Flax nests them; Flax itself is not needed.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch

import arraybridge as ab


def initial(widths: list[int]) -> dict[str, dict[str, jax.Array]]:
    """Return parameters of dense layers: kernels of (inputs, outputs), and biases."""
    keys = jax.random.split(jax.random.key(0), len(widths) - 1)
    return {
        f"Dense_{i}": {
            "kernel": jax.random.normal(key, (inputs, outputs)) / np.sqrt(inputs),
            "bias": jnp.full(outputs, 0.1 * i),
        }
        for i, (key, inputs, outputs) in enumerate(zip(keys, widths, widths[1:], strict=False))
    }


def apply(params: dict[str, dict[str, jax.Array]], x: jax.Array) -> jax.Array:
    """Compute the model in JAX."""
    *hidden, last = params.values()
    for layer in hidden:
        x = jax.nn.relu(x @ layer["kernel"] + layer["bias"])
    return x @ last["kernel"] + last["bias"]


def name_in_torch(path: str) -> str:
    """Map the path of a leaf: Dense_1.kernel is 2.weight, because ReLUs count too."""
    layer, _, leaf = path.removeprefix("params.Dense_").partition(".")
    return f"{2 * int(layer)}.{'weight' if leaf == 'kernel' else 'bias'}"


def main() -> None:
    """Convert, compare the outputs, and convert back."""
    widths = [8, 16, 16, 4]
    variables = {"params": initial(widths)}
    print(ab.tree.explain(variables, "torch"))

    # A kernel becomes the transposed view that torch.nn.Linear stores; no element moves.
    found = ab.tree.leaves(ab.tree.convert(variables, "torch"))
    state = {name_in_torch(path): x.T if x.ndim == 2 else x for path, x in found.items()}
    layers = [torch.nn.Linear(*pair) for pair in itertools.pairwise(widths)]
    model = torch.nn.Sequential(layers[0], torch.nn.ReLU(), layers[1], torch.nn.ReLU(), layers[2])
    model.load_state_dict(state, assign=True)

    x = np.linspace(-1, 1, 24, dtype=np.float32).reshape(3, 8)
    theirs = apply(variables["params"], ab.convert(x, "jax"))
    ours = model(ab.convert(x, "torch"))
    print("outputs agree:", np.allclose(theirs, ours.detach(), atol=1e-6))

    # A module is a tree of its state_dict(): its tensors, by their names.
    paths = {name_in_torch(path): path for path in found}
    back: dict[str, Any] = {}
    for name, x in ab.tree.convert(model, "jax").items():
        *outer, last = paths[name].split(".")  # nested again
        inner = functools.reduce(lambda inside, key: inside.setdefault(key, {}), outer, back)
        inner[last] = x.T if x.ndim == 2 else x
    same = jax.tree.all(jax.tree.map(np.array_equal, back, variables))
    print("the same bits after the round trip:", same)

    model[2].weight = model[4].weight = model[0].weight  # tied
    tied = ab.tree.convert(model, "numpy")
    print("tied weights stay one array:", tied["0.weight"] is tied["2.weight"])


if __name__ == "__main__":
    main()
