"""setuptools, and what compiles the kernels: Numba, and Zig where there is no C compiler."""

import platform
import sys
import sysconfig
from importlib import import_module
from pathlib import Path
from types import ModuleType

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403

HERE = Path(__file__).resolve().parent
GLIBC = platform.libc_ver()[0] == "glibc" and platform.machine() in ("x86_64", "aarch64")
FREE = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
#: Whether Numba has wheels. Elsewhere the package is built without kernels.
WHEELS = (3, 14 if FREE else 11) <= sys.version_info < (3, 16) and (
    GLIBC or (sys.platform, platform.machine()) == ("darwin", "arm64")
)


def kernels():
    """Import ``kernels/cpu/build.py`` alone: the package around it may need what is not here."""
    package = ModuleType("arraybridge")
    package.__path__ = [str(HERE / "arraybridge"), str(HERE)]  # a checkout, an sdist
    sys.modules.setdefault("arraybridge", package)
    return import_module("arraybridge.kernels.cpu.build")


def get_requires_for_build_wheel(config_settings=None):
    """Ask for Numba only if the library in the tree is not there, or of other sources."""
    needs = [] if kernels().is_current() or not WHEELS else ["numba>=0.62", "llvmlite>=0.45"]
    needs += [] if kernels().linker() else ["ziglang"]
    return [*build_meta.get_requires_for_build_wheel(config_settings), *needs]


get_requires_for_build_editable = get_requires_for_build_wheel
