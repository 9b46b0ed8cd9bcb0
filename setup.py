"""What pyproject.toml cannot express: what is compiled, and the README for a package index.

The C extension and the copy kernels are optional: what cannot be compiled is left out with a
warning, and a wheel without both fits every machine.

On a package index, relative links are broken. With a `Source` in `[project.urls]` they become
absolute, to the tag of this version; without one, their text stays and pictures are removed.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
import sysconfig
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from build_backend import kernels  # noqa: E402

PROJECT = tomllib.loads((HERE / "pyproject.toml").read_text("utf-8"))["project"]
RELATIVE = r"(?!https?://|mailto:|#)"
PICTURE = re.compile(
    rf"!\[[^]]*\]\({RELATIVE}[^)]*\)|<picture>.*?</picture>|<img\b[^>]*>", re.DOTALL
)
LINK = re.compile(rf"\[([^]]*)\]\({RELATIVE}[^)]*\)")


def description(text: str) -> str:
    """Return the README without relative links."""
    source = PROJECT.get("urls", {}).get("Source")
    if source is None:
        return LINK.sub(r"\1", PICTURE.sub("", text))
    source = source.rstrip("/")
    init = (HERE / "arraybridge" / "__init__.py").read_text("utf-8")
    (version,) = re.findall(r'^__version__ = "(.+)"$', init, re.MULTILINE)
    ref = "HEAD" if "dev" in version else f"v{version}"
    text = re.sub(rf"(!\[[^]]*\]\(){RELATIVE}", rf"\g<1>{source}/raw/{ref}/", text)
    text = re.sub(rf"""((?:src|srcset)=["']){RELATIVE}""", rf"\g<1>{source}/raw/{ref}/", text)
    text = re.sub(rf"""(href=["']){RELATIVE}""", rf"\g<1>{source}/blob/{ref}/", text)
    return re.sub(rf"(\]\(){RELATIVE}", rf"\g<1>{source}/blob/{ref}/", text)


# Free-threaded Pythons have no stable ABI: each version needs its own extension.
LIMITED = not sysconfig.get_config_var("Py_GIL_DISABLED")


class Build(build_ext):
    """Compile the C extension, with NumPy's headers, and the kernels; `made` says which."""

    made = frozenset[str]()

    def run(self) -> None:
        linker = kernels().linker()
        if not shutil.which((sysconfig.get_config_var("CC") or "cc").split()[0]) and linker:
            os.environ.setdefault("CC", shlex.join(linker))  # Zig's
        super().run()
        self.run_kernels()

    def build_extension(self, ext: Any) -> None:
        try:
            import numpy

            ext.include_dirs.append(numpy.get_include())
            super().build_extension(ext)
            Build.made |= {"extension"}
        except Exception as error:
            # The result of an earlier build would not match these sources.
            for folder in (self.build_lib, HERE):
                with suppress(OSError):
                    Path(folder, self.get_ext_filename(ext.name)).unlink()
            # setuptools warns and continues, as the extension is optional
            raise CompileError(f"{ext.name} is left out: {error}") from error

    def run_kernels(self) -> None:
        """Compile the kernels, unless those in the tree are of the same sources."""
        here = kernels().LIBRARY
        folder = Path(self.build_lib, "arraybridge", "kernels", "cpu")
        there = here if self.inplace else str(folder / Path(here).name)
        try:
            if not kernels().is_current(there):
                if kernels().is_current(here):
                    self.mkpath(str(folder))
                    self.copy_file(here, there)
                else:
                    self.mkpath(str(Path(there).parent))
                    kernels().build(there)
            Build.made |= {"kernels"}
        except Exception as error:
            with suppress(OSError):
                os.unlink(there)
            self.warn(f"the compiled kernels are left out, and NumPy will copy: {error}")


class Wheel(bdist_wheel):
    """Build first, then name the wheel after what was compiled."""

    def run(self) -> None:
        for ext in self.distribution.ext_modules:
            if sys.platform != "win32":  # debug data has local paths and doubles the size
                ext.extra_compile_args.append("-g0")
        self.run_command("build")
        if "extension" not in Build.made:
            self.py_limited_api = False
            if "kernels" not in Build.made:
                self.distribution.ext_modules, self.root_is_pure = [], True
        super().run()

    def get_tag(self) -> tuple[str, str, str]:
        tag = super().get_tag()
        return tag if "extension" in Build.made else ("py3", "none", tag[2])


# -pthread, as older C libraries have POSIX threads in a separate library.
FLAGS = [] if sys.platform == "win32" else ["-pthread", "-std=gnu11", "-fvisibility=hidden"]

extension = Extension(
    "arraybridge._native",
    sorted(str(path.relative_to(HERE)) for path in HERE.glob("arraybridge/native/*.c")),
    depends=["arraybridge/native/native.h"],
    define_macros=[("Py_LIMITED_API", "0x030B0000")] if LIMITED else [],
    py_limited_api=LIMITED,
    extra_compile_args=FLAGS,
    extra_link_args=FLAGS[:1],
    optional=True,
)

setup(
    ext_modules=[extension],
    cmdclass={"build_ext": Build, "bdist_wheel": Wheel},
    options={
        "bdist_wheel": {"py_limited_api": "cp311"} if LIMITED else {},
        # A path file, which type checkers follow, unlike setuptools' import hook.
        "editable_wheel": {"mode": "compat"},
    },
    long_description=description((HERE / "README.md").read_text("utf-8")),
    long_description_content_type="text/markdown",
)
