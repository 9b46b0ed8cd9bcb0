"""The goals that need a GPU, each met, missed or not measured."""

from __future__ import annotations

from collections.abc import Iterator
from math import exp, log
from typing import Any, NamedTuple

from .record import Outcome

NOISE = 0.02  # a share of the time: what is less behind than that is even
STEPPED = (
    "every other column",
    "one channel of three, bytes",
)  # whose sectors hold unneeded bytes
WIDE = ("4-byte items", "8-byte items", "16-byte items", "tall", "wide")
NARROW = ("1-byte items", "2-byte items")
PEERS = {"torch": "PyTorch", "cupy": "CuPy", "jax": "JAX"}


class Goal(NamedTuple):
    """The goal, its outcome ("met", "missed", "not measured"), and the figures."""

    wanted: str
    verdict: str
    figures: str


class Row(NamedTuple):
    """A layout's seconds per copy by contender, and the bytes that it moves."""

    name: str
    moved: int
    result: int
    seconds: dict[str, float]

    def speed(self, who: str) -> float | None:
        """GB/s, read and written."""
        took = self.seconds.get(who)
        return None if took is None else self.moved / took / 1e9

    def share(self, who: str) -> float | None:
        """Share of the speed of a device-to-device copy of as many bytes."""
        took, limit = self.seconds.get(who), self.seconds.get("memcpy")
        return (
            None
            if took is None or limit is None
            else (self.moved / took) / (2 * self.result / limit)
        )

    def ratio(self, peer: str) -> float | None:
        """How many times as fast arraybridge is."""
        ours, theirs = self.seconds.get("arraybridge"), self.seconds.get(peer)
        return None if ours is None or theirs is None else theirs / ours


def values(outcomes: dict[str, Outcome], part: str) -> list[tuple[str, dict[str, Any]]]:
    rows = outcomes[part].rows if part in outcomes else []
    return [(row["name"], row["values"]) for row in rows if "values" in row]


def failures(outcomes: dict[str, Outcome], part: str) -> list[tuple[str, str]]:
    """The items that failed, and those that began but did not end."""
    rows = outcomes[part].rows if part in outcomes else []
    ended = {row["name"] for row in rows if "began" not in row}
    found = [(row["name"], row["failed"]) for row in rows if "failed" in row]
    return found + [
        (r["name"], "came to no end") for r in rows if "began" in r and r["name"] not in ended
    ]


def layouts(outcomes: dict[str, Outcome]) -> list[Row]:
    """The layouts that were measured, JAX's times among the others where it has any."""
    jax = {name: found for name, found in values(outcomes, "bandwidth_jax") if "seconds" in found}
    rows = []
    for name, found in values(outcomes, "bandwidth"):
        if "seconds" not in found:
            continue
        seconds = dict(found["seconds"])
        # If the host takes as long as the call itself, the time of the copy is unknown.
        if (
            name in jax
            and jax[name]["platform"] != "cpu"
            and jax[name]["seconds"] > 1.1 * jax[name]["dispatch"]
        ):
            seconds["jax"] = jax[name]["seconds"]
        rows.append(Row(name, found["bytes"], found["result"], seconds))
    return rows


def mean(numbers: list[float]) -> float:
    """The geometric mean."""
    return exp(sum(map(log, numbers)) / len(numbers)) if numbers else float("nan")


def _judged(wanted: str, good: bool | None, figures: str) -> Goal:
    verdict = "not measured" if good is None else "met" if good else "missed"
    return Goal(wanted, verdict, figures)


def goals(outcomes: dict[str, Outcome]) -> list[Goal]:
    return [
        _right(outcomes),
        *_bandwidth(layouts(outcomes)),
        _small(outcomes),
        _uploads(outcomes),
        _sanitizers(outcomes),
        *_tests(outcomes),
    ]


def _right(outcomes: dict[str, Outcome]) -> Goal:
    right = [name for name, found in values(outcomes, "bandwidth") if "right" in found]
    wrong = failures(outcomes, "bandwidth")
    good = False if wrong else True if len(right) == 26 else None
    figures = f"{len(right)} checked{_first(wrong)}" if right or wrong else ""
    return _judged("the 26 layouts' copies are NumPy's, byte by byte", good, figures)


