"""Tests for PyTorch's tracing and transformations."""

from __future__ import annotations

import torch
from torch.autograd import forward_ad


def transformed() -> bool:
    """Whether values may not be looked at: inside torch.compile, or torch.func's transforms."""
    return torch.compiler.is_compiling() or torch._C._functorch.peek_interpreter_stack() is not None


def differentiated(x: torch.Tensor) -> bool:
    """Whether a derivative with respect to ``x`` may be asked for, backward or forward."""
    return x.requires_grad or transformed() or forward_ad._current_level >= 0
