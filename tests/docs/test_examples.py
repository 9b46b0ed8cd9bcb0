"""Every program of examples/ runs to its end and prints what its page in docs/examples/ shows.

A line ``...`` of a page stands for lines that the page leaves out.

``python -m tests.docs.test_examples [name ...]`` writes the output of programs into their pages.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.support.optional import installed
from tests.support.processes import ROOT, run_python

PROGRAMS = sorted((ROOT / "examples").glob("*.py"))
PAGES = ROOT / "docs" / "examples"
#: The pages of the folder that belong to no program.
OTHERS = {"index", "tour"}

_PRINTED = re.compile(r"^(It prints\b.*:\n\n```text\n)(.*?)(^```$)", re.M | re.S)
#: What differs between machines or runs, and its replacement.
_FIGURES = (
    (re.compile(r"0x[0-9a-f]+"), "<address>"),
    (re.compile(r"\d[\d,.]* (ns|us|µs|ms|s|GB/s)\b"), r"<n> \1"),
    (re.compile(r"\d[\d.]* times"), "<n> times"),
    (re.compile(r"\d\.\de[-+]\d+"), "<rounding>"),
    (re.compile(r"[ \t]+"), " "),  # columns are as wide as their figures
)


def page_of(program: Path) -> Path:
    """The page of a program."""
    return PAGES / f"{program.stem}.md"


def shown(page: Path) -> str:
    """The output that a page shows of its program."""
    found = _PRINTED.search(page.read_text())
    assert found, f"{page.name} has no block of text after 'It prints'"
    return found[2]


def run(program: Path, folder: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a program in a folder; UserWarnings are errors."""
    flags = ("-W", "error::UserWarning")
    return run_python(*flags, str(program), cwd=folder, env={"COLUMNS": "100"})


def printed(done: subprocess.CompletedProcess[str]) -> str:
    """The output of a program, with paths relative to the top of the repository."""
    lines = done.stdout.replace(f"{ROOT}{os.sep}", "").splitlines()
    return "".join(f"{line.rstrip()}\n" for line in lines).strip("\n") + "\n"


def without_figures(text: str) -> str:
    """The text with names for times, addresses and errors of rounding."""
    for pattern, name in _FIGURES:
        text = pattern.sub(name, text)
    return text


def shows(page: str, output: str) -> bool:
    """Whether a page shows an output, or parts of it in their order."""
    pattern = "".join(
        r"(?:.*\n)+?" if line == "..." else re.escape(f"{line}\n") for line in page.splitlines()
    )
    return re.fullmatch(pattern, output) is not None


#: What `make test` does not install.
ENGINES = {
    *("arro3", "awkward", "distributed", "duckdb", "h5py", "nanoarrow", "onnxruntime"),
    *("openvino", "pandas", "polars", "ray", "sparse", "xarray", "zarr"),
}


#: They take several seconds each; faster ones show the same functions.
SLOW = set(
    """dask_tensors decode_images gradients_jax_in_torch gradients_torch_in_jax
    kmeans_five_libraries numba_kernel one_batch_two_frameworks parquet_to_torch scipy_on_tensors
    video_frames weights_jax_to_torch_sharded""".split()
)


def imported(program: Path) -> set[str]:
    """The top-level names of all imports of a program."""
    names = set()
    for node in ast.walk(ast.parse(program.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.partition(".")[0])
    return names


def case(program: Path):
    slow = program.stem in SLOW or imported(program) & ENGINES
    marks = [pytest.mark.heavy] if slow else []
    return pytest.param(program, id=program.stem, marks=marks)


@pytest.mark.parametrize("program", [case(program) for program in PROGRAMS])
def test_example_prints_what_its_page_shows(program: Path, tmp_path: Path) -> None:
    missing = sorted(name for name in imported(program) if not installed(name))
    if missing:
        pytest.skip(f"{', '.join(missing)} is not installed")
    done = run(program, tmp_path)
    assert done.returncode == 0, done.stderr[-4000:]
    assert "Traceback" not in done.stderr, done.stderr[-4000:]
    assert "Warning" not in done.stderr, done.stderr[-4000:]
    expected, output = shown(page_of(program)), printed(done)
    assert shows(without_figures(expected), without_figures(output)), output


def test_every_program_has_a_page_and_every_page_a_program() -> None:
    assert {page.stem for page in PAGES.glob("*.md")} == {p.stem for p in PROGRAMS} | OTHERS


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem)
def test_page_shows_the_program(program: Path) -> None:
    text = page_of(program).read_text()
    path = program.relative_to(ROOT)
    assert f"```{{literalinclude}} ../../{path}\n" in text
    assert f"](../../{path})" in text  # for readers of the page on a code host
    assert 2 <= len(re.findall("^- ", text, re.M)) <= 3
    assert re.search(r"^Next: \[", text, re.M)


def test_gallery_shows_every_page() -> None:
    text = (PAGES / "index.md").read_text()
    links = re.findall(r"^- \[.*\]\((\w+)\.md\)", text, re.M)
    tree = {line for line in text.splitlines() if re.fullmatch(r"\w+", line)}
    programs = {program.stem for program in PROGRAMS}
    assert sorted(links) == sorted(programs | {"tour"})
    assert tree == programs | (OTHERS - {"index"})


def main(names: list[str]) -> None:
    """Write the output of programs into their pages; print it for pages that show parts of it."""
    for program in PROGRAMS:
        page = page_of(program)
        if (names and program.stem not in names) or not page.exists():
            continue
        with tempfile.TemporaryDirectory() as folder:
            done = run(program, folder)
        if done.returncode:
            sys.exit(f"{program.name}: {done.stderr}")
        if "...\n" in shown(page):
            sys.stdout.write(f"{page.name}\n{printed(done)}\n")
            continue
        text = page.read_text()
        start, end = _PRINTED.search(text).span(2)
        page.write_text(text[:start] + printed(done) + text[end:])


if __name__ == "__main__":
    main(sys.argv[1:])
