"""Inference runtimes and images: inputs and outputs of a model."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import onnxruntime as ort
import openvino as ov
import openvino.opset13 as operators
import torch
from PIL import Image

import arraybridge as ab

from ..goals import Case

sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.support.onnx import model

ITEMS = 8 << 20
SMALL = (3, 224, 224)


def cases() -> Iterator[Case]:
    """The small arrays have the size of an image: the call costs more than the bytes."""
    yield from _values()
    yield from _tensors()
    yield from _models()
    yield from _images()


def _values() -> Iterator[Case]:
    to, of = ab.convert, ort.OrtValue.ortvalue_from_numpy
    x = np.ones(SMALL, np.float32)
    t, j = torch.ones(SMALL), jnp.ones(SMALL)
    value = to(t, "onnxruntime")
    last = torch.ones(1024, 1024, 3).permute(2, 0, 1)
    yield Case(
        "NumPy to OrtValue", lambda: to(x, "onnxruntime"), "ortvalue_from_numpy", lambda: of(x), 1
    )
    yield Case(
        "torch to OrtValue", lambda: to(t, "onnxruntime"), "the same of x.numpy()",
        lambda: of(t.numpy()), 1,
    )  # fmt: skip
    yield Case(
        "JAX to OrtValue, alias_readonly", lambda: to(j, "onnxruntime", alias_readonly=True),
        "the same of numpy.asarray(x)", lambda: of(np.asarray(j)),
    )  # fmt: skip
    yield Case(
        "torch, channels last, to OrtValue", lambda: to(last, "onnxruntime"),
        "the same of x.contiguous().numpy()", lambda: of(last.contiguous().numpy()), 1,
    )  # fmt: skip
    yield Case(
        "OrtValue to torch", lambda: to(value, "torch"), "torch.from_dlpack",
        lambda: torch.from_dlpack(value), 1,
    )  # fmt: skip
    yield Case("OrtValue to NumPy", lambda: to(value, "numpy"), "x.numpy()", lambda: value.numpy())


def _tensors() -> Iterator[Case]:
    to = ab.convert
    x, t = np.ones(SMALL, np.float32), torch.ones(SMALL)
    tensor = to(t, "openvino")

    def shared(array: np.ndarray) -> ov.Tensor:
        return ov.Tensor(array, shared_memory=True)

    yield Case("NumPy to Tensor", lambda: to(x, "openvino"), "Tensor(shared)", lambda: shared(x))
    yield Case(
        "torch to Tensor", lambda: to(t, "openvino"), "the same of x.numpy()",
        lambda: shared(t.numpy()),
    )  # fmt: skip
    yield Case(
        "Tensor to torch", lambda: to(tensor, "torch"), "torch.from_numpy(x.data)",
        lambda: torch.from_numpy(tensor.data),
    )  # fmt: skip


def _models() -> Iterator[Case]:
    """A model that adds, so that copies show: 32 MB in, 32 MB out."""
    x, out = torch.ones(ITEMS), torch.ones(ITEMS)
    session = ort.InferenceSession(model([("Add", "x x", "y")], {"x": 1}, {"y": 1}))

    def run_shared() -> object:
        feeds = {"x": ab.convert(x, "onnxruntime")}
        return ab.convert(session.run_with_ort_values(None, feeds)[0], "torch")

    def run() -> object:
        return torch.from_numpy(session.run(None, {"x": x.numpy()})[0])

    binding = session.io_binding()

    def run_bound() -> object:
        binding.bind_ortvalue_input("x", ab.convert(x, "onnxruntime"))
        binding.bind_ortvalue_output("y", ab.convert(out, "onnxruntime"))
        session.run_with_iobinding(binding)
        return out

    yield Case("ONNX Runtime, 32 MB through a model", run_shared, "session.run", run, 1.1)
    yield Case("the same into a tensor that is there", run_bound, "session.run", run, 1.1)

    p = operators.parameter([ITEMS], np.float32, name="x")
    compiled = ov.compile_model(ov.Model([operators.add(p, p)], [p], "add"), "CPU")
    request = compiled.create_infer_request()

    def infer() -> object:
        given, written = ab.convert(x, "openvino"), ab.convert(out, "openvino")
        request.set_input_tensor(given)
        request.set_output_tensor(written)
        request.infer()
        return out

    yield Case(
        "OpenVINO, 32 MB through a model, into a tensor", infer, "compiled(x.numpy())",
        lambda: torch.from_numpy(compiled([x.numpy()])[0]), 1,
    )  # fmt: skip


def _images() -> Iterator[Case]:
    image = Image.new("RGB", (1920, 1080), (1, 2, 3))
    gray = np.ones((1080, 1920), np.uint8)
    first = torch.ones(3, 1080, 1920, dtype=torch.uint8)
    yield Case(
        "RGB image to torch", lambda: ab.convert(image, "torch"), "torch.from_numpy(numpy.array)",
        lambda: torch.from_numpy(np.array(image)), 1,
    )  # fmt: skip
    yield Case(
        "gray array to an image", lambda: ab.convert(gray, "pillow"), "Image.fromarray",
        lambda: Image.fromarray(gray), 1,
    )  # fmt: skip
    yield Case(
        "torch, channels first, to an RGB image",
        lambda: ab.convert(first.permute(1, 2, 0), "pillow"), "Image.fromarray",
        lambda: Image.fromarray(first.permute(1, 2, 0).contiguous().numpy()), 1,
    )  # fmt: skip
