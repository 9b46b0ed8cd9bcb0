"""Conversions that drop a mask, a unit, a gradient or digits."""

from __future__ import annotations

from .case import case


@case(
    "lost",
    "a masked array",
    doors=("torch.as_tensor(x)", "torch.from_numpy(x)", "np.asarray(x)"),
    bridge='ab.convert(x, "torch")',
    right="ConversionError",
    needs="numpy torch",
)
def mask() -> None:
    """The mask is dropped, and the value that stands for a missing number becomes a number again.

    `tf.constant`, `paddle.to_tensor`, `mx.array`, `wp.from_numpy` and `pa.Tensor.from_numpy` do the same;
    `jnp.asarray` refuses, and `pa.array` makes nulls of masked elements.
    """
    import numpy as np
    import torch

    x = np.ma.masked_equal([20.5, -999.0, 21.5], -999.0)
    print(torch.as_tensor(x))


@case(
    "lost",
    "a column with a null",
    call="duckdb.sql(...).torch",
    doors='duckdb.sql(query).torch()["x"]',
    bridge='ab.convert(duckdb.sql(query), "torch")',
    right="ConversionError",
    needs="torch duckdb",
)
def duckdb_null() -> None:
    """A null becomes zero. `fetchnumpy()` returns a masked array, which keeps the information."""
    import duckdb
    import torch

    query = "select * from (values (1), (null), (3)) numbers(x)"
    print(duckdb.sql(query).torch()["x"])


@case(
    "lost",
    "a quantity in kilometers",
    doors=("torch.from_dlpack(x)", "np.from_dlpack(x)"),
    bridge='ab.convert(x, "torch")',
    right="ConversionError",
    needs="numpy torch pint",
)
def unit() -> None:
    """Pint forwards `__dlpack__` to the array inside. `np.asarray(x)` drops the unit too, with a warning."""
    import numpy as np
    import pint
    import torch

    x = pint.UnitRegistry().Quantity(np.ones(2), "km")
    print(torch.from_dlpack(x))


@case(
    "lost",
    "integers of 64 bits",
    doors=("jnp.asarray(x)", "jax.dlpack.from_dlpack(x)"),
    bridge='ab.convert(x, "jax")',
    right="ConversionError",
    needs="numpy jax",
)
def jax_int64() -> None:
    """JAX has 32 bits unless `jax_enable_x64` is set: identifiers and times in nanoseconds wrap around.

    JAX [documents its default](https://docs.jax.dev/en/latest/default_dtypes.html), and warns where a 64-bit
    `dtype=` is asked for; where an array brings it along, it does not.
    """
    import jax
    import jax.numpy as jnp
    import numpy as np

    x = np.array([2**31, 2**40 + 7])
    print(jnp.asarray(x))


@case(
    "lost",
    "float64",
    doors="mx.array(x)",
    bridge='ab.convert(x, "mlx")',
    right="array([0.1, 1e+300], dtype=float64)",
    needs="numpy mlx.core",
)
def mlx_float64() -> None:
    """MLX makes float32 of float64, which its GPUs lack; on the CPU it has float64, if `dtype=` asks for it."""
    import mlx.core as mx
    import numpy as np

    x = np.array([0.1, 1e300])
    print(mx.array(x))


@case(
    "lost",
    "integers and a null",
    doors=("np.asarray(x)", "x.to_numpy(zero_copy_only=False)"),
    bridge='ab.convert(x, "numpy")',
    right="ConversionError",
    needs="numpy pyarrow",
)
def arrow_null() -> None:
    """One null makes float64 of all integers, which drops digits beyond 2**53.

    This is documented, and `x.to_numpy()` itself refuses. `to_numpy` of polars and pandas does the same.
    """
    import numpy as np
    import pyarrow as pa

    x = pa.array([9007199254740993, None])
    print(int(np.asarray(x)[0]))


@case(
    "lost",
    "a tensor that tracks gradients",
    call="tvm_ffi.from_dlpack",
    doors="np.from_dlpack(tvm_ffi.from_dlpack(t))",
    bridge='ab.convert(t, "numpy")',
    right="ConversionError",
    needs="numpy torch tvm_ffi",
)
def gradient() -> None:
    """PyTorch refuses to export such a tensor by DLPack and by `numpy()`; its C exchange API does not look.

    The weight is then changed behind autograd's back. `mx.array(t)` takes it as well.
    """
    import numpy as np
    import torch
    import tvm_ffi

    t = torch.ones(3, requires_grad=True)
    x = np.from_dlpack(tvm_ffi.from_dlpack(t))
    x[:] = 0
    print(t, "version", t._version)
