"""One k-means for every library, written once by the array API standard.

    python examples/kmeans_five_libraries.py

Needs torch, jax, array-api-strict and apache-tvm-ffi.
"""

from __future__ import annotations

from typing import Any

import array_api_strict
import jax
import numpy as np
import torch
import tvm_ffi

import arraybridge as ab


def kmeans(points: Any, count: int, steps: int = 20) -> tuple[Any, Any]:
    """Find clusters of points, by Lloyd's algorithm.

    Parameters
    ----------
    points : array, shape (n, d)
        Of any library.
    count : int
        The number of clusters. Their first centers are points far from each other.

    Returns
    -------
    centers : array, shape (count, d)
    labels : array of integers, shape (n,)
        Both of the library of ``points``.
    """
    xp = ab.namespace(points)

    def distances(centers: Any) -> Any:
        return xp.sum((points[:, None, :] - centers[None, :, :]) ** 2, axis=-1)

    centers = points[:1, :]
    while centers.shape[0] < count:
        furthest = xp.argmax(xp.min(distances(centers), axis=1), keepdims=True)
        centers = xp.concat([centers, xp.take(points, furthest, axis=0)])
    clusters = xp.arange(count)
    for _ in range(steps):
        labels = xp.argmin(distances(centers), axis=1)
        members = xp.astype(labels[None, :] == clusters[:, None], points.dtype)
        centers = members @ points / xp.sum(members, axis=1, keepdims=True)
    return centers, labels


def main() -> None:
    """Cluster the same points in five libraries, and compare."""
    rng = np.random.default_rng(1)
    true = np.array([[0, 0], [4, 0], [0, 4], [4, 4]], np.float32)
    points = np.repeat(true, 250, axis=0) + rng.normal(size=(1000, 2)).astype("f4") * 0.5
    given = {
        "NumPy": points,
        "PyTorch": ab.convert(points, "torch"),
        "JAX": ab.convert(points, "jax"),
        "array-api-strict": array_api_strict.asarray(points),
        # A library without arithmetic of its own: an Array computes with a view of its memory.
        "TVM-FFI": ab.from_dlpack(tvm_ffi.from_dlpack(points)),
    }
    found = {name: kmeans(x, 4) for name, x in given.items()}
    reference = found["NumPy"][1]
    for name, (centers, labels) in found.items():
        same = np.array_equal(ab.convert(labels, "numpy"), reference)
        print(f"{name:17} {type(centers).__name__:11} same labels as NumPy: {same}")
    print("centers:", *(f"({x:.2f}, {y:.2f})" for x, y in found["NumPy"][0].tolist()))

    compiled = jax.jit(kmeans, static_argnums=1)
    print("compiled by jax.jit:", bool((compiled(given["JAX"], 4)[1] == found["JAX"][1]).all()))
    mapped = torch.func.vmap(lambda x: kmeans(x, 4)[0])(given["PyTorch"].reshape(2, 500, 2))
    print("mapped by torch.func.vmap:", tuple(mapped.shape))


if __name__ == "__main__":
    main()
