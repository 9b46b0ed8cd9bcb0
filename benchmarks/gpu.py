"""The CUDA tests and benchmarks in one call, within 8 minutes; the result is a file to commit.

    python -m benchmarks.gpu [--output FOLDER]

Writes ``gpu-<device>-<date>.md`` with the machine, the versions, what the tests said, and latencies of
exchanges on the device beside each library's own conversion. Without a CUDA device it says so and fails: what
no GPU measured is not measured.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from datetime import date
from pathlib import Path

from .timing import machine, paired, versions

RESULTS = Path(__file__).with_name("results")
TEST_SECONDS = 300


def device_name() -> str | None:
    """The name of the first CUDA device, or None."""
    try:
        import torch
    except ImportError:
        return None
    return torch.cuda.get_device_name(0) if torch.cuda.is_available() else None


def run_tests() -> list[str]:
    command = [sys.executable, "-m", "pytest", "-m", "gpu", "-q", "-p", "no:cacheprovider"]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=TEST_SECONDS)
        output = run.stdout.strip().splitlines()
    except subprocess.TimeoutExpired:
        output = [f"stopped after {TEST_SECONDS} s"]
    return ["```", *output[-40:], "```"]


def exchanges():
    """(what, ours, the peer's name, peer) on device 0."""
    import torch

    import arraybridge as ab

    convert = ab.convert
    tensor = torch.arange(12, dtype=torch.float32, device="cuda").reshape(3, 4)
    try:
        import cupy
    except ImportError:
        cupy = None
    if cupy is not None:
        array = cupy.arange(12, dtype="float32").reshape(3, 4)
        yield (
            "torch to CuPy",
            lambda: convert(tensor, "cupy"),
            "cupy.from_dlpack",
            lambda: cupy.from_dlpack(tensor),
        )
        yield (
            "CuPy to torch",
            lambda: convert(array, "torch"),
            "torch.from_dlpack",
            lambda: torch.from_dlpack(array),
        )
    try:
        import numba.cuda as numba_cuda

        yield (
            "torch to Numba",
            lambda: convert(tensor, "numba"),
            "as_cuda_array",
            lambda: numba_cuda.as_cuda_array(tensor),
        )
    except ImportError:
        pass
    try:
        import jax
    except ImportError:
        jax = None
    if jax is not None and jax.default_backend() == "gpu":
        yield (
            "torch to JAX",
            lambda: convert(tensor, "jax"),
            "jax.dlpack.from_dlpack",
            lambda: jax.dlpack.from_dlpack(tensor),
        )


def latencies() -> list[str]:
    lines = [
        "| exchange on the device | ours, ns | peer | peer, ns | ratio |",
        "| --- | ---: | --- | ---: | ---: |",
    ]
    for what, ours, name, peer in exchanges():
        try:
            ours(), peer()
            pair = paired(ours, peer)
        except Exception as error:  # a failure is a result too
            lines.append(f"| {what} | {type(error).__name__}: {str(error)[:80]} | {name} | | |")
            continue
        lines.append(
            f"| {what} | {pair.ours:,.0f} | {name} | {pair.peer:,.0f} | {pair.ratio:.2f} |"
        )
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=RESULTS, help="the folder to write to")
    arguments = parser.parse_args()
    name = device_name()
    if name is None:
        print("no CUDA device that PyTorch can use: nothing was measured", file=sys.stderr)
        return 1
    distributions = "numpy torch cupy-cuda12x numba numba-cuda jax array-api-compat".split()
    lines = [
        f"# {name}, {date.today()}",
        "",
        f"{machine()}; {versions(*distributions)}; `python -m benchmarks.gpu`.",
        "",
        "## Tests",
        "",
        *run_tests(),
        "",
        "## Latency",
        "",
        *latencies(),
    ]
    text = "\n".join(lines) + "\n"
    arguments.output.mkdir(parents=True, exist_ok=True)
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    path = arguments.output / f"gpu-{slug}-{date.today()}.md"
    path.write_text(text)
    print(text)
    print(f"written: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
