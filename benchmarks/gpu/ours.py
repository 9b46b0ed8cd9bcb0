"""Check that arraybridge's kernels are measured, not a library's own copy."""

from __future__ import annotations


def kernels_needed() -> None:
    """Run one kernel. If that fails, libraries copy by themselves, and would pass for arraybridge.

    Raises
    ------
    ImportError
        With the reason.
    """
    import torch

    from arraybridge.kernels import cuda

    x, y = torch.rand(64, 48, device="cuda"), torch.empty(48, 64, device="cuda")
    cuda.copy(y.data_ptr(), x.data_ptr(), (48, 64), (256, 4), (4, 192), 4, 1, 0)
    torch.cuda.synchronize()
    why = cuda.unavailable()
    if why is not None:
        raise ImportError(f"arraybridge's kernels cannot run: {why}")
