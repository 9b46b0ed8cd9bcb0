"""Entry points: ours for the standard's namespaces, and those of libraries for us."""

from __future__ import annotations

import os
import re
import shutil
import tomllib
from importlib import import_module
from importlib.metadata import distributions
from importlib.util import find_spec
from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis.extra.array_api import make_strategies_namespace

from arraybridge.core.entry_points import GROUP
from tests.support.processes import ROOT, command, python, run_python

NAMESPACES = {
    path.stem
    for path in (ROOT / "arraybridge" / "xp").glob("*.py")
    if "\npublished(__name__)" in path.read_text()
}
POINTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]


def distribution(site: Path, name: str, points: dict[str, dict[str, str]]) -> Path:
    """Write a distribution's metadata with entry points, as an installation does."""
    info = site / f"{name.replace('-', '_')}-0.1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1.0\n")
    lines = []
    for group, members in points.items():
        lines += [f"[{group}]", *(f"{name} = {place}" for name, place in members.items())]
    (info / "entry_points.txt").write_text("\n".join(lines))
    return site


@pytest.mark.parametrize("library", sorted(NAMESPACES))
def test_hypothesis_takes_the_namespaces_that_are_found(library, tmp_path):
    """By the standard's "Discoverability": the package's name, and where its namespace is."""
    home = distribution(tmp_path, "arraybridge-dlpack", POINTS)
    (found,) = distributions(path=[str(home)])
    points = {point.name: point for point in found.entry_points.select(group="array_api")}
    assert {name.rpartition(".")[2] for name in points} == NAMESPACES
    point = points[f"arraybridge.xp.{library}"]
    if find_spec(library) is None:
        with pytest.raises(ImportError, match="pip install"):
            point.load()
        return
    xp = point.load()
    assert xp is import_module(point.name)
    if library != "cupy":  # which needs a device for the array that Hypothesis makes
        assert make_strategies_namespace(xp).api_version == "2025.12"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder in which the package of docs/extending.md is installed: pip builds its wheel."""
    pytest.importorskip("pip")
    folder = tmp_path_factory.mktemp("site")
    source = shutil.copytree(ROOT / "tests" / "support" / "mylib", folder / "source")
    flags = "--quiet --no-deps --no-build-isolation --no-index --no-cache-dir --target".split()
    run_python("-m", "pip", "install", *flags, str(folder), str(source), check=True)
    return folder


def run(script: str, *sites: Path, words=()) -> str:
    path = os.pathsep.join(map(str, (*sites, ROOT)))
    start = "import pickle, sys, threading, warnings, numpy as np, arraybridge as ab\n"
    return python(start + dedent(script), *words, env={"PYTHONPATH": path})


FIRST = {
    "array": "import mylib; assert ab.convert(mylib.Grid([1, 1]), 'numpy').sum() == 2",
    "name": "assert ab.convert(ab.convert(np.ones(2), 'mylib'), 'numpy').sum() == 2",
    "module": "import mylib; assert ab.convert(np.ones(2), mylib).values.sum() == 2",
    "adapt": "assert ab.adapt('mylib')(lambda grid: grid.values.sum())(np.ones(2)) == 2",
    "another name": """
        try:
            ab.convert(np.ones(2), "mylip")
        except ValueError as error:
            assert "did you mean 'mylib'? arraybridge knows" in str(error), error
        assert "mylib" not in sys.modules
        assert ab.asarray([1.0, 1.0], like="mylib").values.sum() == 2
    """,
    "two threads": """
        barrier, sums = threading.Barrier(2), []
        def work():
            barrier.wait()
            sums.append(ab.convert(ab.convert(np.ones(2), "mylib"), "numpy").sum())
        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        assert sums == [2, 2]
    """,
}


@pytest.mark.parametrize("first", FIRST)
def test_a_library_is_found_when_it_is_needed(first, site):
    script = """
    Frame = type("Frame", (), {"__module__": "pandas.core.frame"})
    ab.unify(ab.convert(np.ones(2), "numpy"), Frame(), type("Mine", (), {})())
    assert "arraybridge.core.entry_points" not in sys.modules  # it takes milliseconds
    """
    run(f"{dedent(script)}{dedent(FIRST[first])}\nassert 'mylib.bridge' in sys.modules", site)


def test_a_registered_library_goes_first(site):
    script = """
    from mylib.bridge import GridLibrary
    class Other(GridLibrary):
        def wrap(self, tensor):
            return "other"
    for _ in "before", "after":
        ab.register_library(Other())
        assert ab.convert(np.ones(2), "mylib") == "other"
        ab.unregister_library("mylib")
        assert type(ab.convert(np.ones(2), "mylib")).__name__ == "Grid"
    """
    run(script, site)


def test_a_library_that_computes(tmp_path):
    """Its namespaces, and its Arrays from a pickle, in a process that has not seen it."""
    path = distribution(tmp_path, "boxes", {GROUP: {"boxed": "tests.support.boxed:LIBRARY"}})
    script = """
    from arraybridge.xp import boxed as xp
    x = ab.from_dlpack(ab.convert(np.ones(2), "boxed"))
    assert xp is ab.namespace(x)
    print(pickle.dumps(x).hex())
    """
    pickled = run(script, path)
    script = """
    x = pickle.loads(bytes.fromhex(sys.argv[1]))
    assert ab.namespace(x) is ab.xp.boxed
    assert ab.namespace("boxed") is ab.unify(np.ones(2), like="boxed")[0]
    """
    run(script, path, words=[pickled])


def test_what_is_broken_or_in_conflict_is_left_out_with_a_warning(site, tmp_path):
    distribution(tmp_path, "zebra", {GROUP: {"mylib": "zebra:LIBRARY"}})
    own = dict.fromkeys(("torch", "jaxlib", "pandas", "dlpack"), "rude:LIBRARY")
    distribution(tmp_path, "rude", {GROUP: own})
    broken = (
        ("gone", "gone.bridge:LIBRARY"),
        ("odd", "mylib:Grid"),
        ("alias", "mylib.bridge:LIBRARY"),
    )
    distribution(tmp_path, "broken", {GROUP: dict(broken)})
    script = """
    def caught(call):
        error = None
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            try:
                call()
            except (ImportError, TypeError) as raised:
                error = raised
        return [str(each.message) for each in seen], type(error), str(error)

    texts, *_ = caught(lambda: ab.convert(np.ones(2), "mylib"))
    of = [text.partition("entry point '")[2].partition(" = ")[0] for text in texts]
    assert of == "dlpack jaxlib pandas torch mylib".split(), texts
    assert "of rude 0.1.0 (arraybridge.libraries) is ignored: there is another" in texts[0]
    assert "of zebra 0.1.0 (arraybridge.libraries) is ignored" in texts[4]
    for name, why in {
        "gone": "ModuleNotFoundError: No module named 'gone'",
        "odd": "TypeError: register_library takes an instance",
        "alias": "ValueError: the library's name is 'mylib'",
    }.items():
        array = type("Array", (), {"__module__": name})()
        (seen,), error, text = caught(lambda: ab.convert(array, "numpy"))
        assert error is TypeError and "not an array" in text, text
        assert f"the entry point '{name} = " in seen and why in seen, seen
        assert "of broken 0.1.0 (arraybridge.libraries) does not load" in seen, seen
        assert caught(lambda: ab.convert(np.ones(2), name)) == ([], ImportError, seen)
        assert caught(lambda: ab.convert(type(array)(), "numpy"))[0] == []
    """
    run(script, tmp_path, site)


def test_the_command_line_lists_them(site, tmp_path):
    path = os.pathsep.join(map(str, (site, ROOT)))
    for words, line in (
        (("info",), r"^ *mylib +1\.2$"),
        (("explain", "mylib", "numpy", "--dtype", "float64"), r"^mylib -> numpy on cpu: view"),
    ):
        said = command(*words, cwd=tmp_path, PYTHONPATH=path).stdout
        assert re.search(line, said, re.MULTILINE), said
