"""Arrays of every library that lie, or are, otherwise than a conversion may expect."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import arraybridge as ab

from .optional import installed, optional
from .probe import aligned
from .producers import Managed, Producer

torch, jax, pa, strict = map(optional, ("torch", "jax", "pyarrow", "array_api_strict"))
ml_dtypes = optional("ml_dtypes")
Tensor: Any = torch.Tensor if installed("torch") else ()  # of which nothing is an instance


def grid(dtype):
    return np.arange(12).astype(dtype).reshape(3, 4)


def frozen(x):
    x.flags.writeable = False
    return x


def offset(nbytes, dtype):
    """A grid that starts `nbytes` past a multiple of 64 bytes."""
    return aligned(grid(dtype), nbytes)


def field(dtype, beside):
    """A grid among records: its strides may be no whole elements."""
    x = np.zeros((3, 4), [("a", dtype), ("b", beside)])["a"]
    x[...] = grid(dtype)
    return x


def views(x):
    yield "plain", x
    yield "transposed", x.T
    yield "stepped", x[:, ::2]
    yield "row", x[1]
    yield "0-d", x[1, 1, ...]
    yield "empty", x[:0]
    yield "4-d", x.reshape(1, 3, 2, 2)
    if isinstance(x, np.ndarray):
        yield "flipped", x[::-1]
        yield "mirrored", x[:, ::-1]
        yield "repeated", np.broadcast_to(x[0], (3, 4))
        yield "channels last", x.reshape(1, 2, 2, 3).transpose(0, 3, 1, 2)
    else:
        yield "repeated", x[0].expand(3, 4)
        yield "channels last", x.reshape(1, 3, 2, 2).contiguous(memory_format=torch.channels_last)


def numpys():
    for dtype in ("f4", "f8", "u1", "i8", "?", "c8", "f2", ">f4", ">i2", ">c8"):
        yield dtype, grid(dtype)
        yield f"{dtype} read-only", frozen(grid(dtype))
    yield "field", field("f4", "u1")  # strides of 5 bytes
    yield "wider field", field("f8", "f4")
    for dtype in "hifdFD":
        for nbytes in (1, 2, 4, 8, 64):
            yield f"{dtype} {nbytes} bytes off", offset(nbytes, dtype)


def odd_numpys():
    """Arrays of NumPy that a fast path could take for others than they are."""
    base = np.arange(24, dtype="f4").reshape(4, 6)
    yield "zero strides, writable with a warning", np.broadcast_arrays(base[0], base)[0]
    yield "contiguous, writable with a warning", np.broadcast_arrays(base, base[0])[0]
    yield "zero strides, writable", np.lib.stride_tricks.as_strided(base, (3, 6), (0, 4))
    yield "64-d", base.reshape((1,) * 62 + (4, 6))
    yield "empty, backwards", base[:0, ::-1]
    yield "odd steps over one element", np.lib.stride_tricks.as_strided(base, (1, 6), (3, 4))
    yield "a field of 24 bytes", np.zeros(3, [("a", "D"), ("b", "f8")])["a"]
    yield "a part of complex numbers", np.ones(3, "F").imag
    yield "a mask", np.ma.array(grid("f4"), mask=grid("f4") > 3)
    yield "a mask of none", np.ma.masked_array([1.0, 2.0])
    yield "a matrix", np.asmatrix(grid("f4"))
    yield "a record array", np.zeros(3).view(np.recarray)
    yield "a subclass", np.ones(3).view(type("Sub", (np.memmap,), {}))
    for dtype in "b B h H i I l L q Q e f d F D g >i4 >D M8[s] m8 O S3 U2 V3 i4,f4".split():
        yield f"dtype {dtype}", np.zeros(4, dtype)
    yield "a scalar", np.float32(3)
    big = np.arange(1 << 16, dtype=np.float32).reshape(128, 512)
    yield "large, flipped", big[::-1]
    yield "large, transposed", big.T
    yield "large, read-only", frozen(big.copy())


def tensors():
    kinds = "float32 float64 int32 uint8 bool complex64 bfloat16 uint16 float8_e5m2 complex32"
    for dtype in kinds.split():
        yield dtype, torch.from_numpy(grid("f4")).to(getattr(torch, dtype))


def marked(x):
    """What a tensor's memory does not show."""
    yield "", x
    if isinstance(x, Tensor):
        yield "negative", torch._neg_view(x)
        if x.is_complex():
            yield "conjugate", x.conj()
        if x.dtype is torch.complex64:
            yield "imaginary", x.conj().imag
        if x.dtype in (torch.float32, torch.complex64):
            yield "tracked", x.clone().requires_grad_()
            yield "tracked, transposed", x.clone().requires_grad_().mT if x.ndim > 1 else x


def odd_tensors():
    from torch._subclasses.fake_tensor import FakeTensorMode

    ones = torch.ones(3)
    yield "65-d", torch.ones((1,) * 65)
    yield "70-d", torch.ones((1,) * 68 + (2, 3))
    yield "computed with a gradient", torch.ones(3, requires_grad=True) * 2
    yield "parameter", torch.nn.Parameter(torch.ones(3, 4))
    yield "a parameter without gradient", torch.nn.Parameter(ones, requires_grad=False)
    yield "a subclass", ones.as_subclass(type("Sub", (torch.Tensor,), {}))
    yield "of inference", torch.inference_mode()(lambda: torch.ones(3))()
    yield "sparse", torch.eye(3).to_sparse()
    yield "quantized", torch.quantize_per_tensor(torch.ones(3, 4), 0.1, 0, torch.qint8)
    yield "meta", torch.ones(3, 4, device="meta")
    yield "zeros", torch._efficientzerotensor((3, 4))
    yield "large conjugate", torch.ones(256, 512, dtype=torch.complex64).T.conj()
    with FakeTensorMode():
        fake = torch.ones(3)
    yield "fake", fake


