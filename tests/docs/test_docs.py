"""Every snippet of the documentation runs, and prints what it says."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import os
import re
import shlex
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import arraybridge as ab
from tests.support.optional import needs
from tests.support.processes import ROOT, run_python

DOCS = ROOT / "docs"
MADE = {"_build", "generated"}  # folders that Sphinx writes
PAGES = [
    ROOT / "README.md",
    *(page for page in sorted(DOCS.rglob("*.md")) if not MADE & set(page.relative_to(DOCS).parts)),
]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
MODULES = ("arraybridge.dlpack.device", "arraybridge.dlpack.dtypes")
# By import names: what `make test` installs, and what the extras `heavy` and `engines` add.
LIGHT = {
    *("torch", "jax", "pyarrow", "tvm_ffi", "array_api_strict", "ml_dtypes", "dask", "pint"),
    *("scipy", "sklearn", "array_api_extra", "PIL"),
}
HEAVY = {
    *("tensorflow", "paddle", "mlx", "warp", "dpnp", "cuda", "onnxruntime", "openvino"),
    *("arro3", "awkward", "cffi", "distributed", "duckdb", "h5py", "nanoarrow", "pandas"),
    *("polars", "ray", "sparse", "xarray", "zarr"),
}


def blocks(page: Path, language: str) -> list[tuple[int, str]]:
    """(line, text) of the fenced blocks of one language."""
    text = page.read_text()
    return [
        (text.count("\n", 0, match.start(1)), match.group(1))
        for match in re.finditer(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    ]


class Block(NamedTuple):
    """A ``python`` block: ``libraries`` are those that it imports, or names to convert to."""

    line: int
    text: str
    libraries: set[str]
    heavy: bool


def python_blocks(page: Path) -> list[Block]:
    """The blocks of doctests; what uses a name that a heavy block made is heavy as well."""
    found: list[Block] = []
    made: set[str] = set()
    for line, text in blocks(page, "python"):
        source = "".join(example.source for example in doctest.DocTestParser().get_examples(text))
        libraries: set[str] = set()
        bound: set[str] = set()
        used: set[str] = set()
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Import):
                libraries |= {alias.name.partition(".")[0] for alias in node.names}
                bound |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                libraries.add(str(node.module).partition(".")[0])
                bound |= {alias.asname or alias.name for alias in node.names}
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                libraries.add(node.value.partition(".")[0])
            elif isinstance(node, ast.FunctionDef | ast.ClassDef):
                bound.add(node.name)
            elif isinstance(node, ast.Name):
                (used if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        heavy = bool(libraries & HEAVY or used & made)
        if heavy:
            made |= bound
        else:
            made -= bound
        found.append(Block(line, text, libraries & (LIGHT | HEAVY), heavy))
    return found


def runs() -> list[Any]:
    """Each page without its heavy blocks, and each page that has some with all of them."""
    params = []
    for page in PAGES:
        name = str(page.relative_to(DOCS)) if page.is_relative_to(DOCS) else page.name
        found = python_blocks(page)
        light = [block for block in found if not block.heavy]
        if light:
            marks = [needs(*sorted(set().union(*(block.libraries for block in light))))]
            params.append(pytest.param(page, light, id=name, marks=marks))
        if len(light) < len(found):
            marks = [needs(*sorted(set().union(*(b.libraries for b in found)))), pytest.mark.heavy]
            params.append(pytest.param(page, found, id=f"{name}, all", marks=marks))
    return params


@pytest.fixture
def untouched_jax():
    """Snippets may set jax_enable_x64."""
    import jax

    before = jax.config.jax_enable_x64
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.mark.usefixtures("untouched_jax")
@pytest.mark.parametrize(("page", "snippets"), runs())
def test_python_snippets(page, snippets):
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    parser = doctest.DocTestParser()
    names: dict[str, object] = {}
    for line, text, _, _ in snippets:
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
        output,
        id=f"{page.name}: {command}",
        marks=needs(*{"torch"} & set(re.findall(r"\w+", command))),
    )
    for page in PAGES
    for _, text in blocks(page, "console")
    for command, output in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE)
]


@pytest.mark.parametrize(("command", "output"), COMMANDS)
def test_console_snippets(command, output, tmp_path):
    """What a block shows of the output is what it is; ``...`` stands for anything."""
    words = shlex.split(command)
    assert words[:3] == ["python", "-m", "arraybridge"], f"no test runs {command!r}"
    env = {**os.environ, "COLUMNS": "120", "NO_COLOR": "1"}
    done = run_python(*words[1:], cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    if output:
        assert doctest.OutputChecker().check_output(output, done.stdout, FLAGS), done.stdout


def test_every_function_is_an_answer_to_which_call():
    told = (DOCS / "start" / "which_call.md").read_text()
    functions = [name for name in ab.__all__ if inspect.isroutine(getattr(ab, name))]
    assert len(functions) > 15
    assert [name for name in functions if not re.search(rf"\bab\.{name}\b", told)] == []
