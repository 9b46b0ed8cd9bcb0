"""Measure on a GPU: python -m benchmarks.gpu [--call 1|2] [--only PART ...] [--output FOLDER].

Without a CUDA device it reports what is missing and fails: nothing is measured without a GPU.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from datetime import date
from pathlib import Path

from .parts import CALLS, OVERHEAD, PARTS, run

RESULTS = Path(__file__).resolve().parents[1] / "results"


def main() -> int:
    start = time.monotonic()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--call", type=int, choices=CALLS, help="the parts of one of the two calls; else of both"
    )
    names = [part.name for part in PARTS]
    parser.add_argument(
        "--only", nargs="+", metavar="PART", choices=names, help=f"these parts: {', '.join(names)}"
    )
    parser.add_argument(
        "--output", type=Path, help="the folder to write to; benchmarks/results by default"
    )
    arguments = parser.parse_args()
    from . import carry, goals, machine, report
    from .record import append, drop, outcomes

    carry.use()

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
    path = folder / f"gpu-{slug}-{date.today()}.jsonl"
    parts = [
        part
        for part in CALLS.get(arguments.call, PARTS)
        if arguments.only is None or part.name in arguments.only
    ]
    ends = start + OVERHEAD + sum(part.seconds for part in parts)

    with tempfile.TemporaryDirectory(prefix="arraybridge-gpu-") as scratch:
        env = machine.environment(Path(scratch))
        lines = machine.described(env)
        print(*lines, sep="\n", flush=True)
        drop(path, "machine")
        about = {"device": name, "date": date.today()}
        append(path, part="machine", name="machine", values={**about, "lines": lines})
        for part in parts:
            run(part, path, env, ends - time.monotonic(), Path(scratch))
            found = outcomes(path)
            if part.name not in found:
                print(f"{part.name}: not begun, no time was left", flush=True)
                continue
            outcome, failed = found[part.name], goals.failures(found, part.name)
            print(
                f"{part.name}: {len(outcome.rows)} rows, {len(failed)} failed, {outcome.seconds:.0f} s",
                *outcome.notes,
                flush=True,
            )
            try:
                report.write(path)
            except Exception as error:  # the rows stay, for the report after the next part
                print(
                    f"the file could not be written: {type(error).__name__}: {error}",
                    file=sys.stderr,
                )
        report.write(path)
    print(path.with_suffix(".md").read_text())
    print(
        *(
            f"{goal.verdict:>12}: {goal.wanted} ({goal.figures[:160]})"
            for goal in goals.goals(outcomes(path))
        ),
        sep="\n",
    )
    print(f"written: {path.with_suffix('.*')}, in {time.monotonic() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
