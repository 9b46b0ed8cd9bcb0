"""Conversions that return other numbers, and raise no error."""

from __future__ import annotations

from .case import case


@case(
    "wrong",
    "a JAX array of integers",
    own="torch.asarray(x)",
    ours='ab.convert(x, "torch")',
    right="tensor([[0, 1],\n        [2, 3]], dtype=torch.int32)",
    needs="torch jax",
)
def torch_asarray_of_jax() -> None:
    """The bytes are read as float32, along one axis. PyTorch 2.15 reads the right dtype, but still one axis.

    `torch.asarray` finds a buffer, and ignores its format and shape. `torch.as_tensor(x)` is right.
    https://github.com/pytorch/pytorch/issues/188128 reports it for booleans of array-api-strict; any
    buffer of another dtype is affected.
    """
    import jax.numpy as jnp
    import torch

    x = jnp.arange(4).reshape(2, 2)
    print(torch.asarray(x))


@case(
    "wrong",
    "a buffer that is filled again for the next batch",
    own=("jax.device_put(buffer)", "jnp.array(buffer)"),
    ours='ab.convert(buffer, "jax")',
    right="[0.0, 1.0, 2.0, 3.0]",
    needs="numpy jax",
    mended={"jnp.array(buffer)": ("jax", "0.12", "reads the buffer before it returns")},
    sometimes=True,
    shown=True,
)
def jax_reused_buffer() -> None:
    """JAX may read the buffer after the call returns, or share it ([jax#37830](https://github.com/jax-ml/jax/issues/37830)).

    `jnp.array` copies (https://github.com/jax-ml/jax/pull/899), but before JAX 0.12 it may return before
    it has read a large array. Call `block_until_ready()` on the result before you write to the buffer.
    """
    import jax
    import jax.numpy as jnp
    import numpy as np

    buffer = np.zeros(1_000_000, np.float32)
    batches = []
    for i in range(4):
        buffer[:] = i
        batches.append(jax.device_put(buffer))
    print([float(batch[-1]) for batch in batches])


@case(
    "wrong",
    "the imaginary part of a conjugated tensor",
    own=("np.from_dlpack(t)", "np.from_dlpack(tvm_ffi.from_dlpack(t))"),
    ours='ab.convert(t, "numpy")',
    right="[-2. -4.]",
    needs="numpy torch tvm_ffi",
)
def torch_negative_bit() -> None:
    """PyTorch negates lazily, by a bit that its export ignores: the sign is lost.

    DLPack has no such bit. The sign is lost in NumPy, TensorFlow, Paddle, MLX, Warp, Arrow and TVM-FFI.
    `Tensor.numpy()` raises an error that names the function to call; arraybridge applies the sign as it
    copies.
    """
    import numpy as np
    import torch
    import tvm_ffi

    t = torch.tensor([1 + 2j, 3 + 4j]).conj().imag
    print(np.from_dlpack(t))


@case(
    "wrong",
    "a conjugated tensor",
    function="tvm_ffi.from_dlpack",
    own="np.from_dlpack(tvm_ffi.from_dlpack(t))",
    ours='ab.convert(t, "numpy")',
    right="[1.-2.j 3.-4.j]",
    needs="numpy torch tvm_ffi",
)
def tvm_ffi_conjugate() -> None:
    """PyTorch conjugates lazily, by a bit that TVM-FFI ignores.

    PyTorch's DLPack export refuses conjugated tensors. Its C exchange API, which TVM-FFI uses, is made to
    be fast and leaves such checks to its callers. `mx.array(t)` loses the conjugation too.
    """
    import numpy as np
    import torch
    import tvm_ffi

    t = torch.tensor([1 + 2j, 3 + 4j]).conj()
    print(np.from_dlpack(tvm_ffi.from_dlpack(t)))


