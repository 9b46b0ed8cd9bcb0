"""Compare operations on Arrays with the library's own and with array-api-compat's.

python -m benchmarks.wrapper            prints the tables
python -m benchmarks.wrapper --write    and keeps them in benchmarks/RESULTS.md
"""

from __future__ import annotations

from collections.abc import Iterator

import array_api_compat
import array_api_strict
import jax
import numpy as np
import torch

import arraybridge as ab

from .goals import Case, measure, summary, table
from .results import command, head
from .timing import paired

MAKERS = {
    "NumPy": lambda n: np.linspace(-1, 1, n),
    "PyTorch": lambda n: torch.linspace(-1, 1, n, dtype=torch.float64),
    "JAX": lambda n: jax.numpy.linspace(-1, 1, n, dtype="float32"),
}
OWN = {"NumPy": np, "PyTorch": torch, "JAX": jax.numpy}
LIBRARIES = "numpy torch jax array-api-compat array-api-strict"


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
#: (operation, native or Array, library or all) -> the most that 1,000 elements may take, in times the library's own
GOALS = {
    ("xp.sum(x)", "native", "PyTorch"): 1.2,
    ("xp.sum(x)", "Array", "PyTorch"): 1.35,
    ("x[1:-1]", "Array", "NumPy"): 1.8,
    ("softmax", "native", ""): 1.15,
    ("softmax", "Array", ""): 1.15,
}


def cases() -> Iterator[Case]:
    """The cases with goals: sums of 24 elements, and 1,000 elements of each library."""
    a, t, s = np.arange(24.0), torch.arange(24.0), array_api_strict.arange(24.0)
    x, y = ab.from_dlpack(a), ab.from_dlpack(t)
    yield Case("Array + Array on NumPy", lambda: x + x, "NumPy's own", lambda: a + a, 1.5)
    yield Case("Array + Array on NumPy", lambda: x + x, "array-api-strict's", lambda: s + s, 0.1)
    yield Case("Array + Array on PyTorch", lambda: y + y, "PyTorch's own", lambda: t + t, 1.25)
    for library, make in MAKERS.items():
        native, xp = make(1_000), OWN[library]
        array = ab.from_dlpack(native)
        faces = {"Array": (ab.namespace(array), array), "native": (ab.namespace(native), native)}
        for (operation, face, of), most in GOALS.items():
            if of not in ("", library):
                continue
            f, (space, z) = OPERATIONS[operation], faces[face]
            yield Case(
                f"`{operation}` on {library}, {face}",
                lambda f=f, space=space, z=z: f(space, z),
                f"{library}'s own",
                lambda f=f, xp=xp, n=native: f(xp, n),
                most,
            )


def operations(*, quick: bool = False) -> list[str]:
    sizes, rounds, seconds = ((1_000,), 3, 0.0005) if quick else ((1_000, 1_000_000), 9, 0.01)
    lines = [
        "| library | elements | operation | native, µs | array-api-compat | native namespace | Array |",
        "| --- | ---: | --- | ---: | ---: | ---: | ---: |",
    ]
    for library, make in MAKERS.items():
        for size in sizes:
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
                        rounds=rounds,
                        seconds=seconds,
                    )
                    ratios.append(pair.ratio)
                    peer = pair.peer
                lines.append(
                    f"| {library} | {size:,} | `{name}` | {peer / 1e3:,.2f} | "
                    + " | ".join(f"{ratio:.2f}" for ratio in ratios)
                    + " |"
                )
    return lines


def report(*, quick: bool = False) -> str:
    torch.set_num_threads(1)
    found = measure(cases(), quick=quick)
    return "\n".join(
        [
            f"Goal: as in the first table. {summary(found)}",
            "",
            "Measured: operations on Arrays and on native arrays through `ab.namespace`, in turn with the library's own. Sums of two arrays have",
            "24 elements; the others have 1,000.",
            "",
            head(LIBRARIES),
            "",
            "### Goals",
            "",
            *table(found, "operation"),
            "",
            "### Operations",
            "",
            "`native` is the library's own operation, which does not always follow the standard. The columns after it are multiples of its time;",
            "medians of paired rounds.",
            "",
            *operations(quick=quick),
            "",
        ]
    )


if __name__ == "__main__":
    command("wrapper", __doc__, report)
