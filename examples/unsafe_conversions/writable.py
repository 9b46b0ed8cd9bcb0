"""Conversions after which data that its library promises never to change does change."""

from __future__ import annotations

from .case import case


@case(
    "overwritten",
    "bytes",
    own="torch.from_dlpack(x)",
    ours='ab.convert(x, "torch")',
    right="b'arrays'",
    needs="numpy torch",
    shown=True,
)
def torch_over_bytes() -> None:
    """A write to the tensor changes the immutable `bytes` ([array-api#191](https://github.com/data-apis/array-api/issues/191)).

    DLPack has a flag for read-only memory. NumPy sets it; PyTorch does not read it, and leaves it to the
    user not to write. arraybridge copies; pass `alias_readonly=True` for the view.
    """
    import numpy as np
    import torch

    word = b"arrays"
    x = np.frombuffer(word, np.uint8)
    t = torch.from_dlpack(x)
    t[0] = ord("A")
    print(word)


@case(
    "overwritten",
    "a JAX array",
    own=("torch.from_dlpack(x)", "np.from_dlpack(tvm_ffi.from_dlpack(x))"),
    ours='ab.convert(x, "torch")',
    right="[0. 0. 0. 0.]",
    needs="numpy torch jax tvm_ffi",
)
def torch_over_jax() -> None:
    """A write to the tensor changes the immutable JAX array ([jax#19123](https://github.com/jax-ml/jax/issues/19123)).

    Compiled functions rely on immutability. JAX's documentation warns of this. Paddle's and Warp's imports
    do the same.
    """
    import jax.numpy as jnp
    import numpy as np
    import torch
    import tvm_ffi

    x = jnp.zeros(4)
    y = torch.from_dlpack(x)
    y += 1
    print(x)


@case(
    "overwritten",
    "a tensor that is written to later",
    own=("jax.dlpack.from_dlpack(t)", "jax.device_put(t.numpy())"),
    ours='ab.convert(t, "jax")',
    right="[1. 1. 1. 1.]",
    needs="torch jax",
    shown=True,
)
def jax_over_torch() -> None:
    """A later write to the tensor changes the immutable JAX array ([jax#37830](https://github.com/jax-ml/jax/issues/37830)).

    `from_dlpack` is there to share memory. `device_put` shares it too, if the address happens to be a
    multiple of 64 bytes. arraybridge copies for JAX, and shares with `copy=False`.
    """
    import jax
    import torch

    t = torch.ones(4)
    x = jax.dlpack.from_dlpack(t)
    t.zero_()
    print(x)


@case(
    "overwritten",
    "an Arrow array",
    own="torch.from_dlpack(x)",
    ours='ab.convert(x, "torch")',
    right="[1.0, 2.0, 3.0]",
    needs="torch pyarrow",
)
def torch_over_arrow() -> None:
    """A write to the tensor changes the immutable data, and every slice and table that shares it."""
    import pyarrow as pa
    import torch

    x = pa.array([1.0, 2.0, 3.0])
    t = torch.from_dlpack(x)
    t.zero_()
    print(x.to_pylist())


@case(
    "overwritten",
    "a column of a pandas frame",
    own='torch.from_dlpack(frame["x"].to_numpy())',
    ours='ab.convert(frame["x"], "torch")',
    right="[1.0, 2.0, 3.0] [1.0, 2.0, 3.0]",
    needs="torch pandas",
)
def torch_over_pandas() -> None:
    """A write to the tensor changes every frame that shares the column.

    Frames of pandas 3 share memory until one of them is written to, so `to_numpy()` is read-only.
    """
    import pandas as pd
    import torch

    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0]})
    backup = frame.copy(deep=False)
    t = torch.from_dlpack(frame["x"].to_numpy())
    t.zero_()
    print(frame["x"].tolist(), backup["x"].tolist())


@case(
    "overwritten",
    "a column of a polars frame",
    own='torch.from_dlpack(frame["x"].to_numpy())',
    ours='ab.convert(frame["x"], "torch")',
    right="[1.0, 2.0, 3.0]",
    needs="torch polars",
)
def torch_over_polars() -> None:
    """A write to the tensor changes the frame.

    `Series.to_torch()` copies, and is right.
    """
    import polars as pl
    import torch

    frame = pl.DataFrame({"x": [1.0, 2.0, 3.0]})
    t = torch.from_dlpack(frame["x"].to_numpy())
    t.zero_()
    print(frame["x"].to_list())


@case(
    "overwritten",
    "a read-only NumPy array",
    own="wp.array(x, copy=False)",
    ours='ab.convert(x, "warp")',
    right="[0. 1. 2.]",
    needs="numpy warp",
)
def warp_over_numpy() -> None:
    """Warp has no read-only arrays, and its write changes the memory.

    `wp.from_numpy(x)` copies, and is right. `wp.from_jax` shares, and lets Warp write to JAX's memory.
    """
    import numpy as np
    import warp as wp

    wp.config.log_level = wp.LOG_ERROR
    wp.init()
    x = np.arange(3.0)
    x.flags.writeable = False
    w = wp.array(x, copy=False)
    w.fill_(7)
    print(x)


@case(
    "overwritten",
    "a TensorFlow tensor",
    own="torch.from_dlpack(x)",
    ours='ab.convert(x, "torch")',
    right="[1. 2.]",
    needs="torch tensorflow",
)
def torch_over_tensorflow() -> None:
    """A write to the PyTorch tensor changes the immutable TensorFlow tensor.

    `x.numpy()` copies, `x.__dlpack__` shares.
    """
    import tensorflow as tf
    import torch

    x = tf.constant([1.0, 2.0])
    t = torch.from_dlpack(x)
    t.zero_()
    print(x.numpy())
