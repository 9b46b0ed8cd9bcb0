"""Views of memory that is freed under them: what they show is what others write there."""

from __future__ import annotations

from .case import case


@case(
    "freed",
    "a bytearray that grows later",
    own="torch.frombuffer(data, dtype=torch.uint8)",
    ours='ab.convert(data, "torch")',
    right="BufferError",
    needs="torch",
    sometimes=True,
)
def torch_growing_bytearray() -> None:
    """The tensor does not lock the buffer: `extend` moves the bytearray, and the tensor shows freed memory.

    `np.frombuffer` and `memoryview` hold the buffer, and `extend` raises a BufferError.
    """
    import torch

    data = bytearray([1]) * 64
    t = torch.frombuffer(data, dtype=torch.uint8)
    data.extend(bytes(100_000))
    others = [bytearray([7]) * 64 for _ in range(100)]
    print(t[:8])


@case(
    "freed",
    "a tensor that is resized later",
    own="np.from_dlpack(t)",
    ours='ab.convert(t, "numpy")',
    right="RuntimeError: Trying to resize storage that is not resizable",
    needs="numpy torch",
    sometimes=True,
    shown=True,
)
def torch_resized() -> None:
    """`resize_` frees the memory of the view.

    `Tensor.numpy()` makes the storage one that cannot be resized. arraybridge does the same.
    """
    import numpy as np
    import torch

    t = torch.arange(100_000.0)
    x = np.from_dlpack(t)
    t.resize_(1_000_000)
    others = [torch.full((100_000,), 7.0) for _ in range(10)]
    print(x[:4])


@case(
    "freed",
    "an OrtValue that nobody keeps",
    function="OrtValue.numpy",
    own="ort.OrtValue.ortvalue_from_numpy(np.arange(1000.0)).numpy()",
    ours='ab.convert(ort.OrtValue.ortvalue_from_numpy(np.arange(1000.0)), "numpy")',
    right="[0. 1. 2. 3.]",
    needs="numpy onnxruntime",
    sometimes=True,
)
def onnxruntime_numpy() -> None:
    """The array does not keep its memory alive.

    An OrtValue made from a NumPy array holds that array; the result of `numpy()` holds neither. Outputs
    of `session.run` do hold it (https://github.com/microsoft/onnxruntime/pull/20539).
    """
    import numpy as np
    import onnxruntime as ort

    x = ort.OrtValue.ortvalue_from_numpy(np.arange(1000.0)).numpy()
    others = [np.full(1000, 7.0) for _ in range(10)]
    print(x[:4])
