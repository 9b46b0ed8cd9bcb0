"""CUDA kernels without a GPU: their own source, interpreted in lockstep and checked.

`launch` runs one `Plan` on bytes at made-up addresses, as `memory` lays them out. Every access is
checked as compute-sanitizer checks it, and more strictly: see `machine`.
"""

from .launch import launch
from .machine import Machine
from .memory import Endless, Memory
from .values import Fault

__all__ = ["Endless", "Fault", "Machine", "Memory", "launch"]
