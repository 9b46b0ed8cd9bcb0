"""Compile the kernels to the library that `loader` opens: once, when the package is built.

`build` needs Numba, and a C compiler to link with. The same sources, Numba and linker make the same
bytes.
"""

from __future__ import annotations

import ctypes
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec

from arraybridge.kernels.cpu.loader import (
    FAMILIES,
    LIBRARY,
    Kind,
    digest,
    is_whole,
    machine,
    nest_symbol,
    symbol,
)
from arraybridge.kernels.cpu.plan_types import Key

#: What the kernels may call: the names begin so.
_C_LIBRARY = ("memcpy", "memmove", "memset", "llvm.")
_TRIPLES = {"linux": "{}-unknown-linux-gnu", "darwin": "{}-apple-macosx11.0.0"}
_LINK = {
    "linux": "-shared -nostdlib -s -Wl,--build-id=none,-z,noexecstack,-z,relro,-z,now".split(),
    "darwin": "-dynamiclib -Wl,-install_name,@rpath/_kernels.dylib".split(),
}


def keys(vector: int) -> list[Key]:
    """Return every kernel that ``plan.plan`` can choose for vectors of so many bytes."""
    found = [Key("runs"), *(Key("items", width) for width in range(33))]
    for width in (1, 2, 4, 8, 16):
        found += [Key("reverse", width), Key("fill", width)]
        sides = (side for side in (2, 4, 8, 16, 32, 64) if 4 <= side * width <= vector)
        found += [Key("tile", width, side) for side in sides]
        for parts in (2, 3, 4) if width < 16 else ():
            found.append(Key("merge", width, parts))
            found += [Key("split", width, parts, wanted) for wanted in range(1, parts + 1)]
    return [key._replace(vector=vector) for key in found]


def is_current(path: str = LIBRARY) -> bool:
    """Whether a library is made of these sources, for this kind of machine."""
    made_of = digest()
    if made_of is None or not os.path.exists(path) or not is_whole(path):
        return False
    with open(path, "rb") as library:
        return made_of.encode() + b"\0" in library.read()


def linker() -> list[str]:
    """Return the command of a C compiler: ``$CC``, the system's, or Zig's; or nothing."""
    told = shlex.split(os.environ.get("CC", ""))
    for command in [told] if told else [["cc"], ["gcc"], ["clang"]]:
        if shutil.which(command[0]):
            return command
    return [sys.executable, "-m", "ziglang", "cc"] if find_spec("ziglang") and not told else []


def build(path: str = LIBRARY) -> None:
    """Compile and link the library, and put it at `path` when it is whole.

    ImportError without Numba; OSError, RuntimeError or CalledProcessError if something else is
    missing or fails.
    """
    if find_spec("numba") is None:
        raise ImportError("Numba is not installed")
    if not linker():
        raise FileNotFoundError("there is no C compiler to link with, and ziglang is not installed")
    family = machine()
    if family not in FAMILIES or sys.platform not in _LINK:
        raise RuntimeError(f"arraybridge has no kernels for {sys.platform} on {family}")
    with tempfile.TemporaryDirectory(prefix="_kernels-", dir=os.path.dirname(path)) as folder:
        objects = [os.path.join(folder, f"{kind.vector}.o") for kind in FAMILIES[family]]
        for kind, at in zip(FAMILIES[family], objects, strict=True):
            with open(at, "wb") as file:
                file.write(object_code(kind, _TRIPLES[sys.platform].format(family)))
        made = os.path.join(folder, os.path.basename(path))
        cache = {f"ZIG_{where}_CACHE_DIR": folder for where in ("GLOBAL", "LOCAL")}
        command = [*linker(), *_LINK[sys.platform], "-o", made, *objects]
        subprocess.run(command, check=True, env=os.environ | cache)
        library = ctypes.CDLL(made, os.RTLD_NOW)  # OSError if a function is missing
        for kind in FAMILIES[family]:
            for key in keys(kind.vector):
                library[symbol(key)]
        os.replace(made, path)


def object_code(kind: Kind, triple: str) -> bytes:
    """Compile one set to object code that does not need Numba.

    Numba adds calls to report an exception, but a nest raises none: LLVM removes them once all
    other functions are internal to the module. RuntimeError if the code still calls functions other
    than the C library's. Each has the digest of its sources, which the linker takes once.
    """
    import llvmlite.binding as llvm
    from numba import config

    config.CPU_NAME, config.CPU_FEATURES = "generic", ""  # the same code wherever it is compiled
    from arraybridge.kernels.cpu import loops, microkernels

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(triple).create_target_machine(
        cpu=kind.cpu, features=kind.features, opt=3, reloc="pic"
    )
    text = digest() or ""
    text = f'@arraybridge_sources = weak_odr constant [{len(text) + 1} x i8] c"{text}\\00"'
    whole = llvm.parse_assembly(text)
    whole.triple, whole.data_layout = triple, str(target.target_data)
    parts = {symbol(key): microkernels.inner_code(key) for key in keys(kind.vector)}
    for merging in (False, True):
        name = nest_symbol(kind.vector, merging=merging)
        parts[name] = loops.nest_code(kind.vector, x86=triple.startswith("x86"), merging=merging)
    for name, (code, entry) in parts.items():
        part = llvm.parse_assembly(code)
        part.triple, part.data_layout = whole.triple, whole.data_layout
        for each in (*part.functions, *part.global_variables):
            if each.name == entry:
                each.name = name
            elif not each.is_declaration:
                each.linkage = "internal"
        whole.link_in(part)
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = options.slp_vectorization = False  # they are vectors already
    passes = llvm.create_pass_builder(target, options)
    passes.getModulePassManager().run(whole, passes)
    declared = [
        each.name
        for each in (*whole.functions, *whole.global_variables)
        if each.is_declaration and not each.name.startswith(_C_LIBRARY)
    ]
    if declared:
        raise RuntimeError(f"a kernel calls {declared}")
    made: bytes = target.emit_object(whole)
    return made
