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
# Third-party programs

Array-API code of SciPy, array-api-extra and scikit-learn, run unchanged on [`Array`](array.md)
over NumPy, PyTorch and JAX. Each call is made on Arrays and on plain NumPy arrays of the same
values. *Works* means that both results agree: every array in the result is an Array of the same
library, of the same shape and dtype, with the same values (floats to the square root of their
precision). The clients' switches (`SCIPY_ARRAY_API=1`, `array_api_dispatch=True`) and JAX's x64
are on, and PyTorch's default dtype is float64. [Another page](downstream.md) has the results of the
projects' own tests.

`python -m tests.support.programs.page` prints this page from
[the table](../tests/support/programs/table.py) that
`tests/integration/test_programs.py` runs. The table also
contains the failures, and a test checks that they still fail in the same way, so both lists stay
true. ({slow} calls, which JAX compiles for longer than half a second, run in `make test-all`.)

For comparison, with the libraries' own arrays in place of Arrays (`tests.support.programs.run
--native`, PyTorch 2.13.0 and JAX 0.10.2, measured once) 286 of 296 work on PyTorch and 237 on JAX.
Of JAX's failures, 52 are writes to an immutable array, which an Array over JAX supports.
"""


def head(client: str) -> str:
    """The package of a module."""
    return client.partition(".")[0]


def cell(program: Program, library: str, causes: list[str]) -> str:
    """What the page says of a program on one library: works, or the number of its cause."""
    failure = program.fails.get(library)
    if failure is None:
        return "works"
    return f"[no: {causes.index(failure.cause) + 1}](#why-some-fail)"


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
    lines += ["## Why some fail", ""]
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
