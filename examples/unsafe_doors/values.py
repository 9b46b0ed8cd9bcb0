"""Conversions that return other numbers, and say nothing."""

from __future__ import annotations

from .case import case


@case(
    "wrong",
    "a JAX array of integers",
    doors="torch.asarray(x)",
    bridge='ab.convert(x, "torch")',
    right="tensor([[0, 1],\n        [2, 3]], dtype=torch.int32)",
    needs="torch jax",
)
def torch_asarray_of_jax() -> None:
    """`torch.asarray` finds a buffer, and takes its bytes for the default dtype, float32, in one axis.

    PyTorch 2.15 takes the dtype, and still one axis.
    `torch.as_tensor(x)` is right. [pytorch#188128](https://github.com/pytorch/pytorch/issues/188128) reports
    it for booleans of array-api-strict; any buffer of another dtype is affected.
    """
    import jax.numpy as jnp
    import torch

    x = jnp.arange(4).reshape(2, 2)
    print(torch.asarray(x))


@case(
    "wrong",
    "a buffer that is filled again for the next batch",
    doors=("jax.device_put(buffer)", "jnp.array(buffer)"),
    bridge='ab.convert(buffer, "jax")',
    right="[0.0, 1.0, 2.0, 3.0]",
    needs="numpy jax",
    mended={"jnp.array(buffer)": ("jax", "0.12", "reads it before it returns")},
    sometimes=True,
)
def jax_reused_buffer() -> None:
    """`jax.device_put` may keep the array's memory, or read it after it has returned.

    What is written to the array afterwards is in the result ([jax#37830](https://github.com/jax-ml/jax/issues/37830)).
    `jnp.array` copies ([jax#899](https://github.com/jax-ml/jax/pull/899)), but before JAX 0.12 it may return before it has read
    a large array: calling `block_until_ready()` on the result before writing to the buffer helps.
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
    doors=("np.from_dlpack(t)", "np.from_dlpack(tvm_ffi.from_dlpack(t))"),
    bridge='ab.convert(t, "numpy")',
    right="[-2. -4.]",
    needs="numpy torch tvm_ffi",
)
def torch_negative_bit() -> None:
    """PyTorch negates lazily: a bit says that the numbers in memory are to be negated.

    DLPack has no such bit, PyTorch's export does not look at it, and the sign is lost: in NumPy,
    TensorFlow, Paddle, MLX, Warp, Arrow, TVM-FFI. `Tensor.numpy()` refuses and says what to call;
    arraybridge applies the sign as it copies.
    """
    import numpy as np
    import torch
    import tvm_ffi

    t = torch.tensor([1 + 2j, 3 + 4j]).conj().imag
    print(np.from_dlpack(t))


@case(
    "wrong",
    "a conjugated tensor",
    call="tvm_ffi.from_dlpack",
    doors="np.from_dlpack(tvm_ffi.from_dlpack(t))",
    bridge='ab.convert(t, "numpy")',
    right="[1.-2.j 3.-4.j]",
    needs="numpy torch tvm_ffi",
)
def tvm_ffi_conjugate() -> None:
    """PyTorch's DLPack export refuses conjugated tensors; its C exchange API, which TVM-FFI uses, does not.

    That interface is there to be fast, and leaves such checks to its callers. `mx.array(t)` loses the
    conjugation in the same way.
    """
    import numpy as np
    import torch
    import tvm_ffi

    t = torch.tensor([1 + 2j, 3 + 4j]).conj()
    print(np.from_dlpack(tvm_ffi.from_dlpack(t)))


@case(
    "wrong",
    "big-endian integers",
    doors="pa.Tensor.from_numpy(x)",
    bridge='ab.convert(x, "pyarrow")',
    right="[1 2 3]",
    needs="numpy pyarrow",
)
def arrow_big_endian() -> None:
    """Files from instruments and networks are often big-endian.

    `pa.Tensor.from_numpy` takes the bytes as they are; `pa.array(x)` refuses them
    ([arrow#3648](https://github.com/apache/arrow/pull/3648)).
    """
    import numpy as np
    import pyarrow as pa

    x = np.array([1, 2, 3], dtype=">i4")
    print(pa.Tensor.from_numpy(x).to_numpy())


@case(
    "wrong",
    "big-endian integers",
    doors="ort.OrtValue.ortvalue_from_numpy(x)",
    bridge='ab.convert(x, "onnxruntime")',
    right="[1 2 3]",
    needs="numpy onnxruntime",
)
def onnxruntime_big_endian() -> None:
    """ONNX Runtime, too, takes the bytes as they are."""
    import numpy as np
    import onnxruntime as ort

    x = np.array([1, 2, 3], dtype=">i4")
    value = ort.OrtValue.ortvalue_from_numpy(x)
    print(value.numpy())


@case(
    "wrong",
    "big-endian integers",
    doors="ov.Tensor(x)",
    bridge='ab.convert(x, "openvino")',
    right="[1 2 3]",
    needs="numpy openvino",
)
def openvino_big_endian() -> None:
    """So does OpenVINO."""
    import numpy as np
    import openvino as ov

    x = np.array([1, 2, 3], dtype=">i4")
    print(ov.Tensor(x).data)


@case(
    "wrong",
    "a slice of an MLX array",
    doors="paddle.from_dlpack(x)",
    bridge='ab.convert(x, "paddle")',
    right="[3 4 5]",
    needs="mlx.core paddle",
)
def paddle_offset() -> None:
    """MLX exports a slice as an address and an offset in bytes; Paddle does not read the offset.

    DLPack says that the first element is at the sum of both. Other libraries have had the same defect:
    [cuda-python#2592](https://github.com/NVIDIA/cuda-python/issues/2592),
    [pytorch#168193](https://github.com/pytorch/pytorch/pull/168193).
    """
    import mlx.core as mx
    import paddle

    x = mx.arange(10)[3:6]
    print(paddle.from_dlpack(x).numpy())


@case(
    "wrong",
    "a slice of an MLX array",
    doors="wp.from_dlpack(x)",
    bridge='ab.convert(x, "warp")',
    right="[3 4 5]",
    needs="mlx.core warp",
)
def warp_offset() -> None:
    """Warp does not read the offset either ([warp#1573](https://github.com/NVIDIA/warp/pull/1573)), nor does dpnp."""
    import mlx.core as mx
    import warp as wp

    wp.config.log_level = wp.LOG_ERROR
    wp.init()
    x = mx.arange(10)[3:6]
    print(wp.from_dlpack(x).numpy())


@case(
    "wrong",
    "a matrix with a negative step",
    doors="paddle.from_dlpack(x)",
    bridge='ab.convert(x, "paddle")',
    right="[[2. 1. 0.]\n [5. 4. 3.]]",
    needs="numpy paddle",
    sometimes=True,
)
def paddle_negative_step() -> None:
    """Paddle takes negative strides, but `numpy()` of such a tensor reads and returns other memory.

    What it shows differs from run to run. `paddle.to_tensor(x)` copies, and is right.
    """
    import numpy as np
    import paddle

    x = np.arange(6, dtype=np.float32).reshape(2, 3)[:, ::-1]
    print(paddle.from_dlpack(x).numpy())


@case(
    "wrong",
    "unsigned 16-bit integers",
    doors="paddle.to_tensor(x)",
    bridge='ab.convert(x, "paddle")',
    right="[  1.   2. 300.]",
    needs="numpy paddle",
)
def paddle_uint16() -> None:
    """Paddle takes NumPy's uint16 for the bits of bfloat16, a dtype that NumPy lacks.

    That is by design ([Paddle#34927](https://github.com/PaddlePaddle/Paddle/issues/34927)): images and
    sensor data of 16 bits become numbers close to zero.
    """
    import numpy as np
    import paddle

    x = np.array([1, 2, 300], dtype=np.uint16)
    print(paddle.to_tensor(x).astype("float32").numpy())
