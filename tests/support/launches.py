"""Copies on the stub of a CUDA driver: what tests of its calls share."""

from __future__ import annotations

from arraybridge.kernels import cuda

from .stub_driver import Call, Stub

__all__ = ["DST", "FLAT", "POPPED", "PUSHED", "SRC", "TRANSPOSED", "copied", "queue_of"]

DST, SRC = 0x7F_0000_0000, 0x7E_0000_0000
#: Transposed; contiguous.
TRANSPOSED = ((300, 400), (1600, 4), (4, 1200), 4)
FLAT = ((300, 400), (1600, 4), (1600, 4), 4)
QUIET = {"cuCtxGetCurrent", "cuGetErrorName", "cuGetErrorString", "cuPointerGetAttribute"}
PUSHED, POPPED = "cuCtxPushCurrent", "cuCtxPopCurrent"


def copied(stub: Stub, layout=TRANSPOSED, **how) -> list[str]:
    """Copy; return what was called, save questions."""
    stub.calls.clear()
    cuda.copy(DST, SRC, *layout, **how)
    return [name for name in stub.names if name not in QUIET]


def queue_of(call: Call) -> int:
    """The stream of a launch or a copy."""
    return call.arguments[8 if call.name == "cuLaunchKernel" else -1]
