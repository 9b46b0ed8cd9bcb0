"""setuptools, and what compiles the kernels: Numba, and Zig where there is no C compiler."""

import os
import platform
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403

HERE = Path(__file__).resolve().parent
#: Whether Numba has wheels. Elsewhere the package is built without kernels.
WHEELS = (
    sys.version_info < (3, 16)
    and sys.maxsize > 2**32
    and (
        (sys.platform, platform.machine()) == ("darwin", "arm64")
        or (platform.machine() in ("x86_64", "aarch64") and platform.libc_ver()[0] == "glibc")
    )
)


def kernels():
    """Import ``kernels/cpu/build.py`` alone: the package around it may need what is not here."""
    package = ModuleType("arraybridge")
    package.__path__ = [str(HERE / "arraybridge"), str(HERE)]  # a checkout, an sdist
    sys.modules.setdefault("arraybridge", package)
    return import_module("arraybridge.kernels.cpu.build")


def get_requires_for_build_wheel(config_settings=None):
    """Ask for Numba only if the library in the tree is not there, or of other sources."""
    needs = [] if kernels().is_current() else ["numba>=0.62", "llvmlite>=0.45"]
    needs += [] if kernels().linker() or "CC" in os.environ else ["ziglang"]
    needs = needs if WHEELS else []
    return [*build_meta.get_requires_for_build_wheel(config_settings), *needs]


get_requires_for_build_editable = get_requires_for_build_wheel
