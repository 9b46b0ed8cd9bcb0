"""The driver's functions and numbers as they are declared here, against NVIDIA's cuda.h."""

from __future__ import annotations

import importlib.util
import re
from ctypes import POINTER, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p
from pathlib import Path

import pytest

from arraybridge.kernels.cuda import context, driver, launch


def find_header() -> Path | None:
    """The header that comes with the package nvidia-cuda-runtime."""
    spec = importlib.util.find_spec("nvidia")
    for folder in spec.submodule_search_locations or () if spec else ():
        for found in Path(folder).glob("cu*/include/cuda.h"):
            return found
    return None


HEADER = find_header()
needs_header = pytest.mark.skipif(HEADER is None, reason="no cuda.h: pip install the extra heavy")
TEXT = "" if HEADER is None else HEADER.read_text(errors="replace")


def plain(kind: str) -> str:
    """A type without its parameter's name: ``const char *``."""
    kind = re.sub(r"\s+", " ", kind.strip())
    name = re.search(r"\w+$", kind)
    if name and kind != name[0]:
        kind = kind[: name.start()]
    return kind.replace(" *", "*").strip()


VALUES = {
    "int": c_int,
    "unsigned int": c_uint,
    "size_t": c_size_t,
    "CUdevice": c_int,
    "CUdeviceptr": c_uint64,
    "CUresult": c_int,
    "void*": c_void_p,
    "const void*": c_void_p,
    "const char*": c_char_p,
    **dict.fromkeys(("CUjitInputType", "CUpointer_attribute", "CUdevice_attribute"), c_int),
    **dict.fromkeys("CUcontext CUstream CUevent CUfunction CUkernel CUlibrary".split(), c_void_p),
    "CUlinkState": c_void_p,
}


def of_c(kind: str) -> object:
    """The ctypes type of a type in C."""
    if kind in VALUES:
        return VALUES[kind]
    if kind.endswith("*"):
        inner = of_c(kind[:-1].strip())
        return POINTER(c_int if inner is None else inner)
    return c_int if re.fullmatch(r"CU\w+", kind) else None  # an enumeration


@needs_header
@pytest.mark.parametrize("name", driver.FUNCTIONS)
def test_function(name: str) -> None:
    symbol, types = driver.FUNCTIONS[name]
    declared = re.search(rf"^CUresult CUDAAPI\s+{name}\(([^;]*)\);", TEXT, re.MULTILINE)
    assert declared, "no such function"
    # The header's macros for the name: the compiler calls the newest version.
    told = re.search(rf"^#define {name}\s+(?:__CUDA_API_PTSZ\()?(\w+)", TEXT, re.MULTILINE)
    assert (told[1] if told else name) == symbol
    parameters = [plain(part) for part in declared[1].split(",") if part.strip() != "void"]
    expected = [of_c(kind) for kind in parameters]
    ours = list(types)
    for at, (mine, theirs) in enumerate(zip(ours, expected, strict=True)):
        if (mine, theirs) in ((c_char_p, c_void_p), (POINTER(c_void_p), POINTER(POINTER(c_int)))):
            ours[at] = theirs  # bytes are handed over as what they are
    assert ours == expected, parameters


NUMBERS = {
    "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR": context._MAJOR,
    "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR": context._MINOR,
    "CU_POINTER_ATTRIBUTE_MEMORY_TYPE": context._MEMORY_TYPE,
    "CU_POINTER_ATTRIBUTE_IS_MANAGED": context._IS_MANAGED,
    "CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL": context._DEVICE_ORDINAL,
    "CU_MEMORYTYPE_DEVICE": context._DEVICE,
    "CU_EVENT_DISABLE_TIMING": context._DISABLE_TIMING,
    "CU_STREAM_CAPTURE_MODE_RELAXED": context._RELAXED,
    "CUDA_ERROR_INVALID_VALUE": context._INVALID_VALUE,
    "CUDA_ERROR_NO_DEVICE": context._NO_DEVICE,
    "CUDA_ERROR_INVALID_DEVICE": context._INVALID_DEVICE,
    "CUDA_ERROR_INVALID_HANDLE": launch.INVALID_HANDLE,
    "CU_JIT_INPUT_PTX": 1,
    "CU_JIT_ERROR_LOG_BUFFER": 5,
    "CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES": 6,
}


@needs_header
@pytest.mark.parametrize("name", NUMBERS)
def test_number(name: str) -> None:
    declared = re.search(rf"\b{name}\s*=\s*(0x)?([0-9a-fA-F]+)", TEXT)
    if declared is None and name.startswith("CU_JIT"):  # counted from the one before
        pytest.skip("no number of its own")
    assert declared
    assert int(declared[2], 16 if declared[1] else 10) == NUMBERS[name]


@needs_header
@pytest.mark.parametrize(
    ("name", "stream"), [("LEGACY", context.LEGACY), ("PER_THREAD", context.PER_THREAD)]
)
def test_stream(name: str, stream: int) -> None:
    assert re.search(rf"#define CU_STREAM_{name}\s+\(\(CUstream\)0x{stream}\)", TEXT)
