"""docs/programs.md, from the table alone.

python -m tests.support.programs.page > docs/programs.md
"""

from __future__ import annotations

import sys
from importlib.metadata import version

from .record import LIBRARIES, Program, data
from .table import TABLE

CLIENTS = {
    "array_api_compat": "array-api-compat",
    "array_api_extra": "array-api-extra",
    "scipy": "SciPy",
    "sklearn": "scikit-learn",
}

INTRODUCTION = """\
# Programs that nobody here wrote

Array-API code of SciPy, array-api-extra and scikit-learn, run unchanged on [`Array`](array.md)
over NumPy, PyTorch and JAX. Each call is made on Arrays and on plain NumPy arrays of the same
values, and *works* says that both results agree: every array in the result is an Array of the same
library, of the same shape and data type, with the same values (floats to the square root of their
precision). The clients' switches are on (`SCIPY_ARRAY_API=1`, `array_api_dispatch=True`), JAX's x64
is, PyTorch's default dtype is float64. What their own tests say of it is on
[another page](downstream.md).

This page is printed by `python -m tests.support.programs.page` from
[the table](../tests/support/programs/table.py) that `tests/test_programs.py` runs. What fails is in
the table too, and a test holds that it still fails in that way, so both lists stay true. (What JAX
compiles for longer than half a second, {slow} calls, runs in `make test-all`.)

For comparison, the libraries' own arrays in place of Arrays (`tests.support.programs.run --native`,
PyTorch 2.13.0 and JAX 0.10.2, measured once): 286 of 296 on PyTorch; 237 on JAX, 52 of whose
failures are writes to an immutable array, which an Array over JAX takes.
"""


def head(client: str) -> str:
    """The package of a module."""
    return client.partition(".")[0]


def cell(program: Program, library: str, causes: list[str]) -> str:
    """What the page says of a program on one library: works, or the number of its cause."""
    failure = program.fails.get(library)
    if failure is None:
        return "works"
    return f"[no: {causes.index(failure.cause) + 1}](#why-some-do-not-run)"


def row(*cells: object) -> str:
    """A line of a Markdown table."""
    return f"| {' | '.join(map(str, cells))} |"


def summary() -> list[str]:
    """How many programs of each client run on each library."""
    lines = [row("client", "version", "calls", *LIBRARIES.values())]
    lines.append(row("---", "---", *["---:"] * (1 + len(LIBRARIES))))
    groups = {
        f"{name} | {version(name)}": [p for m, ps in TABLE.items() if head(m) == client for p in ps]
        for client, name in CLIENTS.items()
    }
    groups["all |"] = [program for programs in TABLE.values() for program in programs]
    for name, programs in groups.items():
        works = (sum(library not in p.fails for p in programs) for library in LIBRARIES)
        lines.append(row(name, len(programs), *works))
    return lines


def page() -> str:
    """The whole page."""
    programs = [program for programs in TABLE.values() for program in programs]
    causes = list(dict.fromkeys(f.cause for p in programs for f in p.fails.values()))
    lines = [INTRODUCTION.format(slow=sum(p.slow for p in programs)), *summary(), ""]
    lines += ["## Why some do not run", ""]
    lines += [f"{number}. {cause}" for number, cause in enumerate(causes, 1)]
    lines += ["", "## The arguments", ""]
    lines += ["`xp` is the namespace of the Arrays. The arrays, from a fixed seed:", ""]
    lines += [row("name", "data type", "shape"), row("---", "---", "---")]
    lines += [row(f"`{name}`", x.dtype, x.shape) for name, x in data().items()]
    for module, programs in TABLE.items():
        lines += ["", f"## {module}", "", row("call", *LIBRARIES.values())]
        lines.append(row(*["---"] * (1 + len(LIBRARIES))))
        for program in programs:
            cells = (cell(program, library, causes) for library in LIBRARIES)
            lines.append(row(f"`{program.call}`", *cells))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())
