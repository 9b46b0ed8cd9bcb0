"""The array API standard over Arrays of PyTorch.

Autograd goes through Arrays as through tensors: of ``y = xp.sum(x * x)`` take
``y.native.backward()``. An Array goes in and out of ``torch.func.vmap``, ``jvp``, ``vjp``,
``jacrev`` and ``jacfwd``, as a pytree of one leaf; where torch insists on a tensor (the loss of
``grad`` and ``grad_and_value``) hand it ``x.native``::

    torch.func.grad(lambda x: xp.sum(x**2).native)(x)  # the gradient is an Array

``torch.compile`` traces both faces in one graph, all operators of Arrays but ``@``, which it
refuses for whatever is no tensor: write ``xp.matmul(x, y)`` there.

uint16, uint32 and uint64, and whatever else PyTorch has no kernel for, run in NumPy (in CuPy on
CUDA) on the same memory. A tensor that tracks gradients, or that a transformation traces, cannot:
that is a NotImplementedError.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import torch

from .corrections.torch import arrays, indexing
from .namespace import open_namespace

if TYPE_CHECKING:
    from .standard.everything import *  # noqa: F403
    from .standard.everything import __array_api_version__ as __array_api_version__
    from .standard.everything import __array_namespace_info__ as __array_namespace_info__


arrays.register(
    open_namespace(
        sys.modules[__name__],
        "torch",
        native_type=torch.Tensor,
        get=indexing.get,
        set=indexing.set,
        errors=(RuntimeError, OverflowError),
        mixes=False,
        in_place=indexing.of_shared_memory,
        members=arrays.MEMBERS,
    )
)
