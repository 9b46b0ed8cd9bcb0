"""The official conformance suite on arraybridge's namespaces; a command, not a test.

    make conformance SUITE=<checkout of data-apis/array-api-tests> [EXAMPLES=200] [WRITE=1]

The checkout has its submodule `array-api`; its skip and xfail files, if any, are not used. Prints,
and with ``--write`` keeps in benchmarks/results/conformance.md, what passed and what failed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from benchmarks.timing import versions

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "benchmarks" / "results" / "conformance.md"
BEGIN, END = "<!-- {} examples: begin -->", "<!-- {} examples: end -->"

UNDERNEATH = {
    "numpy": "array_api_compat.numpy",
    "torch": "array_api_compat.torch",
    "jax": "jax.numpy",
    "array_api_strict": "array_api_strict",
    "dpnp": "dpnp",
    "cupy": "array_api_compat.cupy",
}
_NATIVE = "exec('import arraybridge.xp.{0} as m; xp = m.native')"
# name -> (label in the table, the module that the suite imports, the library underneath)
NAMESPACES: dict[str, tuple[str, str, str]] = {}
for _name, _module in UNDERNEATH.items():
    _ours = f"arraybridge.xp.{_name}"
    NAMESPACES[_name] = f"`{_ours}`", _ours, _name
    NAMESPACES[f"{_name}-native"] = f"native namespace, {_name}", _NATIVE.format(_name), _name
    NAMESPACES[f"{_name}-underneath"] = f"`{_module}`", _module, _name
DEFAULT = "numpy torch jax".split()
INSTALLED = "numpy torch jax array-api-compat array-api-strict dpnp cupy hypothesis".split()


class Outcome(NamedTuple):
    """What the suite said of one namespace."""

    name: str
    passed: int
    failed: tuple[str, ...]
    skipped: int
    minutes: float


def outcome(name: str, suite: Path, examples: int, arguments: list[str]) -> Outcome:
    """Run the suite on one namespace, in a process of its own."""
    _, module, library = NAMESPACES[name]
    environment = os.environ | {
        "ARRAY_API_TESTS_MODULE": module,
        "ARRAY_API_TESTS_VERSION": "2025.12",
        "PYTHONPATH": str(ROOT),
    }
    if library == "jax":
        environment["JAX_ENABLE_X64"] = "1"
    with tempfile.TemporaryDirectory() as folder:
        nothing = Path(folder, "nothing.txt")
        nothing.touch()
        report = Path(folder, "report.xml")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=line"]
        command += ["--disable-deadline", f"--max-examples={examples}", f"--junitxml={report}"]
        command += [f"--skips-file={nothing}", f"--xfails-file={nothing}", "array_api_tests"]
        began = time.monotonic()
        done = subprocess.run(
            command + arguments, cwd=suite, env=environment, capture_output=True, text=True
        )
        if not report.exists():
            sys.exit(f"{name}: the suite did not run:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
        cases = list(ET.parse(report).iter("testcase"))
    failed = [
        f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    ]
    skipped = sum(case.find("skipped") is not None for case in cases)
    minutes = (time.monotonic() - began) / 60
    return Outcome(name, len(cases) - len(failed) - skipped, tuple(failed), skipped, minutes)


def commit(checkout: Path) -> str:
    """The commit of a checkout, or that it is not known."""
    found = subprocess.run(
        ["git", "-C", str(checkout), "rev-parse", "HEAD"], capture_output=True, text=True
    )
    return found.stdout.strip() or "unknown"


def lines(outcomes: list[Outcome], suite: Path, examples: int) -> list[str]:
    text = [
        f"Suite {commit(suite)[:12]} (specification {commit(suite / 'array-api')[:12]}), "
        f"{examples} examples a test, no skip or xfail file; Python {sys.version.split()[0]}, "
        f"{versions(*INSTALLED)}; {date.today()}.",
        "",
        "| namespace | passed | failed | skipped | minutes |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    text += [
        f"| {NAMESPACES[o.name][0]} | {o.passed} | {len(o.failed)} | {o.skipped} "
        f"| {o.minutes:.1f} |"
        for o in outcomes
    ]
    for o in outcomes:
        if o.failed and not o.name.endswith("-underneath"):
            text += ["", f"Failed on {NAMESPACES[o.name][0]}:", ""]
            text += [f"- `{name}`" for name in o.failed]
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suite", type=Path, help="a checkout of data-apis/array-api-tests")
    parser.add_argument("--examples", type=int, default=20, help="Hypothesis examples a test")
    parser.add_argument("--write", action="store_true", help="keep the counts in the page")
    parser.add_argument("--jobs", type=int, default=1, help="namespaces at a time")
    parser.add_argument(
        "--namespaces", nargs="+", default=DEFAULT, choices=NAMESPACES, metavar="NAME"
    )
    parser.add_argument("arguments", nargs="*", help="more for pytest, after --")
    chosen = parser.parse_args()
    suite = chosen.suite.resolve()
    if not (suite / "array_api_tests").is_dir() or not (suite / "array-api" / "spec").is_dir():
        parser.error(
            f"{chosen.suite} is no checkout of data-apis/array-api-tests with its submodule: "
            "git clone --recurse-submodules it, and pass its folder"
        )
    namespaces = [n for n in chosen.namespaces if find_spec(NAMESPACES[n][2]) is not None]
    for name in sorted(set(chosen.namespaces) - set(namespaces)):
        print(f"{name}: {NAMESPACES[name][2]} is not installed", flush=True)

    def run(name: str) -> Outcome:
        o = outcome(name, suite, chosen.examples, chosen.arguments)
        counts = f"{o.passed} passed, {len(o.failed)} failed, {o.skipped} skipped"
        print(f"{name}: {counts}, {o.minutes:.1f} minutes", flush=True)
        return o

    with ThreadPoolExecutor(chosen.jobs) as pool:
        outcomes = list(pool.map(run, namespaces))
    text = "\n".join(lines(outcomes, suite, chosen.examples))
    print(f"\n{text}")
    if chosen.write:
        begin, end = BEGIN.format(chosen.examples), END.format(chosen.examples)
        head, found, rest = PAGE.read_text().partition(begin)
        tail = rest.partition(end)[2]
        if not found:
            head += "\n"
            tail = "\n"
        PAGE.write_text(f"{head}{begin}\n{text}\n{end}{tail}")
    sys.exit(any(o.failed for o in outcomes))


if __name__ == "__main__":
    main()
