"""The path of one conversion through the package: a box per step, with the file that takes it."""

from __future__ import annotations

from typing import NamedTuple

from benchmarks.svg import WIDTH, Picture
from tests.support.processes import ROOT

BLUE, YELLOW, GREEN, GREY = "#2f81c7", "#e3a008", "#3a9a4b", "#8a8f98"
COLORS = {"functions": BLUE, "libraries": YELLOW, "core": GREEN, "memory": GREY}
HIGH, GAP, TOP, EDGE = 54, 24, 56, 12


class Step(NamedTuple):
    """A file or a folder, and what it does, in two lines."""

    path: str
    first: str
    second: str

    @property
    def color(self) -> str:
        part = self.path.split("/")[0 if self.path.startswith("kernels") else 1]
        known = {"libraries": YELLOW, "core": GREEN, "dlpack": GREY, "kernels": GREY}
        return known.get(part, BLUE)


CORE = "arraybridge/core/"
ROWS = (
    (
        Step(
            "arraybridge/conversion.py",
            "convert(x, to): reads the keywords.",
            "adapt, unify and tree call it, too.",
        ),
    ),
    (
        Step(
            f"{CORE}table.py",
            "Looks up the type of x, the request and the layout.",
            "If they are known, it runs the remembered function.",
        ),
    ),
    (
        Step("arraybridge/libraries/", "Source: describe(x)", "gives a TensorInfo."),
        Step("arraybridge/libraries/", "Target: accepts records", "what its arrays can be."),
    ),
    (
        Step(
            f"{CORE}planner.py",
            "Decides: view, copy, cast, transfer or error,",
            "and why. explain stops here. A view goes to wrap.",
        ),
    ),
    (
        Step(f"{CORE}copiers.py", "copies on the", "array's device"),
        Step(f"{CORE}cast.py", "another dtype", "or order"),
        Step(f"{CORE}transfer.py", "to another", "device"),
    ),
    (
        Step("kernels/cpu/plan.py", "chooses the kernel", "on the host"),
        Step("kernels/cuda/plan.py", "chooses the kernel", "on a CUDA device"),
    ),
    (
        Step("arraybridge/dlpack/", "A tensor: the memory", "and its owner."),
        Step("arraybridge/libraries/", "Target: wrap(tensor)", "makes the result."),
    ),
)
TITLE = "The path of ab.convert(x, to)"


def drawn() -> str:
    steps = [step for row in ROWS for step in row]
    assert all((ROOT / step.path).exists() for step in steps), "a file was moved or renamed"
    told = " ".join(f"{step.path}: {step.first} {step.second}" for step in steps)
    high = TOP + len(ROWS) * (HIGH + GAP) - GAP + EDGE
    picture = Picture(WIDTH, high, TITLE, f"{TITLE}. {told}")
    picture.legend(EDGE, 44, COLORS, 112)
    for at, row in enumerate(ROWS):
        top = TOP + at * (HIGH + GAP)
        if at:
            picture.arrow([(WIDTH / 2, top - GAP), (WIDTH / 2, top)])
        width = (WIDTH - 2 * EDGE - 8 * (len(row) - 1)) / len(row)
        for place, step in enumerate(row):
            x = EDGE + place * (width + 8)
            picture.box(x, top, width, HIGH, fill=step.color)
            lines = step.path.removeprefix("arraybridge/"), step.first, step.second
            for line, words in enumerate(lines, 1):
                kind = "bold" if line == 1 else ""
                picture.text(x + width / 2, top + 16 * line - 1, words, anchor="middle", kind=kind)
    return picture.svg
