"""Every snippet of the documentation runs, and prints what it says."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
import shlex
from pathlib import Path
from typing import Any

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
MODULES = ("arraybridge.dlpack.types",)
# By import names: what `make test` installs, and what the extras `heavy` and `engines` add.
LIGHT = {
    *("torch", "jax", "pyarrow", "tvm_ffi", "array_api_strict", "ml_dtypes", "dask", "pint"),
    *("scipy", "sklearn", "array_api_extra", "PIL"),
}
HEAVY = {
    *("tensorflow", "paddle", "mlx", "warp", "dpnp", "onnxruntime", "openvino", "arro3"),
    *("awkward", "cffi", "duckdb", "h5py", "nanoarrow", "pandas", "polars"),
    *("ray", "sparse", "xarray", "zarr"),
}


def blocks(page: Path, language: str) -> list[tuple[int, str]]:
    """(line, text) of the fenced blocks of one language."""
    text = page.read_text()
    return [
        (text.count("\n", 0, match.start(1)), match.group(1))
        for match in re.finditer(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    ]


def runs() -> list[Any]:
    """Each page with Python, and the libraries that its code needs."""
    params = []
    for page in PAGES:
        found = blocks(page, "python")
        code = "".join(
            example.source
            for _, text in found
            for example in doctest.DocTestParser().get_examples(text)
        )
        used = set(re.findall(r"\w+", code)) & (LIGHT | HEAVY)
        marks = [needs(*sorted(used)), *[pytest.mark.heavy] * bool(used & HEAVY)]
        if found:
            params.append(pytest.param(page, found, id=str(page.relative_to(ROOT)), marks=marks))
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
    for line, text in snippets:
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
    for part in excerpt.rstrip("\n").split("\n...\n"):
        assert part.strip("\n") in source, f"{path} has no\n{part}"


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name):
    result = doctest.testmod(importlib.import_module(name), optionflags=FLAGS)
    assert result.attempted
    assert result.failed == 0


COMMANDS = [
    pytest.param(*shown, id=f"{page.name}: {shown[0]}", marks=needs(*["torch"] * ("torch" in text)))
    for page in PAGES
    for _, text in blocks(page, "console")
    for shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", text, re.MULTILINE)
]


@pytest.mark.parametrize(("command", "output"), COMMANDS)
def test_console_snippets(command, output, tmp_path):
    """What a block shows of the output is what it is; ``...`` stands for anything."""
    words = shlex.split(command)
    assert words[:3] == ["python", "-m", "arraybridge"], f"no test runs {command!r}"
    done = run_python(*words[1:], cwd=tmp_path, check=True)
    if output:
        assert doctest.OutputChecker().check_output(output, done.stdout, FLAGS), done.stdout


def test_every_function_is_an_answer_to_which_call():
    told = (DOCS / "start" / "which_call.md").read_text()
    functions = [name for name in ab.__all__ if inspect.isroutine(getattr(ab, name))]
    assert len(functions) > 15
    assert [name for name in functions if not re.search(rf"\bab\.{name}\b", told)] == []


MAP = (DOCS / "code_map.md").read_text()


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`((?:\w+/)*\w+(?:\.py|/))`", MAP))))
def test_paths_of_the_code_map(path):
    assert any((folder / path).exists() for folder in (ROOT, ROOT / "arraybridge"))