def _bandwidth(rows: list[Row]) -> list[Goal]:
    shares = {row.name: share for row in rows if (share := row.share("arraybridge")) is not None}
    found = []
    for names, least, items in ((WIDE, 0.92, "4 to 16 bytes"), (NARROW, 0.88, "1 and 2 bytes")):
        these = [(n, s) for n, s in shares.items() if n in {f"transpose, {name}" for name in names}]
        good = all(s >= least for _, s in these) if len(these) == len(names) else None
        found.append(
            _judged(f"aligned transposes of {items}: share >= {least:.2f}", good, _listed(these))
        )
    without = {n: s for n, s in shares.items() if n not in STEPPED}
    whole = len(without) == 24
    good = mean(list(without.values())) >= 0.90 if whole else None
    text = f"{mean(list(without.values())):.3f} over {len(without)}" if without else ""
    found.append(_judged("geometric mean of the 24 layouts without a step: >= 0.90", good, text))
    low = [(n, s) for n, s in without.items() if s < 0.70]
    text = _listed(low) or (
        f"the lowest: {_listed([min(without.items(), key=lambda x: x[1])])}" if without else ""
    )
    found.append(
        _judged("no share below 0.70", not low if whole else (False if low else None), text)
    )
    for peer, name in PEERS.items():
        ratios = [(row.name, ratio) for row in rows if (ratio := row.ratio(peer)) is not None]
        behind = [(n, r) for n, r in ratios if r < 1 - NOISE]
        good = not behind if len(ratios) == 26 else (False if behind else None)
        text = (
            f"behind by more than {NOISE:.0%}: {_listed(behind)}"
            if behind
            else f"{len(ratios)} of 26 compared"
        )
        found.append(_judged(f"no layout behind {name}", good, text))
    ratio = next(
        (row.ratio("torch") for row in rows if row.name == "transpose, 1-byte items"), None
    )
    text = "" if ratio is None else f"{ratio:.1f} times"
    found.append(
        _judged(
            "byte transposes >= 6 times PyTorch's copy", None if ratio is None else ratio >= 6, text
        )
    )
    return found


def _listed(pairs: list[tuple[str, float]]) -> str:
    return "; ".join(f"{name} {number:.2f}" for name, number in pairs)


def _small(outcomes: dict[str, Outcome]) -> Goal:
    behind, compared = [], 0
    for name, found in values(outcomes, "small"):
        for way in ("burst", "waited"):
            ours, theirs = found[way].get("arraybridge"), found[way].get("torch")
            if found["bytes"] > 65536 or ours is None or theirs is None:
                continue
            compared += 1
            if ours > theirs * (1 + NOISE):
                behind.append((f"{name} ({way})", theirs / ours))
    text = f"PyTorch's time over ours: {_listed(behind)}" if behind else f"{compared} comparisons"
    return _judged(
        "copies up to 64 KB no slower than tensor.contiguous()",
        not behind if compared else None,
        text,
    )


def _uploads(outcomes: dict[str, Outcome]) -> Goal:
    slow, compared = [], []
    for name, found in values(outcomes, "transfers"):
        if (
            found["way"] != "to_device"
            or found["layout"] == "contiguous"
            or found["megabytes"] < 64
        ):
            continue
        seconds = found["seconds"]
        ours = {
            "tensor": seconds.get("arraybridge, torch"),
            "cupy": seconds.get("arraybridge, NumPy to CuPy"),
        }
        for peer, took in seconds.items():
            mine = ours.get(peer[: peer.find(".")]) if "." in peer else None
            if mine is None or "not put in order" in peer or peer == "cupy.asarray":
                continue
            compared.append((f"{name}, {peer}", took / mine))
            if took / mine < 1.5:
                slow.append(compared[-1])
    text = _listed(slow if slow else compared)
    return _judged(
        "strided host to device >= 1.5 times the peers from 64 MB on",
        not slow if compared else None,
        text,
    )


def _sanitizers(outcomes: dict[str, Outcome]) -> Goal:
    passed = {name for name, _ in values(outcomes, "sanitizers")}
    failed = failures(outcomes, "sanitizers")
    good = {"memcheck", "racecheck"} <= passed or (None if not failed else False)
    if failed and all("is not on the path" in why or why.startswith("cut") for _, why in failed):
        good = None
    return _judged("sanitizers clean", good, ", ".join(sorted(passed)) + _first(failed))


def _tests(outcomes: dict[str, Outcome]) -> Iterator[Goal]:
    """Whether no test of a kind failed, and none was skipped, except for a second device."""
    tests = [(name, row) for name, row in values(outcomes, "suite") if name != "pytest"]
    passed = [name for name, row in tests if row["outcome"] == "passed"]
    failed = failures(outcomes, "suite")
    for wanted, kind in (
        ("copies are captured in graphs", "captured"),
        ("no new context", "no_context"),
        ("streams and threads are right", "test_gpu_streams"),
        ("transfers are right", "test_gpu_transfers"),
    ):
        wrong = [pair for pair in failed if kind in pair[0]]
        right = [name for name in passed if kind in name]
        good = not wrong if right or wrong else None
        yield _judged(wanted, good, f"{len(right)} tests passed{_first(wrong)}")
    skipped = [
        row for _, row in tests if row["outcome"] == "skipped" and "second" not in row["why"]
    ]
    ended = any(name == "pytest" for name, _ in values(outcomes, "suite"))
    good = bool(ended and passed and not failed and not skipped) if tests or failed else None
    text = f"{len(passed)} passed, {len(failed)} failed, {len(skipped)} skipped besides those for a second device"
    yield _judged("tests/gpu green, nothing skipped but a second device", good, text)


def _first(failed: list[tuple[str, str]]) -> str:
    return "".join(f"; {name}: {why.splitlines()[0][:160]}" for name, why in failed[:4])