def others():
    jnp = jax.numpy
    for dtype in ("float32", "bool", "complex64", "bfloat16"):
        x = jnp.arange(12).reshape(3, 4).astype(dtype)
        yield f"JAX {dtype}", x
        yield f"JAX {dtype}, transposed", jax.jit(lambda x: x.T)(x)
    yield "JAX 0-d", jnp.ones(())
    yield "JAX empty", jnp.ones((0, 3))
    yield "JAX keys", jax.random.key(0)
    deleted = jnp.ones(5) + 1
    deleted.delete()
    yield "JAX deleted", deleted
    yield "chunks", pa.chunked_array([[1.0, 2.0], [3.0]])
    yield "one chunk", pa.chunked_array([[1, 2]])
    yield "nulls", pa.array([1.0, None])
    yield "bits", pa.array([True, False, True])
    yield "a slice of Arrow's", pa.array([1, 2, 3, 4])[1:3]
    yield "no elements of Arrow's", pa.array([], pa.float32())
    yield "text", pa.array(["a"])
    yield "days", pa.array([1, 2], pa.date32())
    yield "an Arrow tensor", pa.Tensor.from_numpy(np.asfortranarray(grid("f4")))
    yield "an empty Arrow tensor", pa.Tensor.from_numpy(np.empty((0, 3)))
    yield "a table", pa.table({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    row = strict.asarray([1.0], dtype=strict.float32)
    yield "strict, repeated", strict.broadcast_arrays(row, strict.asarray([1.0, 2.0]))[0]
    yield "strict, a field", strict.asarray(np.zeros(3, [("a", "D"), ("b", "f8")])["a"])
    yield "strict, elsewhere", strict.asarray([1.0], device=strict.Device("device1"))
    yield "bytes", b"abcd"


def sources() -> dict[str, Any]:
    """Return arrays by a name, those of arraybridge over the odd ones among them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of prototypes
        made = {}
        for dtype, whole in (*numpys(), *(tensors() if Tensor else ())):
            for layout, view in views(whole):
                made |= {f"{dtype} {layout} {mark}": x for mark, x in marked(view)}
        made |= {f"NumPy: {name}": x for name, x in odd_numpys()}
        made |= {f"PyTorch: {name}": x for name, x in (odd_tensors() if Tensor else ())}
        made |= dict(others())
        for name, x in (*made.items(),):
            if any(word in name for word in (":", "JAX", "strict", "conjugate", "flipped")):
                try:
                    made[f"Array of {name}"] = ab.from_dlpack(x)
                except ab.ConversionError:
                    continue
    return made


def handed_over(array: np.ndarray, versioned: bool, byte_offset: int) -> Managed:
    """The memory of a NumPy array in a hand-made struct; the legacy kind cannot say read-only."""
    managed = Managed(
        versioned,
        data=array.ctypes.data - byte_offset,
        byte_offset=byte_offset,
        shape=array.shape,
        strides=[stride // array.itemsize for stride in array.strides],
        dtype=ab.dlpack.DataType.named(array.dtype.name),
        flags=0 if array.flags.writeable else ab.dlpack.FLAG_READ_ONLY,
    )
    managed.array = array
    return managed


def elements(x: Any) -> np.ndarray | None:
    """Return an array's elements, by its library's own functions where that can; or None."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if isinstance(x, ab.Array):
            return np.asarray(x) if x.native is None else elements(x.native)
        if isinstance(x, Tensor):
            return _of_torch(x)
        if isinstance(x, (pa.Array, pa.ChunkedArray)):
            return x.to_numpy(zero_copy_only=False)
        if isinstance(x, (pa.Tensor, pa.Table)):
            return x.to_numpy() if isinstance(x, pa.Tensor) else None
        if isinstance(x, Producer):
            return x.managed.array
        if isinstance(x, bytes):
            return np.frombuffer(x, np.uint8)
        if type(x).__module__.startswith("tvm_ffi"):
            return _of_tvm_ffi(x)
        if type(x).__module__.partition(".")[0] in ("paddle", "tensorflow", "warp", "mlx"):
            return ab.convert(x, "numpy")
        return np.asarray(getattr(x, "_array", x))


def _of_tvm_ffi(x):
    """View a tensor of TVM-FFI by NumPy's array interface, and no code of arraybridge's."""
    name = str(x.dtype)
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    interface = {
        "version": 3,
        "data": (x.data_ptr() or 1, True),  # NumPy before 2.4 refuses a null pointer
        "shape": tuple(x.shape),
        "strides": tuple(stride * dtype.itemsize for stride in x.strides),
        "typestr": f"|V{dtype.itemsize}",
    }
    described = type("Described", (), {"__array_interface__": interface})()
    return np.asarray(described).view(dtype)


def _of_torch(x):
    if x.dtype is torch.complex32:
        x = x.to(torch.complex64)
    elif x.dtype in (torch.bfloat16, torch.float8_e5m2):
        x = x.to(torch.float32)
    return x.detach().resolve_conj().resolve_neg().numpy()
