"""The variants of kernels, compared with those of the device's tuning, on each of the 26 layouts for which they are other kernels.

python -m benchmarks.gpu.variants FILE.jsonl [--write-tuning]     the choices that the rows of a file support; into kernels/cuda/tuning.json
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..layouts import Layout
from .bandwidth import Case, case, differences, layouts
from .clock import Work, events, in_turns, spread
from .record import rows
from .sanitized import of_layout

TABLE = Path(__file__).resolve().parents[2] / "kernels" / "cuda" / "tuning.json"
NOW = "as tuned"
GAIN = 0.03  # that a variant must be faster by, in the geometric mean
ROUNDS, CALLS, SECONDS = 15, 8, 1.5


def tunings(current: Any) -> dict[str, Any]:
    """The tuning of a device, and all others that differ from it in one choice."""
    from arraybridge.kernels.cuda.tuning import CHOICES

    found = {NOW: current}
    for field, choices in CHOICES.items():
        for choice in choices:
            if choice != getattr(current, field):
                found[f"{field}={choice}"] = current._replace(**{field: choice})
    return found


def contenders(layout: Layout, current: Any, capability: tuple[int, int]) -> dict[str, Any]:
    """The plans of a layout by what is chosen: the device's own, and those that are other kernels."""
    from arraybridge.kernels.cuda import build

    nest = of_layout(layout)
    plans = {who: nest.tuned(tuning) for who, tuning in tunings(current).items()}
    return {
        who: made
        for who, made in plans.items()
        if (who == NOW or made != plans[NOW])
        and all(build.capability(plan) <= capability for plan in made)
    }


def kernel(at: Case, plans: Iterable[Any], wanted: np.ndarray) -> Work:
    """Launches into existing buffers; AssertionError if the first makes wrong bytes."""
    import torch

    from arraybridge.kernels.cuda import context, launch

    launches = [launch.prepare(plan, context.device(0)) for plan in plans]
    made = [torch.full((at.host.nbytes,), 0xA5, dtype=torch.uint8, device="cuda") for _ in at.bases]

    def work(turn: int) -> None:
        to, base = made[turn % len(made)], at.bases[turn % len(made)]
        for each in launches:
            each(to.data_ptr(), base.data_ptr() + at.offset, 1)

    work(0)
    found = differences("the kernel's", made[0].cpu().numpy(), wanted)
    assert not found, found[0]
    return work


def measure(layout: Layout, plans: dict[str, Any], **about: Any) -> dict[str, Any]:
    from arraybridge.kernels.cuda.plan import name

    at = case(layout)
    wanted = np.ascontiguousarray(at.host).view(np.uint8).ravel()
    failed: dict[str, str] = {}
    able = {}
    for who, made in plans.items():
        try:
            able[who] = kernel(at, made, wanted)
        except Exception as error:  # the others are still measured
            failed[who] = f"{type(error).__name__}: {error}"[:300]
    times = in_turns(able, events, rounds=ROUNDS, calls=CALLS, failed=failed, seconds=SECONDS)
    return {
        **about,
        "plan": name(plans[NOW][0]).removeprefix("cuda "),
        "seconds": {who: statistics.median(found) for who, found in times.items()},
        "spread": {who: spread(found) for who, found in times.items()},
        "failed": failed,
    }


def run(record: Any) -> None:
    from arraybridge.kernels.cuda import context, tuning

    capability = context.device(0).capability
    current = tuning.of(capability)
    about = {"capability": "{}.{}".format(*capability), "current": current._asdict()}
    for layout in layouts():
        plans = contenders(layout, current, capability)
        if len(plans) > 1:
            record.attempt(layout.name, partial(measure, layout, plans, **about), needs=4)


def gains(found: Iterable[dict[str, Any]]) -> dict[str, tuple[float, float, int]]:
    """How much faster each variant is in the geometric mean over its layouts, the mean spread, and on how many.

    A variant that failed somewhere is not among them.
    """
    found = list(found)
    names = dict.fromkeys(who for row in found for who in (*row["seconds"], *row["failed"]))
    result = {}
    for who in [name for name in names if name != NOW]:
        those = [row for row in found if who in row["seconds"] and NOW in row["seconds"]]
        if not those or any(who in row["failed"] for row in found):
            continue
        ratios = [row["seconds"][NOW] / row["seconds"][who] for row in those]
        noise = [row["spread"][NOW] + row["spread"][who] for row in those]
        mean = statistics.geometric_mean(ratios) - 1
        result[who] = mean, statistics.mean(noise), len(those)
    return result


def chosen(found: Iterable[dict[str, Any]]) -> dict[str, str]:
    """The fastest of each choice, if it gains `GAIN` and more than the spread."""
    best: dict[str, tuple[float, str]] = {}
    for who, (gain, noise, _) in gains(found).items():
        field, _, choice = who.partition("=")
        if gain >= max(GAIN, noise) and gain > best.get(field, (0.0, ""))[0]:
            best[field] = gain, choice
    return {field: choice for field, (_, choice) in best.items()}


def tuned(table: dict[str, dict[str, Any]], found: list[dict[str, Any]]) -> dict[str, Any]:
    """The table, with the choices that the rows of one device support."""
    from arraybridge.kernels.cuda.tuning import CHOICES, DEFAULT

    wanted = chosen(found)
    entry: dict[str, Any] = dict(found[0]["current"])
    for field, choice in wanted.items():
        (entry[field],) = (one for one in CHOICES[field] if str(one) == choice)
    entry = {field: choice for field, choice in entry.items() if choice != getattr(DEFAULT, field)}
    capability = found[0]["capability"]
    rest = {key: value for key, value in table.items() if key != capability}
    return dict(sorted({**rest, **({capability: entry} if entry else {})}.items()))


def main() -> int:
    found = [row["values"] for row in rows(Path(sys.argv[1]), "variants") if "values" in row]
    if not found:
        print(f"{sys.argv[1]} has no rows of the part `variants`", file=sys.stderr)
        return 1
    for who, (gain, noise, count) in gains(found).items():
        print(f"{who}: {gain:+.1%} on {count} layouts, spread {noise:.1%}")
    table = json.dumps(tuned(json.loads(TABLE.read_text()), found), indent=2) + "\n"
    print(table, end="")
    if "--write-tuning" in sys.argv:
        TABLE.write_text(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
