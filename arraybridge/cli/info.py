"""``info``: versions, the machine, installed libraries and missing ones."""

from __future__ import annotations

import argparse
import json
import os
import platform
from pathlib import Path
from typing import Any

import arraybridge as ab

from .. import native
from ..core.entry_points import declared
from ..core.registry import known_name
from ..kernels import cuda, disk
from ..kernels.cuda import context, driver
from . import screen
from .libraries import INSTALL, asked, described, present, unasked, version_of
from .screen import Status

VERSIONS = ("numpy", "numba", "llvmlite", "array_api_compat")
#: Optional packages that are not array libraries: purpose, package, requirement.
OPTIONAL = (
    ("bfloat16 and float8 in NumPy", "ml_dtypes", "ml_dtypes"),
    ("columns and frames of pandas", "pandas", "pandas"),
    ("columns and frames of polars", "polars", "polars"),
    ("copies on CUDA devices", "numba_cuda", "numba-cuda[cu12]"),
    ("colors and progress bars", "rich", "rich"),
)


def show(args: argparse.Namespace) -> int:
    """Print the tables; return the exit status, 3 if a named library is missing."""
    try:
        names = list(dict.fromkeys(map(known_name, args.libraries)))
    except ValueError as error:
        args.fail(str(error))
    if args.check and not names:
        names = [name for name in (*INSTALL, *declared()) if present(name)]
    libraries = {name: unasked(name) for name in (*INSTALL, *declared())}
    answers = asked(names)
    if args.json:
        answer = _machine() | {"installation": _installation(), "libraries": libraries | answers}
        print(json.dumps(answer, indent=1))
    elif names:
        print("\n\n".join(screen.table(described(*each)) for each in answers.items()))
    else:
        _print(_machine(), libraries)
    lacking = [name for name in names if answers[name]["state"] != "ready"]
    return Status.MISSING if args.libraries and lacking else Status.FINE


def _machine() -> dict[str, Any]:
    """Return the JSON part about the machine and the versions."""
    versions = {"python": platform.python_version(), "arraybridge": ab.__version__}
    versions |= {package: version_of(package) for package in VERSIONS}
    return {
        "versions": versions,
        "platform": f"{platform.system()} {platform.machine()}",
        "cpu": {"cores": os.cpu_count(), "threads": ab.get_num_threads()},
        "extension": {"file": native.C and native.C.__file__, "problem": native.MISSING},
        "cache": _cache(),
        "cuda": _cuda(),
        "optional": {
            package: {"for": what, "installed": present(package), "install": f"pip install '{pip}'"}
            for what, package, pip in OPTIONAL
        },
    }


def _installation() -> dict[str, Any]:
    """Return where the package is loaded from."""
    return {"folder": str(Path(ab.__file__).parent)}


def _cache() -> dict[str, Any]:
    folder = disk.folder()
    sizes = []
    try:
        with os.scandir(folder or os.devnull) as entries:
            sizes = [entry.stat().st_size for entry in entries if entry.name.endswith(".kernel")]
    except OSError:  # no kernel has been written yet
        pass
    return {"folder": folder, "kernels": len(sizes), "bytes": sum(sizes), "problem": disk.problem()}


def _cuda() -> dict[str, Any]:
    """Return the driver's version and the number of devices, without creating a context."""
    found: dict[str, Any] = {"driver": None, "devices": 0, "problem": driver.problem()}
    if found["problem"] is None:
        number = driver.installed().version
        found["driver"] = f"CUDA {number // 1000}.{number % 1000 // 10}"
        try:
            found["devices"] = context.count()
        except driver.CUDAError as error:
            found["problem"] = str(error)
    found["kernels"] = cuda.unavailable() is None
    return found


def _print(machine: dict[str, Any], libraries: dict[str, dict[str, Any]]) -> None:
    keys = ("versions", "cpu", "extension", "cache", "cuda")
    versions, cpu, extension, cache, gpu = (machine[key] for key in keys)
    kept = f"{cache['kernels']} kernels, {screen.size(cache['bytes'])}, in {cache['folder']}"
    of = _installation()
    lines = [f"arraybridge is loaded from {of['folder']}"]
    rows = [
        ("arraybridge", versions["arraybridge"]),
        *zip(("installation", *[""] * len(lines)), lines, strict=False),
        ("Python", f"{versions['python']}, {machine['platform']}"),
        ("requires", ", ".join(f"{package} {versions[package]}" for package in VERSIONS)),
        (
            "CPU",
            f"{_many(cpu['cores'], 'core')}; copies use up to {_many(cpu['threads'], 'thread')}",
        ),
        ("C extension", extension["file"] or f"not used, Python instead: {extension['problem']}"),
        ("disk cache", cache["problem"] or kept),
        ("GPU", gpu["problem"] or f"{_many(gpu['devices'], 'device')}, driver for {gpu['driver']}"),
    ]
    print(screen.table(rows))
    here = [(name, _version(name, **of)) for name, of in libraries.items() if of["version"]]
    here += [
        (of["for"], version_of(package))
        for package, of in machine["optional"].items()
        if of["installed"]
    ]
    print(f"\n{screen.table(here, ('library', 'version'))}")
    missing = [
        ("numba on CUDA devices" if name == "numba" else name, of["install"])
        for name, of in libraries.items()
        if not of["version"]
    ]
    missing += [
        (x["for"], x["install"]) for x in machine["optional"].values() if not x["installed"]
    ]
    if missing:
        print(f"\n{screen.table(missing, ('missing', 'install with'))}")
    print("\n" + screen.fold("To show what a library accepts: arraybridge info LIBRARY"))


def _version(name: str, version: str, distribution: str = "", **_: Any) -> str:
    """Add the distribution's name if it differs from the library's, or for an entry point."""
    distribution = distribution or INSTALL[name].partition("[")[0]
    same = distribution.replace("-", "_") == name and name in INSTALL
    return version if same else f"{version} ({distribution})"


def _many(count: int, thing: str) -> str:
    return f"{count} {thing}{'' if count == 1 else 's'}"
