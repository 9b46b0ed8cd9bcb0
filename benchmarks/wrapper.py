"""Measure operations on Arrays beside the library's own and array-api-compat's.

python -m benchmarks.wrapper            prints the tables
python -m benchmarks.wrapper --write    and keeps them in benchmarks/RESULTS.md
"""

from __future__ import annotations

import argparse
import os
from datetime import date

import array_api_compat
import array_api_strict
import jax
import numpy as np
import torch

import arraybridge as ab

from .exchange import verdict, write
from .timing import machine, paired, versions

MAKERS = {
    "NumPy": lambda n: np.linspace(-1, 1, n),
    "PyTorch": lambda n: torch.linspace(-1, 1, n, dtype=torch.float64),
    "JAX": lambda n: jax.numpy.linspace(-1, 1, n, dtype="float32"),
}
OWN = {"NumPy": np, "PyTorch": torch, "JAX": jax.numpy}
LIBRARIES = "numpy", "torch", "jax", "array-api-compat", "array-api-strict"


def softmax(xp, x):
    e = xp.exp(x - xp.max(x))
    return e / xp.sum(e)


OPERATIONS = {
    "x + x": lambda xp, x: x + x,
    "x * 2": lambda xp, x: x * 2,
    "-x": lambda xp, x: -x,
    "x[1:-1]": lambda xp, x: x[1:-1],
    "xp.sum(x)": lambda xp, x: xp.sum(x),
    "xp.exp(x)": lambda xp, x: xp.exp(x),
    "xp.where(x > 0, x, -x)": lambda xp, x: xp.where(x > 0, x, -x),
    "softmax": softmax,
}


def goals() -> list[str]:
    """The sums of the issue, on 24 elements."""
    a, t, s = np.arange(24.0), torch.arange(24.0), array_api_strict.arange(24.0)
    x, y = ab.from_dlpack(a), ab.from_dlpack(t)
    cases = [
        ("on NumPy", lambda: x + x, "NumPy's own", lambda: a + a, 2.0),
        ("on NumPy", lambda: x + x, "array-api-strict's", lambda: s + s, 0.1),
        ("on PyTorch", lambda: y + y, "PyTorch's own", lambda: t + t, 1.4),
    ]
    lines = [
        "| Array + Array, 24 elements | ours, ns | peer | peer, ns | ratio | goal | |",
        "| --- | ---: | --- | ---: | ---: | ---: | --- |",
    ]
    for what, ours, peer_name, peer, most in cases:
        pair = paired(ours, peer, rounds=41)
        lines.append(
            f"| {what} | {pair.ours:,.0f} | {peer_name} | {pair.peer:,.0f} | {pair.ratio:.2f} "
            f"| {most} | {verdict(pair.ratio, most)} |"
        )
    return lines


def operations() -> list[str]:
    lines = [
        "| library | elements | operation | native, µs | array-api-compat | native namespace | Array |",
        "| --- | ---: | --- | ---: | ---: | ---: | ---: |",
    ]
    for library, make in MAKERS.items():
        for size in (1_000, 1_000_000):
            native = make(size)
            array = ab.from_dlpack(native)
            namespaces = [
                (array_api_compat.array_namespace(native), native),
                (ab.namespace(native), native),
                (ab.namespace(array), array),
            ]
            for name, operation in OPERATIONS.items():
                ratios, peer = [], 0.0
                for namespace, x in namespaces:
                    pair = paired(
                        lambda f=operation, namespace=namespace, x=x: f(namespace, x),
                        lambda f=operation, xp=OWN[library], x=native: f(xp, x),
                        rounds=9,
                    )
                    ratios.append(pair.ratio)
                    peer = pair.peer
                lines.append(
                    f"| {library} | {size:,} | `{name}` | {peer / 1e3:,.2f} | "
                    + " | ".join(f"{ratio:.2f}" for ratio in ratios)
                    + " |"
                )
    return lines


def peak(work) -> int:
    """Bytes of resident memory that a call adds at its highest (Linux)."""
    work()
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak starts anew
    with open("/proc/self/statm") as file:
        before = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    work()
    with open("/proc/self/status") as file:
        high = next(line for line in file if line.startswith("VmHWM"))
    return max(0, int(high.split()[1]) * 1024 - before)


def memory() -> list[str]:
    size = 8_000_000
    lines = [
        f"| {size:,} elements | operation | native adds, MB | Array adds, MB |",
        "| --- | --- | ---: | ---: |",
    ]
    for library, make in MAKERS.items():
        native = make(size)
        array = ab.from_dlpack(native)
        xp = OWN[library]
        for name, operation in OPERATIONS.items():
            added = [
                peak(lambda f=operation, namespace=namespace, x=x: f(namespace, x))
                for namespace, x in ((xp, native), (ab.namespace(array), array))
            ]
            lines.append(
                f"| {library} | `{name}` | {added[0] / 1e6:,.0f} | {added[1] / 1e6:,.0f} |"
            )
    return lines


def report() -> str:
    torch.set_num_threads(1)
    load = os.getloadavg()[0]
    return "\n".join(
        [
            f"{machine()}; {versions(*LIBRARIES)}; {date.today()}; load average {load:.1f}.",
            "",
            *goals(),
            "",
            "The columns after `native` are multiples of the time of the library's own operation, called directly",
            "(which does not always follow the standard); paired, medians.",
            "",
            *operations(),
            "",
            "Peak resident memory that a call adds: no copies.",
            "",
            *memory(),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="keep the result in RESULTS.md")
    arguments = parser.parse_args()
    text = report()
    print(text)
    if arguments.write:
        write(text, "wrapper: `python -m benchmarks.wrapper`")


if __name__ == "__main__":
    main()
