"""Conversions that drop a mask, a unit, a gradient or digits."""

from __future__ import annotations

from .case import case


@case(
    "lost",
    "a masked array",
    own=("torch.as_tensor(x)", "torch.from_numpy(x)", "np.asarray(x)"),
    ours='ab.convert(x, "torch")',
    right="ConversionError",
    needs="numpy torch",
    shown=True,
)
def mask() -> None:
    """The mask is dropped.

    The value that stands for a missing number becomes a number again. `tf.constant`, `paddle.to_tensor`,
    `mx.array`, `wp.from_numpy` and `pa.Tensor.from_numpy` do the same. `jnp.asarray` raises an error, and
    `pa.array` makes masked elements null.
    """
    import numpy as np
    import torch

    x = np.ma.masked_equal([20.5, -999.0, 21.5], -999.0)
    print(torch.as_tensor(x))


@case(
    "lost",
    "a column with a null",
    function="duckdb.sql(...).torch",
    own='duckdb.sql(query).torch()["x"]',
    ours='ab.convert(duckdb.sql(query), "torch")',
    right="ConversionError",
    needs="torch duckdb",
)
def duckdb_null() -> None:
    """The null becomes 0.

    `fetchnumpy()` returns a masked array, which keeps the information.
    """
    import duckdb
    import torch

    query = "select * from (values (1), (null), (3)) numbers(x)"
    print(duckdb.sql(query).torch()["x"])


@case(
    "lost",
    "a quantity in kilometers",
    own=("torch.from_dlpack(x)", "np.from_dlpack(x)"),
    ours='ab.convert(x, "torch")',
    right="ConversionError",
    needs="numpy torch pint",
)
def unit() -> None:
    """The unit is dropped.

    Pint forwards `__dlpack__` to the array inside. `np.asarray(x)` drops the unit too, with a warning.
    """
    import numpy as np
    import pint
    import torch

    x = pint.UnitRegistry().Quantity(np.ones(2), "km")
    print(torch.from_dlpack(x))


@case(
    "lost",
    "64-bit integers",
    own=("jnp.asarray(x)", "jax.dlpack.from_dlpack(x)"),
    ours='ab.convert(x, "jax")',
    right="ConversionError",
    needs="numpy jax",
    shown=True,
)
def jax_int64() -> None:
    """Integers wrap around at 32 bits unless `jax_enable_x64` is set ([documented](https://docs.jax.dev/en/latest/default_dtypes.html)).

    JAX warns if you pass a 64-bit `dtype=`, but not if an array has that dtype. Identifiers and times in
    nanoseconds are affected.
    """
    import jax
    import jax.numpy as jnp
    import numpy as np

    x = np.array([2**31, 2**40 + 7])
    print(jnp.asarray(x))


@case(
    "lost",
    "float64",
    own="mx.array(x)",
    ours='ab.convert(x, "mlx")',
    right="array([0.1, 1e+300], dtype=float64)",
    needs="numpy mlx.core",
)
def mlx_float64() -> None:
    """The dtype becomes float32, and 1e300 becomes infinity.

    MLX's GPUs lack float64. On the CPU MLX has it, but only `dtype=` selects it.
    """
    import mlx.core as mx
    import numpy as np

    x = np.array([0.1, 1e300])
    print(mx.array(x))


@case(
    "lost",
    "integers and a null",
    own=("np.asarray(x)", "x.to_numpy(zero_copy_only=False)"),
    ours='ab.convert(x, "numpy")',
    right="ConversionError",
    needs="numpy pyarrow",
)
def arrow_null() -> None:
    """All integers become float64, which loses digits beyond 2**53.

    This is documented, and `x.to_numpy()` itself raises an error. `to_numpy` of polars and pandas behaves
    as `np.asarray` does.
    """
    import numpy as np
    import pyarrow as pa

    x = pa.array([9007199254740993, None])
    print(int(np.asarray(x)[0]))


@case(
    "lost",
    "a tensor that tracks gradients",
    function="tvm_ffi.from_dlpack",
    own="np.from_dlpack(tvm_ffi.from_dlpack(t))",
    ours='ab.convert(t, "numpy")',
    right="ConversionError",
    needs="numpy torch tvm_ffi",
)
def gradient() -> None:
    """A write changes the weight, and autograd does not notice.

    PyTorch refuses to export such a tensor by DLPack and by `numpy()`, but its C exchange API, which
    TVM-FFI uses, does not check. `mx.array(t)` takes it as well.
    """
    import numpy as np
    import torch
    import tvm_ffi

    t = torch.ones(3, requires_grad=True)
    x = np.from_dlpack(tvm_ffi.from_dlpack(t))
    x[:] = 0
    print(t, "version", t._version)
