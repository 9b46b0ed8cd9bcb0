"""Ray: 32 MB through its object store."""

from __future__ import annotations

import io
import os
import pickle
from collections.abc import Iterator

import jax.numpy as jnp
import numpy as np
import torch

import arraybridge as ab
import arraybridge.pickling

from ..goals import Case

ITEMS = 8 << 20


def cases() -> Iterator[Case]:
    """Compare Arrays and registered tensors with Ray's own serialization, including its zero-copy tensors."""
    import ray
    from ray._private.tensor_serialization_utils import zero_copy_tensors_reducer
    from ray.cloudpickle import CloudPickler

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray.init(
        num_cpus=1,
        object_store_memory=1 << 30,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="error",
        _node_ip_address="127.0.0.1",
    )
    x, a, j = torch.ones(ITEMS), np.ones(ITEMS, np.float32), jnp.ones(ITEMS)
    whole = torch.ones(1024, ITEMS // 512)
    half = whole[:, ::2]
    table = CloudPickler.dispatch_table

    def put_zero_copy(native):
        table[torch.Tensor] = zero_copy_tensors_reducer  # RAY_ENABLE_ZERO_COPY_TORCH_TENSORS=1
        try:
            return ray.put(native)
        finally:
            del table[torch.Tensor]

    def put_registered(native):
        with arraybridge.pickling.register("torch", "jax"):
            return ray.put(native)

    def get(ref):
        return lambda: ray.get(ref)

    try:
        own, zero = ray.put(x), put_zero_copy(x)
        arrays = [ray.put(ab.from_dlpack(native)) for native in (a, x, j)]
        tensor, of_jax = put_registered(x), put_registered(j)
        yield Case("get, Array over NumPy", get(arrays[0]), "ndarray", get(ray.put(a)), 1.6)
        yield Case("get, Array over PyTorch", get(arrays[1]), "Tensor", get(own), 0.02)
        yield Case("get, Array over PyTorch", get(arrays[1]), "zero-copy tensor", get(zero), 1.5)
        yield Case("get, Tensor, registered", get(tensor), "Tensor", get(own), 0.02)
        yield Case("get, Tensor, registered", get(tensor), "zero-copy tensor", get(zero), 1.5)
        yield Case("get, Array over JAX", get(arrays[2]), "jax.Array", get(ray.put(j)), 0.1)
        yield Case("get, jax.Array, registered", get(of_jax), "jax.Array", get(ray.put(j)), 0.1)
        read_only, plain = ray.get(tensor), ray.get(own)
        yield Case("its sum", lambda: read_only.sum(), "Tensor's", lambda: plain.sum(), 1.1)
        small = read_only[:4], plain[:4]
        yield Case("x + 1, 4 items", lambda: small[0] + 1, "Tensor's", lambda: small[1] + 1)
        array = ab.from_dlpack(x)
        yield Case(
            "put, Array over PyTorch", lambda: ray.put(array), "Tensor", lambda: ray.put(x), 0.5
        )
        yield Case(
            "put, Tensor, registered",
            lambda: put_registered(x),
            "zero-copy tensor",
            lambda: put_zero_copy(x),
            1.2,
        )
        yield Case(
            "put, every second column, registered",
            lambda: put_registered(half),
            "zero-copy tensor",
            lambda: put_zero_copy(half),
            1.0,
        )
        yield Case(
            "put, every second column, registered",
            lambda: put_registered(half),
            "the whole, gaps too",
            lambda: put_registered(whole),
        )
    finally:
        ray.shutdown()
    bfloats = ab.from_dlpack(x.bfloat16())
    yield Case(
        "pickled out of band, bfloat16", lambda: dumped(bfloats), "NumPy's", lambda: dumped(a)
    )


def dumped(x: object) -> bytes:
    file, buffers = io.BytesIO(), []
    pickle.Pickler(file, 5, buffer_callback=buffers.append).dump(x)
    return file.getvalue()
