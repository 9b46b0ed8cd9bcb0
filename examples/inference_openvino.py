"""PyTorch and JAX inputs for OpenVINO, and tensors as outputs, without a copy.

    python examples/inference_openvino.py

It prints the route of every conversion. Needs torch, jax and openvino.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import openvino as ov
import openvino.opset13 as operators
import torch

import arraybridge as ab
from arraybridge.typing import LibraryName


def model() -> ov.Model:
    """Return a model, ``y = softmax(x @ w)``."""
    x = operators.parameter([-1, 512], np.float32, name="x")
    w = operators.parameter([512, -1], np.float32, name="w")
    product = operators.matmul(x, w, transpose_a=False, transpose_b=False)
    return ov.Model([operators.softmax(product, axis=1)], [x, w], "scores")


def converted(what: str, x: Any, to: LibraryName, **how: Any) -> Any:
    """Convert an array and print the route."""
    route = ab.explain(x, to, **how)
    print(f"{what}, {route.source} -> {route.target}: {route.kind}, {route.nbytes:,} bytes copied")
    return ab.convert(x, to, **how)


def main() -> None:
    """Run a model on arrays of two libraries, and take its output as tensors."""
    request = ov.compile_model(model(), "CPU").create_infer_request()
    x = torch.rand(2048, 512)
    w = jax.random.normal(jax.random.key(0), (512, 256))
    # A request does not keep its tensors: they are kept here until it is done.
    feeds = [
        converted("The input", x, "openvino"),
        # JAX's arrays never change. A model only reads its inputs, so a view is safe.
        converted("The weights", w, "openvino", alias_readonly=True),
    ]
    for i, tensor in enumerate(feeds):
        request.set_input_tensor(i, tensor)
    request.infer()
    scores = converted("The output", request.get_output_tensor(), "torch")
    print(f"the scores are a {scores.dtype} tensor of {tuple(scores.shape)}")
    print(f"their rows sum to between {scores.sum(1).min():.4f} and {scores.sum(1).max():.4f}")

    # The next run would overwrite the output: give it other memory, a part of a larger tensor.
    batch = torch.zeros(2, 2048, 256)
    half = converted("The second half", batch[1], "openvino")
    request.set_output_tensor(half)
    request.infer()
    print(f"it has the same scores: {torch.equal(batch[1], scores)}")


if __name__ == "__main__":
    main()
