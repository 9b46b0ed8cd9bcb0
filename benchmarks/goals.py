"""Cases with a goal: our call in turn with a peer, and whether the goal was kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from .timing import Pair, paired


class Case(NamedTuple):
    """One row: our call, the call it is compared with, and the most that ours may take."""

    what: str
    ours: Callable[[], object]
    peer_name: str
    peer: Callable[[], object]
    ratio: float | None = None  # to the peer
    ns: float | None = None  # independent of the peer
    setup: Callable[[], object] = lambda: None  # before each round, not measured


class Found(NamedTuple):
    case: Case
    pair: Pair

    def missed(self) -> list[str]:
        """Judge ratios by their median, and nanoseconds by the least, which other work disturbs least."""
        case, pair = self.case, self.pair
        ratio = ["ratio"] if case.ratio is not None and pair.ratio > case.ratio else []
        return ratio + (["ns"] if case.ns is not None and pair.least > case.ns else [])

    def judged(self) -> str:
        if self.case.ratio is None and self.case.ns is None:
            return ""
        return f"**missed** ({', '.join(self.missed())})" if self.missed() else "kept"


def verdict(value: float, most: float) -> str:
    return "kept" if value <= most else "**missed**"


def measure(cases: Iterable[Case], *, quick: bool = False) -> list[Found]:
    """Measure each case in short rounds: the pace of a busy machine changes within 10 ms."""
    rounds, seconds = (3, 0.0005) if quick else (151, 0.001)
    found = []
    for case in cases:
        pair = paired(case.ours, case.peer, rounds=rounds, seconds=seconds, setup=case.setup)
        found.append(Found(case, pair))
    return found


def table(found: Iterable[Found], head: str) -> list[str]:
    lines = [
        f"| {head} | ours, ns | least | compared with | its ns | ratio | goal: ratio | ns | |",
        "| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | --- |",
    ]
    for row in found:
        case, pair = row.case, row.pair
        ratio = "" if case.ratio is None else f"{case.ratio:g}"
        ns = "" if case.ns is None else f"{case.ns:,.0f}"
        lines.append(
            f"| {case.what} | {pair.ours:,.0f} | {pair.least:,.0f} | {case.peer_name} | {pair.peer:,.0f} "
            f"| {pair.ratio:.2f} | {ratio} | {ns} | {row.judged()} |"
        )
    return lines


def summary(found: Iterable[Found]) -> str:
    """How many goals were kept."""
    judged = [row for row in found if row.case.ratio is not None or row.case.ns is not None]
    return f"{sum(not row.missed() for row in judged)} of {len(judged)} goals kept."
