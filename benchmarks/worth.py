"""Measure what docs/start/worth.md decides by: conversions beside the calls that they replace.

python -m benchmarks.worth            prints the table
python -m benchmarks.worth --write    and puts it into the page
"""

from __future__ import annotations

import argparse
import re
import timeit
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

import arraybridge as ab

from .goals import Case
from .timing import machine, versions

PAGE = Path(__file__).resolve().parents[1] / "docs" / "start" / "worth.md"
PLACE = re.compile(r"(?<=<!-- python -m benchmarks.worth -->\n).*?(?=<!-- end -->)", re.DOTALL)


def cases(side: int = 4096) -> Iterator[Case]:
    """Conversions of a small array and of `side` times `side` float32 (by default 64 MB)."""
    import jax.numpy as jnp

    jnp.zeros(1).block_until_ready()  # JAX starts before the clock does
    small = np.arange(24.0)
    large = np.random.default_rng(0).random((side, side), np.float32)
    size = f"{large.nbytes >> 20} MB"
    yield Case(
        "small, NumPy to PyTorch",
        lambda: ab.convert(small, "torch"),
        "torch.from_numpy(x)",
        lambda: torch.from_numpy(small),
    )
    yield Case(
        f"{size}, transposed, to PyTorch",
        lambda: ab.convert(large.T, "torch", order="C"),
        "torch.from_numpy(x.T).contiguous()",
        lambda: torch.from_numpy(large.T).contiguous(),
    )
    yield Case(
        f"{size}, NumPy to JAX",
        lambda: ab.convert(large, "jax").block_until_ready(),
        "jnp.asarray(x)",
        lambda: jnp.asarray(large).block_until_ready(),
    )
    yield Case(
        f"{size}, to PyTorch as float64",
        lambda: ab.convert(large, "torch", dtype="float64"),
        "torch.from_numpy(x).double()",
        lambda: torch.from_numpy(large).double(),
    )


def took(ns: float) -> str:
    return f"{ns / 1e6:.1f} ms" if ns >= 1e5 else f"{ns / 1e3:.1f} µs"


def fastest(case: Case, rounds: int) -> tuple[float, float]:
    """Nanoseconds of both calls in their fastest round; they take turns."""
    timers = [timeit.Timer(call) for call in (case.ours, case.peer)]
    loops = [max(1, round(0.01 / min(timer.repeat(3, 1)))) for timer in timers]
    turns = [
        [timer.timeit(count) / count * 1e9 for timer, count in zip(timers, loops, strict=True)]
        for _ in range(rounds)
    ]
    ours, peer = (min(times) for times in zip(*turns, strict=True))
    return ours, peer


def report(side: int = 4096, rounds: int = 15) -> str:
    lines = ["| array | `convert` | without arraybridge | time |", "| --- | ---: | --- | ---: |"]
    for case in cases(side):
        ours, peer = fastest(case, rounds)
        lines.append(f"| {case.what} | {took(ours)} | `{case.peer_name}` | {took(peer)} |")
    lines += [
        "",
        f"Fastest of {rounds} rounds on {machine()}; {versions('numpy', 'torch', 'jax')}.",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help=f"put it into {PAGE.name}")
    write = parser.parse_args().write
    text = report()
    print(text)
    if write:
        PAGE.write_text(PLACE.sub(lambda _: f"{text}\n", PAGE.read_text()))


if __name__ == "__main__":
    main()
