"""Other projects' own tests on arraybridge's namespaces; a command, not a test.

    make downstream [SUITES="scipy xarray"] [LIBRARIES="numpy torch"] [WRITE=1]

The suites are those that the wheels of SciPy, array-api-extra, scikit-learn and xarray carry;
none of their code is in this repository. Each runs on every namespace and on array-api-strict, the
reference. Prints, and with
``--write`` keeps in tests/downstream/results.md, how many passed, and by name and cause each test
that fails on a namespace and passes on the reference. Exits with 1 if the cause of one is not known
(`causes`).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from .page import PAGE, Result, page
from .suites import SUITES, Suite

ROOT = Path(__file__).resolve().parents[2]
# Neither ours nor the projects', which wheels do not carry; but a hang is a failure here as well.
_SETTINGS = "[pytest]\nfaulthandler_timeout = 600\nfaulthandler_exit_on_timeout = true\n"


def run(suite: Suite, namespace: str, arguments: list[str]) -> Result:
    """Run a suite on one namespace, in a process of its own."""
    paths = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    environment = os.environ | dict(suite.environment)
    environment |= {"DOWNSTREAM_NAMESPACE": namespace, "PYTHONPATH": paths, "JAX_ENABLE_X64": "1"}
    with tempfile.TemporaryDirectory() as scratch:
        settings, record = Path(scratch, "pytest.ini"), Path(scratch, "record")
        settings.write_text(_SETTINGS)
        command = [sys.executable, "-m", "pytest", "-q", "--tb=no", "--disable-warnings"]
        command += ["-p", "no:cacheprovider", "-c", str(settings), "--rootdir", str(suite.site())]
        command += ["-p", "tests.downstream.record", f"--record={record}"]
        command += ["-p", f"tests.downstream.{suite.plugin}", *suite.options, *arguments]
        began = time.monotonic()
        done = subprocess.run(
            [*command, *map(str, suite.modules())],
            cwd=scratch,
            env=environment,
            capture_output=True,
            text=True,
        )
        if done.returncode not in (0, 1):  # passed, failed
            said = done.stdout[-3000:] + done.stderr[-3000:]
            sys.exit(f"{suite.project} on {namespace} did not run:\n{said}")
        lines = record.read_text().splitlines()
    tests = {}
    for name, outcome, message in map(json.loads, lines):
        tests[name.replace(namespace, "xp")] = outcome, message
    return Result(tests, (time.monotonic() - began) / 60)


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests.downstream", description=__doc__.splitlines()[0])
    parser.add_argument("--suites", nargs="+", default=list(SUITES), choices=SUITES)
    parser.add_argument("--libraries", nargs="+", default=["numpy", "torch"], metavar="LIBRARY")
    parser.add_argument(
        "--write", action="store_true", help="keep the counts in tests/downstream/results.md"
    )
    parser.add_argument("--json", type=Path, help="a file for the outcome of every test")
    parser.add_argument("arguments", nargs="*", help="more for pytest, after --")
    chosen = parser.parse_args()
    if missing := [name for name in chosen.suites if not SUITES[name].installed()]:
        parser.error(f"not installed: {', '.join(missing)}; pip install -e '.[test,downstream]'")
    found: dict[str, dict[str, Result]] = {}
    for name in chosen.suites:
        found[name] = {}
        for namespace in SUITES[name].namespaces(chosen.libraries):
            result = found[name][namespace] = run(SUITES[name], namespace, chosen.arguments)
            counts = ", ".join(f"{n} {outcome}" for outcome, n in sorted(result.counts().items()))
            print(f"{name} on {namespace}: {counts}, {result.minutes:.1f} minutes", flush=True)
    if chosen.json:
        kept = {name: {k: r.tests for k, r in of.items()} for name, of in found.items()}
        chosen.json.write_text(json.dumps(kept, indent=0))
    text, unknown = page(found)
    print(f"\n{text}")
    if chosen.write:
        PAGE.write_text(text)
    sys.exit(bool(unknown))


if __name__ == "__main__":
    main()
