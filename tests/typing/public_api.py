"""The public API as type checkers see it: mypy and, strictly, pyright (`make lint`); never run."""

from __future__ import annotations

from typing import Any, assert_type

import numpy as np
import numpy.typing as npt

import arraybridge as ab
import arraybridge.xp.array_api_strict as strict_xp
import arraybridge.xp.jax as jax_xp
import arraybridge.xp.numpy as xp
import arraybridge.xp.torch as torch_xp
from arraybridge.typing import LibraryName


def arrays(native: npt.NDArray[np.float32]) -> None:
    x = ab.from_dlpack(native)
    assert_type(x, ab.Array)
    assert_type(x + 1, ab.Array)
    assert_type(1.5 * x, ab.Array)
    assert_type(-x @ x.mT, ab.Array)
    assert_type(x < x, ab.Array)
    assert_type(x[0, ..., None], ab.Array)
    assert_type(list(x), list[ab.Array])
    x += 1
    x[0] = x[1] + 1j
    assert_type(x.shape, tuple[int, ...])
    assert_type((x.size, x.ndim, len(x)), tuple[int, int, int])
    assert_type((bool(x), int(x), float(x), complex(x)), tuple[bool, int, float, complex])
    assert_type(x.__index__(), int)
    assert_type(abs(+x) // 2 % 3**-x / x.T, ab.Array)
    assert_type((~x & 1 | 2 ^ x) << 1 >> x, ab.Array)
    assert_type(x.to_device(x.device, stream=None), ab.Array)
    assert_type(x.__dlpack_device__(), tuple[int, int])
    x.__dlpack__(stream=None, max_version=(1, 3), dl_device=(1, 0), copy=None)
    x.__array_namespace__(api_version="2025.12").zeros(x.shape, dtype=x.dtype)


def functions() -> None:
    x = xp.asarray([[1.0, 2.0]])
    assert_type(xp.sum(x, axis=0), ab.Array)
    assert_type(xp.where(x > 0, x, 0), ab.Array)
    values, counts = xp.unique_counts(x)
    assert_type(values, ab.Array)
    assert_type(counts, ab.Array)
    assert_type(xp.linalg.qr(x).Q, ab.Array)
    assert_type(xp.fft.fft(x), ab.Array)
    assert_type(xp.isdtype(x.dtype, "real floating"), bool)
    assert_type(xp.asarray([1], dtype=xp.float32, device="cpu"), ab.Array)
    assert_type(xp.pi, float)
    xp.__array_namespace_info__().capabilities()
    assert_type(xp.__array_api_version__, str)
    assert_type(xp.linalg.vector_norm(x), ab.Array)
    assert_type(torch_xp.mean(torch_xp.ones(3)), ab.Array)
    assert_type(jax_xp.linalg.svd(jax_xp.ones((2, 2))).S, ab.Array)
    assert_type(strict_xp.bitwise_and(strict_xp.ones(2, dtype=strict_xp.int8), 1), ab.Array)


def exchange(native: npt.NDArray[np.float32]) -> None:
    assert_type(ab.inspect(native), ab.TensorInfo)
    assert_type(ab.explain(native, "torch"), ab.Route)
    assert_type(ab.from_pointer(1, (2,), "float32", device="cpu"), ab.Array)
    ab.convert(native, "torch", device=ab.Device(1), copy=None)
    np.from_dlpack(ab.from_dlpack(native))
    ab.namespace(native).sum(native)
    with ab.num_threads(1):
        ab.copyto(native, ab.contiguous(native))


def names(native: npt.NDArray[np.float32], name: LibraryName, mine: Any) -> None:
    assert_type(ab.convert(native, "numpy", order="F"), np.ndarray[Any, Any])
    ab.convert(native, name)
    ab.convert(native, mine, casting="same_kind")
    ab.explain(native, name, order="K")
    assert_type(ab.convert(native, np), np.ndarray[Any, Any])
    assert_type(ab.asarray([1, 2], like="numpy", dtype="float32"), np.ndarray[Any, Any])
    assert_type(ab.asarray([1, 2], like=np), np.ndarray[Any, Any])
    assert_type(ab.asarray([1, 2], like=native), npt.NDArray[np.float32])
    assert_type(ab.contiguous(native), npt.NDArray[np.float32])
    assert_type(ab.contiguous(b"abc", out=native), npt.NDArray[np.float32])
    x = ab.from_dlpack(native)
    assert_type(ab.asarray([1, 2], like=x), ab.Array)
    assert_type(ab.asarray(native, like={"a": native}), Any)
    assert_type(ab.contiguous(x), ab.Array)
    assert_type(x.to("numpy"), np.ndarray[Any, Any])
    assert_type(x.to(np, copy=True), np.ndarray[Any, Any])
    assert_type(x.to(device="cpu"), ab.Array)
    assert_type(ab.xp.numpy.sum(ab.xp.numpy.ones(3)), ab.Array)
    assert_type(ab.xp.jax.linalg.qr(ab.xp.jax.ones((2, 2))).Q, ab.Array)
    ab.unify(native, like="jax", dtype=np.float32)
