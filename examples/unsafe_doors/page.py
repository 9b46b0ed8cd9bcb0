"""docs/start/unsafe_doors.md, written from what the cases really did."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

from .case import CASES, KINDS, Case
from .run import Outcome, Runner

__all__ = ["DISTRIBUTIONS", "PAGE", "TIMES", "newest", "render", "results", "version_of", "write"]

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "start" / "unsafe_doors.md"
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

#: What the table says of an outcome.
WORDS = {
    "crash": "killed",
    "freed": "freed memory",
    "wrong": "wrong numbers",
    "overwritten": "overwritten",
    "lost": "lost",
}

INTRODUCTION = """\
# When a library's own conversion is unsafe

Every array library can take the arrays of others: `torch.from_dlpack`, `np.asarray`, `jnp.array`, `paddle.to_tensor`. Most of the time the
result is right. This page shows when it is not, and no error is raised: the process is killed (a segfault or an abort), the numbers are wrong, read-only
data is overwritten, or a mask, a unit or a gradient is lost. Each case is a few lines of ordinary code, what they print today, and what
arraybridge does in the same place. Many of these conversions go through DLPack, the protocol by which array libraries pass memory to each
other without copying it.

A program wrote this page, and ran each case in a process of its own. To run them yourself, in a checkout:

    python -m examples.unsafe_doors                      # all of them
    python -m examples.unsafe_doors torch_negative_step  # one

The tests run them again, on these versions and on the newest, and fail when the page is no longer true. Where a newer version of a library behaves
otherwise, the table and the case say so. Where a library documents the behavior, or has a report of it, the case links to it.

- [From every library to every other](../matrix.md) has how often each library's own conversion is right, over all pairs, dtypes and layouts.
- [Coming from ...](coming_from.md) has what to write in place of each conversion.
"""

CLOSING = """\
## What arraybridge cannot prevent

- **Writes to memory that is shared on purpose.** A view is a view: what is written on one side is seen on the other
  ([Ownership](../ownership.md)).
- **`Tensor.share_memory_()`** moves a tensor's storage and frees the old one, under views by `Tensor.numpy()` and by arraybridge alike.
- **What another library does with an `ab.Array`.** It treats it as it treats any other array: `torch.from_dlpack(array)` of an Array with
  negative steps fails as above. `ab.convert(array, "torch")` copies.
- **What was not looked for.** All cases ran on a CPU; no GPU was available.
"""


def results(case: Case, runner: Runner, times: int = 0) -> dict[str, tuple[str, Outcome, str]]:
    """Run all ways of a case: expression -> (kind, outcome, how often it was seen).

    A way that depends on timing is run until it goes wrong, and `times` times if that is more.
    """
    found = {}
    for way in (*case.doors, case.bridge):
        code = case.variant(way)
        runs = [runner.run(code)]
        if case.sometimes and way != case.bridge:
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
    """The section of a case."""
    lines = [f"### {case.title}", "", case.why, "", "```python3", case.code, "```", "", "```text"]
    for way, (_, outcome, seen) in found.items():
        lines += [f"# {way}{f', {seen}' if seen else ''}", outcome.text]
        lines += [f"# (with a {name})" for name in outcome.warned]
    _, outcome, _ = found[case.bridge]
    told = [f"{_mended(case, way)}: `{way}`." for way in case.mended]
    return "\n".join([*lines, "```", "", " ".join([*told, _does(outcome)]), ""])


def _mended(case: Case, way: str) -> str:
    """What a newer version of a library does."""
    library, since, does = case.mended[way]
    return f"{DISTRIBUTIONS[library][0]} {since} {does}"


def _does(outcome: Outcome) -> str:
    if outcome.failed and outcome.text.startswith("ConversionError"):
        return "arraybridge **refuses**, and says what to pass instead."
    kind, why = outcome.route or ("", "")
    word = {"view": "a view", "kernel": "a copy", "transfer": "a copy on another device"}[kind]
    why = f": {why}" if kind != "view" else ""
    return f"arraybridge makes **{word}**{why}."


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


def table(found: dict[str, dict[str, tuple[str, Outcome, str]]]) -> str:
    """The table at the top of the page."""
    rows = [
        "| what comes in | by | what happens | arraybridge |",
        "| --- | --- | --- | --- |",
    ]
    for name, ways in found.items():
        case = CASES[name]
        kind, _, _ = ways[case.doors[0]]
        _, ours, _ = ways[case.bridge]
        told = {"view": "view", "kernel": "copy"}.get((ours.route or ("",))[0], "refused")
        what = WORDS[kind]
        if case.doors[0] in case.mended:
            what += f"; {_mended(case, case.doors[0])}"
        rows.append(f"| [{case.given}](#{case.anchor}) | `{case.call}` | {what} | {told} |")
    return "\n".join(rows)


def write(found: dict[str, dict[str, tuple[str, Outcome, str]]]) -> None:
    """Write the page."""
    listed = ", ".join(
        f"{called} {version_of(name)}" for name, (called, _) in DISTRIBUTIONS.items()
    )
    parts = [
        INTRODUCTION,
        f"Versions: {listed}; Python 3.11, Linux, x86-64.\n",
        f"Run again on the newest: {newest()}.\n",
        table(found),
        "",
    ]
    for kind, heading in KINDS.items():
        parts.append(f"## {heading}\n")
        for name, ways in found.items():
            if CASES[name].kind == kind:
                parts.append(render(CASES[name], ways))
    PAGE.write_text("\n".join([*parts, CLOSING]))
