"""The disk cache of CUDA kernels: cubins, which later processes load without Numba and NVVM.

File names do not depend on the driver's version, as a driver loads the cubins of older ones.
"""

from __future__ import annotations

import os
from functools import cache

from arraybridge.kernels import disk
from arraybridge.kernels.cuda import build
from arraybridge.kernels.cuda.context import Device
from arraybridge.kernels.cuda.plan_types import Plan


def found(plan: Plan, capability: tuple[int, int]) -> bytes | None:
    """Read the cubin of a plan's kernel from disk; None if it is missing or damaged."""
    return disk.read(_path(plan, capability))


def compiled(plan: Plan, device: Device) -> bytes:
    """Compile a plan's kernel for a device, and store it on disk.

    ImportError without Numba for CUDA, CUDAError if the driver cannot link it.
    """
    code = build.cubin(build.ptx(plan, device.capability), device)
    disk.write(_path(plan, device.capability), code)
    return code


def _path(plan: Plan, capability: tuple[int, int]) -> str | None:
    """Return the path of a kernel's file; None if its key cannot be determined."""
    try:
        dependencies = _dependencies()
    except (ImportError, OSError, ValueError):
        return None  # without sources (in a zip file) or versions old code would look current
    name = f"cuda-{plan.kernel}-sm{capability[0]}{capability[1]}"
    return disk.path(name, dependencies, plan.kernel, plan.constants, capability)


@cache
def _dependencies() -> tuple[object, ...]:
    """Return everything that all kernels depend on, except the environment."""
    here = os.path.dirname(os.path.abspath(__file__))
    return (*disk.dependencies(here, ("numba_cuda", "VERSION")), *_nvvm())


def _nvvm() -> list[str]:
    """List the NVVM releases installed next to numba-cuda, by their metadata."""
    from importlib.util import find_spec

    spec = find_spec("numba_cuda")
    if spec is None or spec.origin is None:
        return []
    here = os.path.dirname(os.path.dirname(spec.origin))
    return sorted(
        name
        for name in os.listdir(here)
        if name.startswith(("nvidia_nvvm", "nvidia_cuda_nvcc")) and name.endswith(".dist-info")
    )
