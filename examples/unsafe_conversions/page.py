"""Write docs/start/unsafe_conversions.md from what the cases printed."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

from .case import CASES, KINDS, Case
from .run import Outcome, Runner

__all__ = [
    "DISTRIBUTIONS",
    "PAGE",
    "TIMES",
    "newest",
    "render",
    "results",
    "row",
    "version_of",
    "write",
]

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "start" / "unsafe_conversions.md"
NEWEST = ROOT / "requirements" / "newest.txt"

#: How often a case that depends on timing or on the allocator is run for the page.
TIMES = 20

#: Import name: (what the page calls it, distribution).
DISTRIBUTIONS = {
    "duckdb": ("DuckDB", "duckdb"),
    "jax": ("JAX", "jax"),
    "mlx.core": ("MLX", "mlx"),
    "numpy": ("NumPy", "numpy"),
    "onnxruntime": ("ONNX Runtime", "onnxruntime"),
    "openvino": ("OpenVINO", "openvino"),
    "paddle": ("Paddle", "paddlepaddle"),
    "pandas": ("pandas", "pandas"),
    "pint": ("Pint", "pint"),
    "polars": ("polars", "polars"),
    "pyarrow": ("PyArrow", "pyarrow"),
    "tensorflow": ("TensorFlow", "tensorflow-cpu"),
    "torch": ("PyTorch", "torch"),
    "tvm_ffi": ("TVM-FFI", "apache-tvm-ffi"),
    "warp": ("Warp", "warp-lang"),
}

#: What the table calls arraybridge's result, by the kind of its route.
RESULTS = {"view": "view", "kernel": "copy"}

INTRODUCTION = """\
# Unsafe conversions

The libraries' own conversion functions are usually right. This page lists the cases in which they are wrong and raise no error. In each of them,
arraybridge returns the right array, or raises an error that names what to pass.

[Coming from ...](coming_from.md) shows what to write instead of each function. The [conversion matrix](../matrix.md) counts how often each
library's own conversion is right, over all pairs, dtypes and layouts.

Each case is a few lines of code. In a checkout, run all of them or one:

    python -m examples.unsafe_conversions
    python -m examples.unsafe_conversions torch_negative_step

This page is generated from the output of the cases, each run in its own process. The tests run them on these versions and on the newest, and
compare the output. All cases ran on a CPU.
"""

CLOSING = """\
## What arraybridge cannot prevent

- **Writes to shared memory.** A view is a view: a write on one side shows on the other ([Ownership and aliasing](../ownership.md)).
- **`Tensor.share_memory_()`** moves a tensor's storage and frees the old memory. Views by `Tensor.numpy()` and by arraybridge then show
  freed memory.
- **What another library does with an `ab.Array`.** `torch.from_dlpack(array)` fails for an `ab.Array` with negative strides as it does for
  a NumPy array. `ab.convert(array, "torch")` copies.
"""


def results(case: Case, runner: Runner, times: int = 0) -> dict[str, tuple[str, Outcome, str]]:
    """Run all ways of a case: expression -> (kind, outcome, how often it was seen).

    A way that depends on timing is run until it goes wrong, and `times` times if that is more.
    """
    found = {}
    for way in (*case.own, case.ours):
        code = case.variant(way)
        runs = [runner.run(code)]
        if case.sometimes and way != case.ours:
            while len(runs) < (times or TIMES):
                if not times and runs[-1].kind(case) != "right":
                    break
                runs.append(runner.run(code))
        kinds = [run.kind(case) for run in runs]
        bad = [i for i, kind in enumerate(kinds) if kind != "right"]
        shown = bad[0] if bad else 0
        seen = f"{len(bad)} of {len(runs)} runs" if len(runs) > 1 else ""
        found[way] = (kinds[shown], runs[shown], seen)
    return found


def render(case: Case, found: dict[str, tuple[str, Outcome, str]]) -> str:
    """Return the code of a case and what it printed, way by way."""
    lines = [f"`{case.function}` of {case.given}:", ""]
    lines += ["```python3", case.code, "```", "", "```text"]
    for way, (_, outcome, seen) in found.items():
        lines += [f"# {way}{f', {seen}' if seen else ''}", outcome.text]
        lines += [f"# (with a {name})" for name in outcome.warned]
    notes = [f"`{way}`: {_mended(case, way)}." for way in case.mended if way != case.own[0]]
    return "\n".join([*lines, "```", "", *(note + "\n" for note in notes)])


def row(case: Case, found: dict[str, tuple[str, Outcome, str]]) -> str:
    """Return the row of a case in the table of its kind."""
    _, ours, _ = found[case.ours]
    result = RESULTS.get((ours.route or ("",))[0], "error")
    what = case.why
    if case.own[0] in case.mended:
        what += f" {_mended(case, case.own[0])}."
    program = f"../../examples/unsafe_conversions/{case.file}"
    return f"| [{case.given}]({program}) | `{case.function}` | {what} | {result} |"


def _mended(case: Case, way: str) -> str:
    """Return what a newer version of a library does."""
    library, since, does = case.mended[way]
    return f"{DISTRIBUTIONS[library][0]} {since} {does}"


def version_of(name: str) -> str:
    """The installed version of a library, without what a build adds to it."""
    return version(DISTRIBUTIONS[name][1]).partition("+")[0]


def newest() -> str:
    """The libraries that the tests have in newer versions, which ``make test-newest`` installs."""
    pins = dict(re.findall(r"^([\w-]+)==([\d.]+\d)", NEWEST.read_text(), re.MULTILINE))
    return ", ".join(
        f"{called} {pins[distribution]}"
        for called, distribution in DISTRIBUTIONS.values()
        if distribution in pins
    )


def write(found: dict[str, dict[str, tuple[str, Outcome, str]]]) -> None:
    """Write the page."""
    listed = ", ".join(
        f"{called} {version_of(name)}" for name, (called, _) in DISTRIBUTIONS.items()
    )
    parts = [
        INTRODUCTION,
        f"Versions: {listed}; Python 3.11, Linux, x86-64.\n",
        f"Newest versions tested: {newest()}.\n",
    ]
    for kind, heading in KINDS.items():
        cases = [(CASES[name], ways) for name, ways in found.items() if CASES[name].kind == kind]
        parts += [f"## {heading}\n", "| array | function | what happens | arraybridge |"]
        parts += ["| --- | --- | --- | --- |", *(row(*each) for each in cases), ""]
        parts += [render(case, ways) for case, ways in cases if case.shown]
    PAGE.write_text("\n".join([*parts, CLOSING]))
