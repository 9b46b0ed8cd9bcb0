"""Conversions after which the process is killed."""

from __future__ import annotations

from .case import case


@case(
    "crash",
    "a NumPy array with a negative step",
    doors="torch.from_dlpack(x)",
    bridge='ab.convert(x, "torch")',
    right="tensor([3., 2., 1., 0.], dtype=torch.float64)",
    needs="numpy torch",
    mended={"torch.from_dlpack(x)": ("torch", "2.14", "raises a RuntimeError")},
)
def torch_negative_step() -> None:
    """PyTorch has no negative strides.

    `torch.from_numpy` raises a ValueError; `torch.from_dlpack` aborts the process, which no `except` clause
    can catch ([pytorch#188023](https://github.com/pytorch/pytorch/issues/188023);
    [scikit-learn#34307](https://github.com/scikit-learn/scikit-learn/issues/34307) met it in PCA).
    Arrays of MLX, TVM-FFI and array-api-strict with a negative step have the same effect.
    """
    import numpy as np
    import torch

    x = np.arange(4.0)[::-1]
    print(torch.from_dlpack(x))


@case(
    "crash",
    "a file mapped read-only",
    doors=("torch.from_dlpack(x)", "torch.from_numpy(x)"),
    bridge='ab.convert(x, "torch")',
    right="tensor([1., 2., 3., 4.], dtype=torch.float64)",
    needs="numpy torch",
)
def torch_read_only_file() -> None:
    """PyTorch has no read-only tensors, and writing to pages that are read-only kills the process.

    `torch.from_numpy` warns of it, once a process, and its documentation calls such a write undefined
    ([pytorch#5442](https://github.com/pytorch/pytorch/issues/5442)). `torch.from_dlpack` says nothing:
    it ignores the flag by which NumPy marks the memory as read-only.
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
    doors="torch.frombuffer(m, dtype=torch.uint8)",
    bridge='ab.convert(m, "torch")',
    right="BufferError",
    needs="torch",
)
def torch_closed_map() -> None:
    """`torch.frombuffer` keeps the object alive, but not its buffer.

    It releases the buffer as soon as it has the address, so `close()` succeeds and the tensor reads
    pages that are no longer mapped. The same happens to `shm.buf` of a `multiprocessing.shared_memory` block.
    arraybridge's view holds the buffer, so `close()` raises an error, as Python intends.
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
    doors="np.from_dlpack(layer.weight)",
    bridge='ab.convert(layer.weight, "numpy")',
    right="1.6777216e+07",
    needs="numpy torch",
)
def torch_half_module() -> None:
    """PyTorch's DLPack export holds the tensor, not its memory.

    `layer.half()`, `layer.to(...)` and `t.data = ...` give the tensor other memory, and NumPy reads what
    was freed. `Tensor.numpy()` holds the memory, and so does arraybridge.
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
    doors="tf.experimental.dlpack.from_dlpack(x.__dlpack__())",
    bridge='ab.convert(x, "tensorflow")',
    right="[2. 3. 4. 5. 6. 7. 8. 9.]",
    needs="numpy tensorflow",
)
def tensorflow_unaligned() -> None:
    """TensorFlow takes memory at any address, and aborts at the first operation on it.

    Its kernels expect addresses that are multiples of 64 bytes, and the import does not check
    ([the pull request that added it](https://github.com/tensorflow/tensorflow/pull/36862) says so;
    [dgl#995](https://github.com/dmlc/dgl/issues/995)). `tf.constant(x)` copies, and is right.
    """
    import numpy as np
    import tensorflow as tf

    x = np.arange(9, dtype=np.float32)[1:]
    t = tf.experimental.dlpack.from_dlpack(x.__dlpack__())
    print((t + 1).numpy())
