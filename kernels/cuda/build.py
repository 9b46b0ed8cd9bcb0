"""The code of a kernel: Numba makes PTX, the same for every device, and the driver a cubin.

The PTX is for an old compute capability, see `target`; the driver's linker compiles it for the
device. Cubins are stored on disk (`arraybridge.kernels.disk`), for later processes without Numba;
their file names do not depend on the driver, which loads the cubins of older ones. Only `ptx`
imports Numba and NVVM, without a driver.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import c_size_t, c_void_p, string_at

from arraybridge.kernels import disk
from arraybridge.kernels.cuda import driver
from arraybridge.kernels.cuda.context import Device, current, relaxed
from arraybridge.kernels.cuda.plan_types import THREADS, Plan

#: The oldest compute capability of CUDA 13, and the one from which devices copy asynchronously.
OLDEST, ASYNCHRONOUS = (7, 5), (8, 0)

#: The PTX version that the text is marked with, that of CUDA 12.0: older drivers reject the version
#: of a newer NVVM, whose features are unused. (ptxas checks that.)
ISA = (8, 0)

_PTX = 1  # CU_JIT_INPUT_PTX


def stored(plan: Plan, capability: tuple[int, int]) -> bytes | None:
    """Read the cubin of a plan's kernel from disk; None if it is missing or damaged."""
    return disk.read(_path(plan, capability))


def compiled(plan: Plan, device: Device) -> bytes:
    """Compile a plan's kernel for a device, and store it on disk.

    ImportError without Numba for CUDA, CUDAError if the driver cannot link it.
    """
    code = cubin(ptx(plan, device.capability), device)
    disk.write(_path(plan, device.capability), code)
    return code


def _path(plan: Plan, capability: tuple[int, int]) -> str | None:
    """Return the path of a kernel's file; None if its key cannot be determined."""
    name = f"cuda-{plan.kernel}-sm{capability[0]}{capability[1]}"
    return disk.path(name, plan.kernel, plan.constants, capability)


def target(plan: Plan, capability: tuple[int, int]) -> tuple[int, int]:
    """Return the compute capability of a kernel's PTX, for a device.

    Only ``plain`` gains from asynchronous copies (3.4 % on an H100).
    """
    return ASYNCHRONOUS if plan.kernel == "plain" and capability >= ASYNCHRONOUS else OLDEST


def entry(kernel: str) -> str:
    """Return the name of a kernel in its machine code, which profilers show."""
    return f"arraybridge_{kernel}"


def ptx(plan: Plan, capability: tuple[int, int] = OLDEST) -> str:
    """Compile the kernel of a plan for a device with Numba, to PTX with one function, `entry`.

    Its parameters are the two addresses and the numbers of the plan's three tuples. ImportError if
    Numba cannot compile: it is missing, only simulates, finds no NVVM, or does not work with the
    installed NumPy.
    """
    try:
        with _numpy_as_it_was(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # numba-cuda's, about a newer NumPy
            return _compiled(plan, target(plan, capability))
    except Exception as error:
        what = "" if isinstance(error, ImportError) else f"{type(error).__name__}: "
        raise ImportError(f"Numba cannot compile for CUDA here: {what}{error}") from error


@contextmanager
def _numpy_as_it_was() -> Iterator[None]:
    """Define ``numpy.row_stack`` for a ``with`` block.

    numba-cuda 0.30 needs it when it is imported; NumPy 2.5 has removed it.
    """
    import numpy as np

    names = vars(np)
    added = names.setdefault("row_stack", np.vstack) is np.vstack
    try:
        yield
    finally:
        if added:
            del names["row_stack"]


def _compiled(plan: Plan, capability: tuple[int, int]) -> str:
    from numba import config, cuda
    from numba.cuda import types

    from arraybridge.kernels.cuda.family import FAMILY

    if config.ENABLE_CUDASIM:
        raise ImportError("NUMBA_ENABLE_CUDASIM is set: Numba only simulates")
    from arraybridge.kernels.cuda.ops import OPS, OPS_ASYNC

    member = FAMILY[plan.kernel]
    parameters = (
        *(types.int64, types.int64),
        types.UniTuple(types.int32, len(plan.extents)),
        types.UniTuple(types.uint32, len(plan.divisions)),
        types.UniTuple(types.int64, len(plan.steps)),
    )
    # Regardless of NUMBA_DISABLE_JIT, which is for user code.
    disabled, config.DISABLE_JIT = config.DISABLE_JIT, 0
    try:
        text, _ = cuda.compile(
            member.factory(OPS if capability == OLDEST else OPS_ASYNC, *plan.constants),
            parameters,
            cc=capability,
            device=False,
            abi="numba",
            output="ptx",
            debug=False,
            lineinfo=False,
            launch_bounds=(THREADS, member.blocks),
        )
    finally:
        config.DISABLE_JIT = disabled
    return _plain(text, entry(plan.kernel))


def _plain(text: str, name: str) -> str:
    """Give the function a short name, and the text its PTX version."""
    (mangled,) = re.findall(r"\.entry\s+(\w+)", text)
    # Numba's environment of the function is a variable that nothing reads.
    lines = re.findall(r"^\.common \.global .*?(\w+);$", text, re.MULTILINE)
    for variable in lines:
        if len(re.findall(rf"\b{variable}\b", text)) == 1:
            text = re.sub(rf"^\.common \.global .*?{variable};\n", "", text, flags=re.MULTILINE)
    text = re.sub(rf"\b{mangled}(?=_param_\d+\b|\b)", name, text)
    return re.sub(r"^\.version (\d+)\.(\d+)", _version, text, flags=re.MULTILINE)


def _version(found: re.Match[str]) -> str:
    major, minor = min(ISA, (int(found[1]), int(found[2])))
    return f".version {major}.{minor}"


def cubin(text: str, device: Device) -> bytes:
    """Link PTX to the machine code of a device with its driver; CUDAError if that fails."""
    cuda = driver.installed()
    state, code, size = c_void_p(), c_void_p(), c_size_t()
    data = text.encode()
    with current(device), relaxed():
        cuda.cuLinkCreate(0, None, None, state)
        try:
            cuda.cuLinkAddData(state, _PTX, data, len(data) + 1, b"arraybridge.ptx", 0, None, None)
            cuda.cuLinkComplete(state, code, size)
            return string_at(code.value or 0, size.value)
        finally:
            cuda.cuLinkDestroy(state)
