"""Differentiable adapters of PyTorch and JAX, and what they are called with."""

import jax.numpy as jnp
import numpy as np

import arraybridge as ab

from .optional import optional

torch = optional("torch")


def of_jax(function, **terms):
    return ab.adapt("jax", differentiable=True, **terms)(function)


def of_torch(function, **terms):
    return ab.adapt("torch", differentiable=True, **terms)(function)


def tensor(*shape, dtype=None, requires_grad=True):
    generator = torch.Generator().manual_seed(sum(shape))
    dtype = dtype or torch.float64
    return torch.randn(*shape, dtype=dtype, generator=generator).requires_grad_(requires_grad)


def array(*shape, seed=0):
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape))
