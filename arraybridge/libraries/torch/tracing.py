"""Whether PyTorch traces or transforms what is computed."""

from __future__ import annotations

import torch
from torch.autograd import forward_ad


def transformed() -> bool:
    """Whether values may not be looked at: inside torch.compile, or torch.func's transforms."""
    return torch.compiler.is_compiling() or torch._C._functorch.peek_interpreter_stack() is not None


def differentiated(x: torch.Tensor) -> bool:
    """Whether somebody may ask for a derivative by ``x``, backward or forward."""
    return x.requires_grad or transformed() or forward_ad._current_level >= 0
