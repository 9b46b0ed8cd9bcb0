"""PyTorch and JAX inputs for ONNX Runtime, and tensors as outputs, without a copy.

    python examples/inference_onnxruntime.py

It prints the route of every conversion. Needs torch, jax and onnxruntime.
"""

from __future__ import annotations

from typing import Any

import jax
import onnxruntime
import torch

import arraybridge as ab
from arraybridge.typing import LibraryName


def field(number: int, value: int | str | bytes) -> bytes:
    """Serialize a field of a protocol buffer; numbers and lengths are below 128."""
    if isinstance(value, int):
        return bytes([number << 3, value])
    body = value.encode() if isinstance(value, str) else value
    return bytes([number << 3 | 2, len(body)]) + body


def model() -> bytes:
    """Return an ONNX model, ``y = softmax(x @ w)``, as the bytes of its file."""
    kind = field(2, field(1, field(1, 1)))  # a tensor of float32
    nodes = (("MatMul", "xw", "z"), ("Softmax", "z", "y"))
    graph = field(2, "scores") + b"".join(
        field(1, b"".join(field(1, name) for name in read) + field(2, written) + field(4, operator))
        for operator, read, written in nodes
    )
    graph += b"".join(field(11, field(1, name) + kind) for name in "xw")
    graph += field(12, field(1, "y") + kind)
    return field(1, 10) + field(7, graph) + field(8, field(2, 21))


def converted(what: str, x: Any, to: LibraryName, **how: Any) -> Any:
    """Convert an array and print the route."""
    route = ab.explain(x, to, **how)
    print(f"{what}, {route.source} -> {route.target}: {route.kind}, {route.nbytes:,} bytes copied")
    return ab.convert(x, to, **how)


def main() -> None:
    """Run a model on arrays of two libraries, and take its output as tensors."""
    session = onnxruntime.InferenceSession(model())
    x = torch.rand(2048, 512)
    w = jax.random.normal(jax.random.key(0), (512, 256))
    feeds = {
        "x": converted("The input", x, "onnxruntime"),
        # JAX's arrays never change. A model only reads its inputs, so a view is safe.
        "w": converted("The weights", w, "onnxruntime", alias_readonly=True),
    }
    (result,) = session.run_with_ort_values(None, feeds)
    scores = converted("The output", result, "torch")
    print(f"the scores are a {scores.dtype} tensor of {tuple(scores.shape)}")
    print(f"their rows sum to between {scores.sum(1).min():.4f} and {scores.sum(1).max():.4f}")

    # Output into existing memory: a part of a larger tensor.
    batch = torch.zeros(2, 2048, 256)
    binding = session.io_binding()
    for name, value in feeds.items():
        binding.bind_ortvalue_input(name, value)
    binding.bind_ortvalue_output("y", converted("The second half", batch[1], "onnxruntime"))
    session.run_with_iobinding(binding)
    print(f"it has the same scores: {torch.equal(batch[1], scores)}")


if __name__ == "__main__":
    main()
