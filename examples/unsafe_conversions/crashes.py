"""Conversions after which the process is killed."""

from __future__ import annotations

from .case import case


@case(
    "crash",
    "a NumPy array with a negative step",
    own="torch.from_dlpack(x)",
    ours='ab.convert(x, "torch")',
    right="tensor([3., 2., 1., 0.], dtype=torch.float64)",
    needs="numpy torch",
    mended={"torch.from_dlpack(x)": ("torch", "2.14", "raises a RuntimeError")},
    shown=True,
)
def torch_negative_step() -> None:
    """PyTorch has no negative strides, and the process aborts ([pytorch#188023](https://github.com/pytorch/pytorch/issues/188023)).

    `torch.from_numpy` raises a ValueError. No `except` clause catches the abort of `torch.from_dlpack`;
    scikit-learn's PCA ran into it (https://github.com/scikit-learn/scikit-learn/issues/34307). Arrays of
    MLX, TVM-FFI and array-api-strict with a negative step have the same effect.
    """
    import numpy as np
    import torch

    x = np.arange(4.0)[::-1]
    print(torch.from_dlpack(x))


@case(
    "crash",
    "a file mapped read-only",
    own=("torch.from_dlpack(x)", "torch.from_numpy(x)"),
    ours='ab.convert(x, "torch")',
    right="tensor([1., 2., 3., 4.], dtype=torch.float64)",
    needs="numpy torch",
)
def torch_read_only_file() -> None:
    """The tensor is writable, and a write kills the process ([pytorch#5442](https://github.com/pytorch/pytorch/issues/5442)).

    PyTorch has no read-only tensors. `torch.from_numpy` warns, once per process, and its documentation
    calls such a write undefined. `torch.from_dlpack` ignores NumPy's read-only flag silently.
    """
    import tempfile

    import numpy as np
    import torch

    with tempfile.NamedTemporaryFile() as file:
        np.arange(4.0).tofile(file.name)
        x = np.memmap(file.name, dtype="float64", mode="r")
        t = torch.from_dlpack(x)
        t += 1
        print(t)


@case(
    "crash",
    "a memory map that is closed later",
    own="torch.frombuffer(m, dtype=torch.uint8)",
    ours='ab.convert(m, "torch")',
    right="BufferError",
    needs="torch",
)
def torch_closed_map() -> None:
    """The tensor does not lock the buffer: `close()` succeeds, and a read kills the process.

    `torch.frombuffer` keeps the object alive, but releases its buffer as soon as it has the address. The
    same happens to `shm.buf` of a `multiprocessing.shared_memory` block. arraybridge's view holds the
    buffer, so `close()` raises a BufferError, as Python intends.
    """
    import mmap

    import torch

    m = mmap.mmap(-1, 4096)
    t = torch.frombuffer(m, dtype=torch.uint8)
    m.close()
    print(t[:3])


@case(
    "crash",
    "a module's weight, after which the module changes its dtype",
    own="np.from_dlpack(layer.weight)",
    ours='ab.convert(layer.weight, "numpy")',
    right="1.6777216e+07",
    needs="numpy torch",
    shown=True,
)
def torch_half_module() -> None:
    """The view keeps the tensor alive, not its memory, which `layer.half()` frees.

    `layer.to(...)` and `t.data = ...` replace the memory as well. `Tensor.numpy()` and arraybridge hold
    the memory itself.
    """
    import numpy as np
    import torch

    layer = torch.nn.Linear(4096, 4096, bias=False).requires_grad_(False)
    torch.nn.init.ones_(layer.weight)
    weight = np.from_dlpack(layer.weight)
    layer.half()
    print(weight.sum())


@case(
    "crash",
    "a slice that does not begin at a multiple of 64 bytes",
    own="tf.experimental.dlpack.from_dlpack(x.__dlpack__())",
    ours='ab.convert(x, "tensorflow")',
    right="[2. 3. 4. 5. 6. 7. 8. 9.]",
    needs="numpy tensorflow",
)
def tensorflow_unaligned() -> None:
    """TensorFlow needs aligned memory, [does not check](https://github.com/tensorflow/tensorflow/pull/36862), and aborts at the first operation.

    Its kernels expect addresses that are multiples of 64 bytes (https://github.com/dmlc/dgl/issues/995).
    `tf.constant(x)` copies, and is right.
    """
    import numpy as np
    import tensorflow as tf

    x = np.arange(9, dtype=np.float32)[1:]
    t = tf.experimental.dlpack.from_dlpack(x.__dlpack__())
    print((t + 1).numpy())
