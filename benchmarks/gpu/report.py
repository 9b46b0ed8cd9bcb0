"""The Markdown file: the results, the missing results and the reasons; written again after every part.

python -m benchmarks.gpu.report FILE.jsonl writes it without a device, after an interrupted call.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .goals import NOISE, PEERS, STEPPED, Row, failures, goals, layouts, mean, values
from .parts import PARTS
from .record import Outcome, outcomes

Outcomes = dict[str, Outcome]

NOTE = (
    "Written by `python -m benchmarks.gpu` (docs/gpu.md). Times are medians of contenders that take turns. GB/s count the "
    "bytes that must be read and written; a share is relative to a device-to-device copy of as many bytes as the result has."
)


def write(path: Path) -> None:
    """Write the Markdown file of a file of rows, beside it."""
    found = outcomes(path)
    (machine,) = (row for _, row in values(found, "machine"))
    target = path.with_suffix(".md")
    unfinished = path.with_suffix(".tmp")
    unfinished.write_text(markdown(machine, found))
    unfinished.replace(target)


def markdown(machine: dict[str, Any], outcomes: Outcomes) -> str:
    lines = [f"# {machine['device']}, {machine['date']}", "", NOTE]
    lines += ["", "## Machine", "", *machine["lines"], "", "## Goals", ""]
    lines += ["| goal | | figures |", "| --- | --- | --- |"]
    lines += [
        f"| {_cell(g.wanted)} | **{g.verdict}** | {_cell(g.figures)} |" for g in goals(outcomes)
    ]
    for part in PARTS:
        lines += ["", f"## {part.title}", ""]
        outcome = outcomes.get(part.name)
        if outcome is None:
            lines.append("Not measured: its turn did not come.")
            continue
        lines += [f"- {note}" for note in outcome.notes]
        section = SECTIONS[part.name](outcomes) or ["Not measured."]
        lines += ["", *section] if outcome.notes else section
        failed = failures(outcomes, part.name)
        if failed:
            lines += ["", "Failed, or not measured:", ""]
            lines += [f"- {name}: {_inline(why)}" for name, why in failed]
    took = ", ".join(f"{name} {outcome.seconds:.0f}" for name, outcome in outcomes.items())
    lines += ["", f"Seconds by part: {took}. Each part had a process of its own."]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _inline(text: str) -> str:
    """Several lines as a block under the item that they belong to."""
    head, *rest = text.strip().splitlines() or [""]
    return (
        head
        if not rest
        else "\n".join([head, "", "  ```", *[f"  {line}" for line in rest], "  ```"])
    )


def _table(heads: list[str], rows: list[list[str]]) -> list[str]:
    marks = ["---", *["---:"] * (len(heads) - 1)]
    return (
        [f"| {' | '.join(map(_cell, cells))} |" for cells in [heads, marks, *rows]] if rows else []
    )


def _figure(number: float | None, form: str) -> str:
    return "" if number is None else format(number, form)


def bandwidth(outcomes: Outcomes) -> list[str]:
    """GB/s and shares, with those of PyTorch, CuPy and JAX."""
    rows = layouts(outcomes)
    found = {name: row for name, row in values(outcomes, "bandwidth") if "seconds" in row}
    if not rows:
        return []
    heads = [
        "layout",
        "plan",
        "memcpy, GB/s",
        "`ab.contiguous`, GB/s",
        "share",
        "kernel alone, share",
    ]
    for name in PEERS.values():
        heads += [f"{name}, GB/s", "times"]
    table = []
    for row in rows:
        limit = row.seconds.get("memcpy")
        cells = [
            row.name,
            found[row.name]["plan"],
            _figure(limit and 2 * row.result / limit / 1e9, ".0f"),
        ]
        cells += [
            _figure(row.speed("arraybridge"), ".0f"),
            _figure(row.share("arraybridge"), ".2f"),
        ]
        cells.append(_figure(row.share("kernel"), ".2f"))
        for peer in PEERS:
            ratio = row.ratio(peer)
            behind = ratio is not None and ratio < 1 - NOISE
            cells += [
                _figure(row.speed(peer), ".0f"),
                f"**{ratio:.2f}**" if behind else _figure(ratio, ".2f"),
            ]
        table.append(cells)
    lines = _table(heads, table)
    return [*lines, "", *_means(rows), *_doubts(found)]


def _means(rows: list[Row]) -> list[str]:
    lines = []
    for what, these in (
        ("all", rows),
        ("those without a step", [r for r in rows if r.name not in STEPPED]),
    ):
        said = []
        for who in ("arraybridge", "kernel", *PEERS):
            shares = [share for row in these if (share := row.share(who)) is not None]
            if shares:
                said.append(f"{who} {mean(shares):.3f} ({len(shares)})")
        lines.append(f"- Geometric mean of the shares, {what}: {', '.join(said)}.")
    for peer, name in PEERS.items():
        ratios = [ratio for row in rows if (ratio := row.ratio(peer)) is not None]
        if ratios:
            lines.append(
                f"- {name}'s time over arraybridge's: {mean(ratios):.2f}, geometric mean of {len(ratios)}."
            )
    return lines


def _doubts(found: dict[str, dict[str, Any]]) -> list[str]:
    """How steady the times were, and which contenders could not take part."""
    lines = []
    pairs = [row["seconds"] for row in found.values() if "memcpy again" in row["seconds"]]
    apart = [abs(p["memcpy again"] / p["memcpy"] - 1) for p in pairs]
    if apart:
        spreads = [row["spread"].get("arraybridge", 0.0) for row in found.values()]
        lines.append(
            f"- Noise: two contenders that are the same memcpy differ by {sorted(apart)[len(apart) // 2]:.1%} (median), "
            f"{max(apart):.1%} at most; half the quartiles' distance of ours is {max(spreads):.1%} at most."
        )
    lines += [
        f"- {name}, {who}: {why}"
        for name, row in found.items()
        for who, why in row["failed"].items()
    ]
    return lines


def bandwidth_jax(outcomes: Outcomes) -> list[str]:
    heads = ["layout", "µs per copy", "spread", "the host's µs per call", ""]
    return _table(heads, [
        [name, f"{r['seconds'] * 1e6:.1f}", f"{r['spread']:.1%}", f"{r['dispatch'] * 1e6:.1f}",
         "" if r["seconds"] > 1.1 * r["dispatch"] else "bound by the host"]
        for name, r in values(outcomes, "bandwidth_jax") if "seconds" in r
    ])  # fmt: skip


def small(outcomes: Outcomes) -> list[str]:
    found = [row for _, row in values(outcomes, "small")]
    heads = ["layout", "bytes"]
    ways = {"burst": "a call of 200", "waited": "call and wait", "device": "on the device"}
    for name in ways.values():
        heads += [f"{name}, µs", "PyTorch", "CuPy"]
    table = []
    for row in found:
        cells = [row["kind"], f"{row['bytes']:,}"]
        for way in ways:
            times = row[way]
            cells += [
                _figure(times.get(who) and times[who] * 1e6, ".2f")
                for who in ("arraybridge", "torch", "cupy")
            ]
        table.append(cells)
    return _table(heads, table)


def host(outcomes: Outcomes) -> list[str]:
    found = dict(values(outcomes, "host"))
    rows = [
        [what, f"{took:.2f}"]
        for part in ("calls", "new layouts")
        for what, took in found.get(part, {}).items()
    ]
    return _table(["on the host, without waiting for the device", "µs per call"], rows)


def exchanges(outcomes: Outcomes) -> list[str]:
    return _table(["exchange", "ours, ns", "peer", "peer, ns", "ratio"], [
        [name.partition(" / ")[0], f"{r['ours']:,.0f}", r["peer"], f"{r['theirs']:,.0f}", f"{r['ratio']:.2f}"]
        for name, r in values(outcomes, "exchanges")
    ])  # fmt: skip


def transfers(outcomes: Outcomes) -> list[str]:
    lines: list[str] = []
    for way, title in (("to_device", "host to device"), ("to_host", "device to host")):
        rows = [row for _, row in values(outcomes, "transfers") if row["way"] == way]
        if not rows:
            lines.append(f"{title}: not measured.")
            continue
        names = list(dict.fromkeys(name for row in rows for name in row["seconds"]))
        table = []
        for row in rows:
            speeds = [
                _figure(s and row["megabytes"] * 2**20 / s / 1e9, ".2f")
                for s in map(row["seconds"].get, names)
            ]
            table.append([f"{row['layout']}, {row['megabytes']} MiB", *speeds])
        lines += [
            "",
            *_table([f"{title}, GB/s", *[f"`{n}`" if "(" in n else n for n in names]], table),
        ]
    return lines


def suite(outcomes: Outcomes) -> list[str]:
    found = [row for name, row in values(outcomes, "suite") if name != "pytest"]
    passed = [row for row in found if row["outcome"] == "passed"]
    skips: dict[str, int] = {}
    for row in found:
        if row["outcome"] == "skipped":
            skips[row["why"]] = skips.get(row["why"], 0) + 1
    failed = len(failures(outcomes, "suite"))
    lines = [f"{len(passed)} passed, {failed} failed, {sum(skips.values())} skipped (tests/gpu)."]
    return lines + [f"- skipped, {count}: {why}" for why, count in skips.items()]


def kernels(outcomes: Outcomes) -> list[str]:
    found = [row for _, row in values(outcomes, "kernels")]
    made = [row["seconds"] for row in found if row["seconds"] is not None]
    if not found:
        return []
    return [
        f"{len(made)} compiled, {sum(made):.1f} s of work by {found[0]['processes']} processes; "
        f"{len(found) - len(made)} on disk already."
    ]


def sanitizers(outcomes: Outcomes) -> list[str]:
    lines = []
    for name, row in values(outcomes, "sanitizers"):
        said = row.get("summary") or f"every result right; kernels: {', '.join(row['kernels'])}"
        if row.get("not reached"):
            said += f"; **not reached: {', '.join(row['not reached'])}**"
        lines.append(f"- {name}: {row['nests']} nests; {said}")
    return lines


SECTIONS: dict[str, Callable[[Outcomes], list[str]]] = {
    "kernels": kernels, "bandwidth": bandwidth, "bandwidth_jax": bandwidth_jax, "small": small, "host": host,
    "exchanges": exchanges, "transfers": transfers, "suite": suite, "sanitizers": sanitizers,
}  # fmt: skip


if __name__ == "__main__":
    write(Path(sys.argv[1]))
