"""CUDA kernels without a GPU: their own source, interpreted in lockstep, checked and counted.

`launch` runs one `Plan` on bytes at made-up addresses, as `memory` lays them out. Every access is
checked as compute-sanitizer checks it, and more strictly: see `machine`. `transactions` counts what
the accesses of a warp become: sectors of 32 bytes, passes through shared memory.
"""

from .launch import launch, ops
from .machine import Machine
from .memory import Endless, Memory
from .values import Fault

__all__ = ["Endless", "Fault", "Machine", "Memory", "launch", "ops"]
