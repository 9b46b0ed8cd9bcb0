"""How the array libraries are brought to live in one process.

Three of them depend on what was loaded before them, two on the environment. Tests call `prepare`
before they import any library, and import several in `IMPORT_ORDER`; the bridge itself changes
nobody's environment.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.metadata
import importlib.util
import os
from collections.abc import Iterable
from pathlib import Path

IMPORT_ORDER = ("dpnp", "paddle", "tensorflow")
"""Import names that must keep this order where they meet in one process.

dpnp needs a newer libtbb than the one that Paddle brings (imported second, it fails on an undefined
symbol of libmkl_tbb_thread); TensorFlow and Paddle each carry protobuf, and TensorFlow first ends
in a segmentation fault. Measured with dpnp 0.20.0, Paddle 3.3.1, TensorFlow 2.21.0; the others may
come before, between or after.
"""


def prepare() -> None:
    """Set what the installed libraries want of the environment, where the user has not set it."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")  # its note comes at every log level
    # intel-opencl-rt registers its driver nowhere that the loader looks: without it dpnp has no
    # device on a machine without an Intel GPU.
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        for file in importlib.metadata.files("intel-opencl-rt") or []:
            if file.name.startswith("libintelocl.so.2"):
                os.environ.setdefault("OCL_ICD_FILENAMES", str(Path(str(file.locate())).resolve()))
    # Paddle counts on the system's libgomp.so.1, which a bare Debian lacks; PyTorch brings one.
    torch = importlib.util.find_spec("torch")
    if torch is not None and torch.origin and importlib.util.find_spec("paddle") is not None:
        with contextlib.suppress(OSError):  # then Paddle says itself what it lacks
            ctypes.CDLL(str(Path(torch.origin).parent / "lib" / "libgomp.so.1"))


def in_import_order(names: Iterable[str]) -> list[str]:
    """Sort import names: those in `IMPORT_ORDER` first and in its order, the rest as they came."""
    rank = {name: i for i, name in enumerate(IMPORT_ORDER)}
    return sorted(names, key=lambda name: rank.get(name, len(rank)))
