"""Pickles whose memory travels out of band."""

from __future__ import annotations

import io
import pickle

import jax.numpy as jnp
import ml_dtypes
import numpy as np

import arraybridge as ab


def dumped(x, pickler=pickle.Pickler):
    """A pickle of protocol 5, and its buffers."""
    buffers: list[pickle.PickleBuffer] = []
    file = io.BytesIO()
    pickler(file, 5, buffer_callback=buffers.append).dump(x)
    return file.getvalue(), [buffer.raw() for buffer in buffers]


def arrived(x, pickler=pickle.Pickler, memory=bytes):
    """What arrives of ``x``, and the memory in which it does."""
    stream, buffers = dumped(x, pickler)
    assert len(stream) < 500, "the memory is in the stream"
    there = [memory(buffer) for buffer in buffers]
    return pickle.loads(stream, buffers=there), there


def address(buffer):
    return np.frombuffer(buffer, np.uint8).ctypes.data


def values(x):
    if isinstance(x, ab.Array):
        x = x.native
    if not isinstance(x, np.ndarray):
        x = ab.convert(x, "numpy")
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def megabyte(library, dtype="float32", shape=(4, 1 << 16)):
    """A native array of about 1 MB: smaller ones Ray sends without its store."""
    x = (np.arange(np.prod(shape)) % 100).reshape(shape)
    if library == "jax":
        return jnp.asarray(x, dtype)
    x = x.astype(getattr(ml_dtypes, dtype, dtype))
    return ab.convert(x, library, copy=True)
