"""Measure on a GPU: python -m benchmarks.gpu [--output FOLDER] [--minutes 8] [--only PART ...] [--rehearse].

Without a CUDA device it says what is missing and fails: what no GPU measured is not measured. A rehearsal runs every
part on the host, small and with stand-ins, so that each line has run before a GPU is lent.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import time
from datetime import date
from pathlib import Path

RESULTS = Path(__file__).resolve().parents[1] / "results"
RESERVE = 8  # seconds kept for the last file


def main() -> int:
    start = time.monotonic()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--output", type=Path, help="the folder to write to; benchmarks/results by default"
    )
    parser.add_argument("--minutes", type=float, default=8, help="that all may take")
    parser.add_argument("--only", nargs="+", metavar="PART", help="these parts alone")
    parser.add_argument(
        "--rehearse", action="store_true", help="on the host, without a GPU; wants --output"
    )
    arguments = parser.parse_args()
    if arguments.rehearse:
        if arguments.output is None:
            parser.error("a rehearsal wants --output: its figures belong nowhere else")
        os.environ["ARRAYBRIDGE_REHEARSAL"] = "1"

    from . import carry, chart, goals, machine, rehearsal, report
    from .parts import PARTS, run

    carry.use()

    if arguments.rehearse:
        rehearsal.install()
    lacking = list(machine.missing())
    if lacking:
        with tempfile.TemporaryDirectory() as scratch:
            print(*machine.described(machine.environment(Path(scratch))), sep="\n")
        print("nothing was measured; missing:", *lacking, sep="\n- ", file=sys.stderr)
        return 1
    import torch

    name = torch.cuda.get_device_name(0)
    folder = arguments.output or RESULTS
    folder.mkdir(parents=True, exist_ok=True)
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    path = folder / f"gpu-{slug}-{date.today()}.md"
    picture = path.with_suffix(".svg")
    notes = [
        "Written by `python -m benchmarks.gpu` (docs/gpu.md). Times are medians of contenders that take turns. GB/s count the "
        "bytes that must be read and written; a share is of a device-to-device copy of as many bytes as the result has."
    ]
    if arguments.rehearse:
        notes.insert(
            0, "**A rehearsal on the host: no GPU was used, and no figure here means anything.**\n"
        )
    outcomes: dict = {}

    def write() -> None:
        rows = goals.layouts(outcomes)
        if rows:
            chart.draw(rows, f"Strided to contiguous on {name}", picture)
        spent = time.monotonic() - start
        text = report.markdown(
            f"{name}, {date.today()}", lines, outcomes, spent, notes, picture.name if rows else ""
        )
        unfinished = path.with_suffix(".tmp")
        unfinished.write_text(text)
        unfinished.replace(path)

    with tempfile.TemporaryDirectory(prefix="arraybridge-gpu-") as scratch:
        env = machine.environment(Path(scratch))
        lines = machine.described(env)
        print(*lines, sep="\n", flush=True)
        for part in PARTS:
            if arguments.only and part.name not in arguments.only:
                continue
            left = arguments.minutes * 60 - RESERVE - (time.monotonic() - start)
            outcomes[part.name] = run(part, Path(scratch), env, left)
            outcome = outcomes[part.name]
            failed = len(goals.failures(outcomes, part.name))
            print(
                f"{part.name}: {len(outcome.rows)} rows, {failed} failed, {outcome.seconds:.0f} s",
                *outcome.notes,
                flush=True,
            )
            try:
                write()
            except Exception as error:  # the next part's file may come out better
                print(
                    f"the file could not be written: {type(error).__name__}: {error}",
                    file=sys.stderr,
                )
        write()
    print(path.read_text())
    print(
        *(
            f"{goal.verdict:>12}: {goal.wanted} ({goal.figures[:160]})"
            for goal in goals.goals(outcomes)
        ),
        sep="\n",
    )
    print(f"written: {path}, {picture}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
