"""How the array libraries are brought to live in one process.

Three of them depend on what was loaded before them, two on the environment. The command line,
the benchmarks and the tests call `prepare` before they import any library, and import several in
`IMPORT_ORDER`; the bridge itself changes nobody's environment.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.metadata
import importlib.util
import os
from collections.abc import Iterable, MutableMapping
from pathlib import Path

IMPORT_ORDER = ("dpnp", "paddle", "tensorflow")
"""Import names that must keep this order where they meet in one process.

dpnp needs a newer libtbb than the one that Paddle brings (imported second, it fails on an undefined
symbol of libmkl_tbb_thread); TensorFlow and Paddle each carry protobuf, and TensorFlow first ends
in a segmentation fault. Measured with dpnp 0.20.0, Paddle 3.3.1, TensorFlow 2.21.0; the others may
come before, between or after.
"""


def opencl_cpu_driver() -> Path | None:
    """Return the versioned file of the OpenCL CPU driver that intel-opencl-rt installs, or None."""
    try:
        files = importlib.metadata.files("intel-opencl-rt") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    for file in files:
        name = file.name
        if name.startswith("libintelocl.so.") and name.removeprefix("libintelocl.so.")[0].isdigit():
            return Path(str(file.locate())).resolve()
    return None


def variables() -> dict[str, str]:
    """Return the environment variables that the installed libraries want.

    intel-opencl-rt brings the ICD loader, but registers its driver nowhere that this loader looks:
    without ``OCL_ICD_FILENAMES`` dpnp has no device on a machine without an Intel GPU. TensorFlow's
    two silence its start-up notes; that on oneDNN comes at every log level unless oneDNN is off.
    """
    wanted = {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_ENABLE_ONEDNN_OPTS": "0"}
    driver = opencl_cpu_driver()
    if driver is not None:
        wanted["OCL_ICD_FILENAMES"] = str(driver)
    return wanted


def openmp_runtime() -> Path | None:
    """Return the libgomp.so.1 that PyTorch brings, for Paddle, which counts on the system's."""
    if importlib.util.find_spec("paddle") is None:
        return None
    torch = importlib.util.find_spec("torch")
    for folder in (torch.submodule_search_locations or ()) if torch is not None else ():
        file = Path(folder, "lib", "libgomp.so.1")
        if file.exists():
            return file
    return None


def prepare(environ: MutableMapping[str, str] | None = None) -> None:
    """Make this process, or the environment of another, ready for all installed libraries.

    Sets what `variables` names, where the user has not set it already. In this process it also
    loads `openmp_runtime`, as importing PyTorch first would: a bare Debian has no libgomp.so.1.
    Children inherit the environment, but call this for the rest.
    """
    target = os.environ if environ is None else environ
    for name, value in variables().items():
        target.setdefault(name, value)
    runtime = openmp_runtime() if environ is None else None
    if runtime is not None:
        with contextlib.suppress(OSError):  # then Paddle says itself what it lacks
            ctypes.CDLL(str(runtime))


def in_import_order(names: Iterable[str]) -> list[str]:
    """Sort import names: those in `IMPORT_ORDER` first and in its order, the rest as they came."""
    rank = {name: i for i, name in enumerate(IMPORT_ORDER)}
    return sorted(names, key=lambda name: rank.get(name, len(rank)))
