"""Every snippet of the documentation runs, and prints what it says."""

from __future__ import annotations

import doctest
import importlib
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import arraybridge as ab

from .support.optional import needs

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
MODULES = ("arraybridge.dlpack.device", "arraybridge.dlpack.dtypes")


def blocks(page: Path, language: str) -> list[tuple[int, str]]:
    """(line, text) of the fenced blocks of one language."""
    text = page.read_text()
    return [
        (text.count("\n", 0, match.start(1)), match.group(1))
        for match in re.finditer(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    ]


def named(page: Path) -> list[str]:
    """The libraries that a page's snippets use."""
    words = {word for _, text in blocks(page, "python") for word in re.findall(r"\w+", text)}
    return sorted(words & {"torch", "jax", "pyarrow", "tvm_ffi", "array_api_strict", "ml_dtypes"})


@pytest.fixture
def untouched_jax():
    """Snippets may set jax_enable_x64."""
    import jax

    before = jax.config.jax_enable_x64
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.mark.usefixtures("untouched_jax")
@pytest.mark.parametrize(
    "page", [pytest.param(page, id=page.name, marks=needs(*named(page))) for page in PAGES]
)
def test_python_snippets(page):
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    parser = doctest.DocTestParser()
    names: dict[str, object] = {}
    for line, text in blocks(page, "python"):
        test = parser.get_doctest(text, names, page.name, str(page), line)
        assert test.examples, f"{page.name}:{line}: a python block without >>> is never run"
        report: list[str] = []
        runner.run(test, out=report.append, clear_globs=False)
        names.update(test.globs)
        assert runner.summarize(verbose=False).failed == 0, "".join(report)


EXCERPTS = [
    pytest.param(text, id=f"{page.name}:{line}")
    for page in PAGES
    for line, text in blocks(page, "py")
]


@pytest.mark.parametrize("text", EXCERPTS)
def test_excerpts_are_of_the_source(text):
    """A block of ``py`` begins with the name of a file; ``...`` stands for what lies between."""
    path, _, excerpt = text.partition("\n")
    source = (ROOT / path.removeprefix("# ")).read_text()
    at = 0
    for part in excerpt.rstrip("\n").split("\n...\n"):
        at = source.find(part.strip("\n"), at)
        assert at >= 0, f"{path} has no\n{part}"


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name):
    result = doctest.testmod(importlib.import_module(name), optionflags=FLAGS)
    assert result.attempted
    assert result.failed == 0


COMMANDS = [
    pytest.param(
        command,
        id=f"{page.name}: {command}",
        marks=needs(*{"torch"} & set(re.findall(r"\w+", command))),
    )
    for page in PAGES
    for _, text in blocks(page, "console")
    for command in re.findall(r"^\$ (.*)$", text, re.MULTILINE)
]


@pytest.mark.parametrize("command", COMMANDS)
def test_console_snippets(command, tmp_path):
    words = shlex.split(command)
    assert words[:3] == ["python", "-m", "arraybridge"], f"no test runs {command!r}"
    subprocess.run([sys.executable, *words[1:]], check=True, cwd=tmp_path, timeout=300)


def test_every_method_of_a_library_is_told_of():
    told = (ROOT / "docs" / "extending.md").read_text()
    names = [name for name in vars(ab.Library) if not name.startswith("_") and name != "no_wrap"]
    assert [name for name in names if not re.search(rf"\b{name}\b", told)] == []


def test_a_wrong_snippet_fails():
    """The runner above is able to fail."""
    test = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, 0)
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    runner.run(test, out=lambda _: None)
    assert runner.failures == 1
