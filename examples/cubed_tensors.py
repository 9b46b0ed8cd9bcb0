"""Arrays larger than memory: cubed computes on chunks, with PyTorch.

    python examples/cubed_tensors.py

It prints what each chunk is. An environment variable selects the namespace; cubed itself is
unchanged: ``CUBED_BACKEND_ARRAY_API_MODULE=arraybridge.xp.torch``. Needs cubed and torch.
"""

from __future__ import annotations

import os
import tempfile
from typing import Any

import numpy as np

os.environ["CUBED_BACKEND_ARRAY_API_MODULE"] = "arraybridge.xp.torch"  # before cubed is imported
import cubed
import cubed.array_api as xp
from cubed.backend_array_api import namespace

seen: list[str] = []


def softplus(chunk: Any) -> Any:
    """Use PyTorch itself on a chunk."""
    import torch

    import arraybridge as ab

    seen.append(f"{type(chunk).__name__} of a {type(chunk.native).__name__} {chunk.shape}")
    return ab.from_dlpack(torch.nn.functional.softplus(chunk.native))


with tempfile.TemporaryDirectory() as folder:
    spec = cubed.Spec(work_dir=folder, allowed_mem="100MB")
    print("computed by", namespace.__name__)
    x = xp.asarray(np.linspace(-1, 1, 40_000).reshape(200, 200), chunks=(100, 100), spec=spec)
    y = cubed.map_blocks(softplus, x, dtype=x.dtype)
    result = xp.mean(xp.matmul(y, xp.permute_dims(y, (1, 0))), axis=0)
    values = result.compute()
    print("each chunk:", ", ".join(sorted(set(seen))), f"({len(seen)} of them)")
    print("the result:", type(values).__name__, values.shape, values.dtype)
    wanted = np.log1p(np.exp(np.linspace(-1, 1, 40_000).reshape(200, 200)))
    error = np.abs(np.asarray(values) - (wanted @ wanted.T).mean(axis=0)).max()
    print(f"largest difference from NumPy: {error:.1e}")
