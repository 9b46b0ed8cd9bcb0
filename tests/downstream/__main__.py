"""Other projects' own tests on arraybridge's namespaces; a command, not a test.

    make downstream [SUITES="scipy xarray"] [LIBRARIES="numpy torch"] [WRITE=1]

The suites are those that the wheels of SciPy, array-api-extra, scikit-learn and xarray carry; none
of their code is in this repository. Each runs on every namespace and on array-api-strict, the
reference: a test that fails there as well requires more than the standard. Prints, and with
``--write`` keeps in tests/downstream/results.md, how many passed, and each test that fails on a
namespace and passes on the reference. Exits with 1 if the cause of one is not known (`CAUSES`).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from datetime import date
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from ..conformance import commit

ROOT = Path(__file__).resolve().parents[2]
PAGE = Path(__file__).with_name("results.md")
REFERENCE = "array_api_strict"
# Neither ours nor the projects', which wheels do not carry; but a hang is a failure here as well.
SETTINGS = "[pytest]\nfaulthandler_timeout = 600\nfaulthandler_exit_on_timeout = true\n"


class Suite(NamedTuple):
    """Tests that a project's wheel carries, in a package of it."""

    package: str
    mentions: str  # a regular expression: modules in which it is not found are not collected
    options: tuple[str, ...] = ()  # for pytest, where the project's own settings have them


SUITES = {  # by distribution
    "scipy": Suite("scipy", r"\bxp\b"),
    "array-api-extra": Suite(
        "array_api_extra.tests.main", r"\bxp\b", ("-W", "error::DeprecationWarning")
    ),
    "scikit-learn": Suite("sklearn", "yield_namespaces|yield_namespace_device_dtype_combinations"),
    "xarray": Suite("xarray.tests", r"NAMESPACE_ARRAYS = |importorskip\(.array_api_strict"),
}
#: (suite, test, message) -> why it fails here and passes on the reference.
CAUSES = {
    (
        "scipy",
        r"test_support_alternative_backends_mismatched_dtypes\[(rel_entr|xlogy)-",
        "float32",
    ): "int64 and float32 together, which the standard leaves open, give float32 in PyTorch and "
    "float64 in NumPy, which the test expects; array-api-strict refuses them, and SciPy then "
    "chooses float64",
    (
        "scipy",
        "TestVectorizedFilter::test_input_validation",
        "asarray takes numbers|no data type",
    ): "SciPy passes a string to `asarray`, and its test lists the messages of each library",
    (
        "scipy",
        "test_standard_deviation07|TestPower::test_input_validation",
        "uint8 without overflow|Mismatching argument",
    ): "PyTorch's own error for a negative number as uint8, and its own words for shapes",
    (
        "array-api-extra",
        "test_lazy_xp_function_cython_ufuncs|TestNUnique::test_delegates",
        "",
    ): "the test expects another result, by its name, of array-api-strict alone",
    (
        "xarray",
        "test_dot",
        "isinstance",
    ): "opt_einsum looks for `tensordot` in the package of an array's class; ours is in namespaces",
}
Outcomes = dict[str, tuple[str, str]]  # test -> outcome, message


def run(name: str, namespace: str, arguments: list[str]) -> Outcomes:
    """Run a suite on one namespace, in a process of its own."""
    suite = SUITES[name]
    folder = Path(str(find_spec(suite.package).origin)).parent
    site, mentions = folder.parents[suite.package.count(".")], re.compile(suite.mentions)
    modules = [
        p for p in sorted(folder.rglob("test_*.py")) if mentions.search(p.read_text("utf-8"))
    ]
    with tempfile.TemporaryDirectory() as scratch:
        settings, record = Path(scratch, "pytest.ini"), Path(scratch, "record")
        settings.write_text(SETTINGS)
        environment = {
            **os.environ,
            "DOWNSTREAM_SUITE": name,
            "DOWNSTREAM_NAMESPACE": namespace,
            "DOWNSTREAM_RECORD": str(record),
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
            "JAX_ENABLE_X64": "1",
            "SCIPY_ARRAY_API": "1",
        }
        command = [sys.executable, "-m", "pytest", "-q", "--tb=no", "--disable-warnings"]
        command += ["-p", "no:cacheprovider", "-c", settings, "--rootdir", site]
        command += ["-p", "tests.downstream.plugin", *suite.options, *arguments, *modules]
        done = subprocess.run(
            [*map(str, command)], cwd=scratch, env=environment, capture_output=True, text=True
        )
        if done.returncode not in (0, 1):  # passed, failed
            said = done.stdout[-3000:] + done.stderr[-3000:]
            sys.exit(f"{name} on {namespace} did not run:\n{said}")
        lines = map(json.loads, record.read_text().splitlines())
        return {test.replace(namespace, "xp"): (kind, why) for test, kind, why in lines}


def cause_of(name: str, test: str, message: str) -> str:
    """The reason why a test fails; empty where it is not known."""
    for (suite, tests, messages), why in CAUSES.items():
        if suite == name and re.search(tests, test) and re.search(messages, message):
            return why
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests.downstream", description=__doc__.splitlines()[0])
    parser.add_argument("--suites", nargs="+", default=list(SUITES), choices=SUITES)
    parser.add_argument("--libraries", nargs="+", default=["numpy", "torch"], metavar="LIBRARY")
    parser.add_argument("--write", action="store_true", help="keep the result in results.md")
    parser.add_argument("arguments", nargs="*", help="more for pytest, after --")
    chosen = parser.parse_args()
    lines = [
        "| tests of | on | passed | skipped | failed | passing on the reference |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    told, unknown = [], 0
    for name in chosen.suites:
        reference = run(name, REFERENCE, chosen.arguments)
        for library in (REFERENCE, *chosen.libraries):
            namespace = library if library == REFERENCE else f"arraybridge.xp.{library}"
            here = reference
            if library != REFERENCE:
                here = run(name, namespace, chosen.arguments)
            counts = Counter(kind for kind, _ in here.values())
            ours = {
                test: message
                for test, (kind, message) in here.items()
                if kind == "failed" and reference.get(test, ("", ""))[0] == "passed"
            }
            lines.append(
                f"| {name} {version(name)} | `{namespace}` | {counts['passed']} | "
                f"{counts['skipped'] + counts['xfailed']} | {counts['failed']} | "
                f"{'' if here is reference else len(ours)} |"
            )
            print(lines[-1], flush=True)
            for test, message in ours.items():
                why = cause_of(name, test, message)
                unknown += not why
                said = " ".join(message.split())[:150]
                told.append(f"- `{test}` on {library}: {why or f'not known: `{said}`'}")
    versions = ", ".join(f"{n} {version(n)}" for n in ("numpy", "torch", "array-api-strict"))
    lines += ["", f"Commit {commit(ROOT)[:7]}, {versions}; {date.today()}.", ""]
    lines += ["## Tests that fail here and pass on the reference", "", *(told or ["Nothing."])]
    text = "\n".join(lines) + "\n"
    print(f"\n{text}")
    if chosen.write:
        head = PAGE.read_text().partition("| tests of |")[0]
        PAGE.write_text(head + text)
    sys.exit(bool(unknown))


if __name__ == "__main__":
    main()
