"""Measure conversions between libraries beside the libraries' own.

python -m benchmarks.exchange            prints the tables
python -m benchmarks.exchange --write    and keeps them in benchmarks/RESULTS.md
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from datetime import date
from pathlib import Path

import array_api_compat
import jax
import numpy as np
import torch
import tvm_ffi

import arraybridge as ab

from .timing import machine, paired, versions

SHAPE = (3, 4)
SIZES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000)
RESULTS = Path(__file__).with_name("RESULTS.md")


def latency_cases():
    """(what, ours, what the peer is, peer, the most that the ratio may be)."""
    array = np.arange(12, dtype=np.float32).reshape(SHAPE)
    tensor = torch.arange(12, dtype=torch.float32).reshape(SHAPE)
    jax_array = jax.numpy.asarray(array)
    aligned = np.asarray(ab.from_dlpack(jax_array).to("numpy", copy=True))
    fixed = aligned.view()
    fixed.flags.writeable = False
    to_jax = jax.dlpack.from_dlpack
    convert, wrap, namespace = ab.convert, ab.from_dlpack, ab.namespace
    compat = array_api_compat.array_namespace
    return [
        ("torch to NumPy", lambda: convert(tensor, "numpy"), "np.from_dlpack", lambda: np.from_dlpack(tensor), 0.5),
        ("NumPy to torch", lambda: convert(array, "torch"), "torch.from_dlpack", lambda: torch.from_dlpack(array), 0.6),
        ("from_dlpack(torch)", lambda: wrap(tensor), "tvm_ffi.from_dlpack", lambda: tvm_ffi.from_dlpack(tensor), 2.5),
        ("from_dlpack(NumPy)", lambda: wrap(array), "tvm_ffi.from_dlpack", lambda: tvm_ffi.from_dlpack(array), 2.5),
        ("JAX to NumPy", lambda: convert(jax_array, "numpy"), "np.from_dlpack", lambda: np.from_dlpack(jax_array), 1.0),
        ("JAX to torch (copied: immutable)", lambda: convert(jax_array, "torch"), "torch.from_dlpack (a writable view)", lambda: torch.from_dlpack(jax_array), 1.0),
        ("NumPy to JAX (copied: writable)", lambda: convert(array, "jax"), "jax.dlpack.from_dlpack", lambda: to_jax(array), 1.0),
        ("NumPy to JAX (read-only and aligned)", lambda: convert(fixed, "jax"), "jax.dlpack.from_dlpack (of writable memory)", lambda: to_jax(aligned), 1.0),
        ("torch to JAX (copied: writable)", lambda: convert(tensor, "jax"), "jax.dlpack.from_dlpack (a view)", lambda: to_jax(tensor), 1.0),
        ("namespace(torch)", lambda: namespace(tensor), "array_namespace", lambda: compat(tensor), 0.2),
        ("namespace(NumPy)", lambda: namespace(array), "array_namespace", lambda: compat(array), 0.2),
    ]  # fmt: skip


def verdict(ratio: float, most: float) -> str:
    return "kept" if ratio <= most else "**missed**"


def latency() -> list[str]:
    lines = [
        "| exchange | ours, ns | peer | peer, ns | ratio | goal | |",
        "| --- | ---: | --- | ---: | ---: | ---: | --- |",
    ]
    for what, ours, peer_name, peer, most in latency_cases():
        ours(), peer()
        pair = paired(ours, peer)
        lines.append(
            f"| {what} | {pair.ours:,.0f} | {peer_name} | {pair.peer:,.0f} | {pair.ratio:.2f} "
            f"| {most} | {verdict(pair.ratio, most)} |"
        )
    return lines


def resident() -> int:
    """Resident bytes of this process."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def flatness() -> list[str]:
    """A view costs the same at every size, and no memory."""
    lines = [
        "| float32 elements | torch to NumPy, ns | NumPy to torch, ns | added resident memory, bytes |",
        "| ---: | ---: | ---: | ---: |",
    ]
    for size in SIZES:
        array = np.ones(size, np.float32)
        tensor = torch.ones(size)
        ab.convert(array, "torch"), ab.convert(tensor, "numpy")
        before = resident()
        views = [ab.convert(array, "torch"), ab.convert(tensor, "numpy")]
        added = resident() - before
        pair = paired(
            lambda t=tensor: ab.convert(t, "numpy"), lambda a=array: ab.convert(a, "torch")
        )
        del views
        lines.append(f"| {size:,} | {pair.ours:,.0f} | {pair.peer:,.0f} | {added:,} |")
    return lines


def import_cost(rounds: int = 15) -> list[str]:
    """Whole processes in turn, less an empty one."""
    commands = {"nothing": "pass", "numpy": "import numpy", "arraybridge": "import arraybridge"}
    took: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(rounds + 1):
        for name, command in commands.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", command], check=True)
            if turn:  # the first warms the file cache
                took[name].append(time.perf_counter() - start)
    empty = statistics.median(took["nothing"])
    numpy, ours = (statistics.median(took[name]) - empty for name in ("numpy", "arraybridge"))
    ratio = ours / numpy
    return [
        "| import | ms | ratio | goal | |",
        "| --- | ---: | ---: | ---: | --- |",
        f"| numpy | {numpy * 1e3:.0f} | 1 | | |",
        f"| arraybridge | {ours * 1e3:.0f} | {ratio:.2f} | 1.3 | {verdict(ratio, 1.3)} |",
    ]


def report() -> str:
    sections = [
        ("Latency", "float32, 3 x 4, contiguous; medians of rounds in turn with the peer.", latency),
        ("Size", "The same calls from 4 KB to 400 MB.", flatness),
        ("Import", "Whole processes in turn, less the time of an empty one; medians of 15.", import_cost),
    ]  # fmt: skip
    distributions = "numpy torch jax apache-tvm-ffi array-api-compat".split()
    lines = [f"{machine()}; {versions(*distributions)}; {date.today()}."]
    for title, text, measure in sections:
        lines += ["", f"### {title}", "", text, "", *measure()]
    return "\n".join(lines)


def write(text: str, heading: str) -> None:
    """Replace the section under ``heading`` in RESULTS.md, or add it."""
    old = RESULTS.read_text() if RESULTS.exists() else "# Results\n"
    head, _, rest = old.partition(f"\n## {heading}\n")
    _, mark, later = rest.partition("\n## ")
    RESULTS.write_text(f"{head.rstrip()}\n\n## {heading}\n\n{text}\n{mark}{later}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="keep the result in RESULTS.md")
    arguments = parser.parse_args()
    text = report()
    print(text)
    if arguments.write:
        write(text, "exchange: `python -m benchmarks.exchange`")


if __name__ == "__main__":
    main()
