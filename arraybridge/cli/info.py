"""``info``: versions, devices and what each library accepts, asked in a process of its own."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ..dispatch.registry import library_names, requirement_of
from .cases import DTYPES
from .matrix import environment, present, version_of, versions

PATIENCE_S = 120
_EIGHTS = [name for name in DTYPES if name.startswith("float8_")]


def gather() -> dict[str, Any]:
    """Everything that ``info`` shows; nothing is imported into this process."""
    here = [name for name in library_names() if present(name)]
    with ThreadPoolExecutor(2) as pool:
        libraries = dict(zip(here, pool.map(_probe, here), strict=True))
    for name in library_names():
        if name not in libraries:
            libraries[name] = {"state": "not installed", "install": f"pip install {_pip(name)}"}
    modules = ("numba", "llvmlite", "array_api_compat", "ml_dtypes")
    extra = {name: version_of(name) for name in modules}  # Numba's own, not that of its CUDA
    return {
        "versions": versions(["numpy"]) | {name: v for name, v in extra.items() if v is not None},
        "platform": f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPU cores",
        "libraries": {name: libraries[name] for name in library_names()},
    }


def _pip(name: str) -> str:
    return f"'{requirement_of(name)}'"


def _probe(name: str) -> dict[str, Any]:
    """What a child says of one library; a child that does not come back is an answer as well."""
    try:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "arraybridge.cli.probe", name],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            env=environment(),
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"state": f"hangs: no answer in {PATIENCE_S} s"}
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode == 0 and lines:
        return json.loads(lines[-1])
    noise = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    how = f"signal {-done.returncode}" if done.returncode < 0 else f"exit code {done.returncode}"
    return {"state": f"crashes on import ({how}): {noise[-1] if noise else 'no message'}"[:300]}


def show(*, as_json: bool = False) -> int:
    """Print what :func:`gather` finds."""
    if as_json:
        print(json.dumps(gather(), indent=1))
        return 0
    from rich.table import Table

    from .screen import screen

    console = screen()
    with console.status("importing each library in a process of its own"):
        found = gather()
    line = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    console.print(f"[bold]{line}[/]; {found['platform']}", highlight=False)
    table = Table(
        "library",
        "version",
        "devices",
        "takes as a view",
        "read-only",
        "dtypes",
        title="What each library accepts",
        caption="What it does not accept as a view is copied, a dtype that it lacks refused. JAX "
        "is shown with x64 off, its default. 'tested' is the version that the record was "
        "measured on, where that is another.",
        caption_justify="left",
    )
    for name, record in found["libraries"].items():
        table.add_row(name, *_row(record))
    console.print(table)
    return 0


def _row(record: dict[str, Any]) -> tuple[str, ...]:
    if "accepts" not in record:
        colour = "dim" if record["state"] == "not installed" else "red"
        text = record["state"]
        if "install" in record:
            text = f"{text}: {record['install']}"
        return ("-", "-", f"[{colour}]{text}[/]", "-", "-")
    accepts = record["accepts"]
    version = record["version"] or "?"
    if accepts["tested"] != version.partition("+")[0]:
        version += f"\n[dim]tested {accepts['tested']}[/]"
    return (
        version,
        "\n".join(record["devices"]),
        _views(accepts),
        "kept" if accepts["readonly"] else "copied",
        _dtypes(accepts["dtypes"]),
    )


def _views(accepts: dict[str, Any]) -> str:
    if accepts["copies"]:
        return "nothing: its import copies"
    strides = {
        "any": "any strides",
        "non-negative": "strides >= 0",
        "compact": "compact, axes in any order",
        "c": "C order",
    }.get(accepts["strides"], accepts["strides"])
    least, most = accepts["ndim"]
    parts = [strides, f"{least} to {most} dimensions"]
    if not accepts["broadcast"]:
        parts.append("no zero strides")
    parts += [f"{name} aligned to its size" for name in accepts["aligned"]]
    if accepts["alignment"] > 1:
        parts.append(f"aligned to {accepts['alignment']} bytes")
    return ", ".join(parts)


def _dtypes(names: list[str]) -> str:
    missing = [name for name in DTYPES if name not in names]
    extra = sorted(set(names) - set(DTYPES))
    text = "all" if not missing else f"all but {_brief(missing)}"
    if len(missing) > len(DTYPES) // 2:
        text = _brief([name for name in DTYPES if name in names])
    if not extra:
        return text
    return f"{text}; and {_brief(extra) if len(extra) < 8 else f'{len(extra)} more (--json)'}"


def _brief(names: list[str]) -> str:
    """``float8_e4m3fn, float8_e5m2`` as ``float8 (e4m3fn e5m2)``; ``float8`` for all of them."""
    eights = [name for name in names if name.startswith("float8_")]
    short = [name for name in names if name not in eights]
    if len(eights) == len(_EIGHTS):
        short.append("float8")
    elif eights:
        short.append(f"float8 ({' '.join(name.removeprefix('float8_') for name in eights)})")
    return ", ".join(short)