@case(
    "wrong",
    "big-endian integers",
    own="pa.Tensor.from_numpy(x)",
    ours='ab.convert(x, "pyarrow")',
    right="[1 2 3]",
    needs="numpy pyarrow",
)
def arrow_big_endian() -> None:
    """The byte order is ignored.

    Files from instruments and networks are often big-endian. `pa.array(x)` refuses them
    (https://github.com/apache/arrow/pull/3648).
    """
    import numpy as np
    import pyarrow as pa

    x = np.array([1, 2, 3], dtype=">i4")
    print(pa.Tensor.from_numpy(x).to_numpy())


@case(
    "wrong",
    "big-endian integers",
    own="ort.OrtValue.ortvalue_from_numpy(x)",
    ours='ab.convert(x, "onnxruntime")',
    right="[1 2 3]",
    needs="numpy onnxruntime",
)
def onnxruntime_big_endian() -> None:
    """The byte order is ignored."""
    import numpy as np
    import onnxruntime as ort

    x = np.array([1, 2, 3], dtype=">i4")
    value = ort.OrtValue.ortvalue_from_numpy(x)
    print(value.numpy())


@case(
    "wrong",
    "big-endian integers",
    own="ov.Tensor(x)",
    ours='ab.convert(x, "openvino")',
    right="[1 2 3]",
    needs="numpy openvino",
)
def openvino_big_endian() -> None:
    """The byte order is ignored."""
    import numpy as np
    import openvino as ov

    x = np.array([1, 2, 3], dtype=">i4")
    print(ov.Tensor(x).data)


@case(
    "wrong",
    "a slice of an MLX array",
    own="paddle.from_dlpack(x)",
    ours='ab.convert(x, "paddle")',
    right="[3 4 5]",
    needs="mlx.core paddle",
)
def paddle_offset() -> None:
    """The offset of the slice is ignored: the result has other elements.

    MLX exports a slice as an address and an offset in bytes, and by DLPack's definition the first element
    is at their sum. Other libraries have had the same defect
    (https://github.com/NVIDIA/cuda-python/issues/2592, https://github.com/pytorch/pytorch/pull/168193).
    """
    import mlx.core as mx
    import paddle

    x = mx.arange(10)[3:6]
    print(paddle.from_dlpack(x).numpy())


@case(
    "wrong",
    "a slice of an MLX array",
    own="wp.from_dlpack(x)",
    ours='ab.convert(x, "warp")',
    right="[3 4 5]",
    needs="mlx.core warp",
)
def warp_offset() -> None:
    """The offset of the slice is ignored ([warp#1573](https://github.com/NVIDIA/warp/pull/1573)).

    dpnp ignores it as well.
    """
    import mlx.core as mx
    import warp as wp

    wp.config.log_level = wp.LOG_ERROR
    wp.init()
    x = mx.arange(10)[3:6]
    print(wp.from_dlpack(x).numpy())


@case(
    "wrong",
    "a matrix with a negative step",
    own="paddle.from_dlpack(x)",
    ours='ab.convert(x, "paddle")',
    right="[[2. 1. 0.]\n [5. 4. 3.]]",
    needs="numpy paddle",
    sometimes=True,
)
def paddle_negative_step() -> None:
    """Paddle accepts the negative step, but `numpy()` of the tensor reads other memory.

    The numbers differ from run to run. `paddle.to_tensor(x)` copies, and is right.
    """
    import numpy as np
    import paddle

    x = np.arange(6, dtype=np.float32).reshape(2, 3)[:, ::-1]
    print(paddle.from_dlpack(x).numpy())


@case(
    "wrong",
    "unsigned 16-bit integers",
    own="paddle.to_tensor(x)",
    ours='ab.convert(x, "paddle")',
    right="[  1.   2. 300.]",
    needs="numpy paddle",
)
def paddle_uint16() -> None:
    """The bits are read as bfloat16, by design ([Paddle#34927](https://github.com/PaddlePaddle/Paddle/issues/34927)).

    NumPy lacks bfloat16, and Paddle uses uint16 for its bits. 16-bit images and sensor data become
    numbers close to zero.
    """
    import numpy as np
    import paddle

    x = np.array([1, 2, 300], dtype=np.uint16)
    print(paddle.to_tensor(x).astype("float32").numpy())
