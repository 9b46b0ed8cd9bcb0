"""Entry points: ours for the standard's namespaces, and those of libraries for us."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import distributions
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.extra.array_api import make_strategies_namespace

import arraybridge as ab
from tests.support.installation import POINTS, distribution
from tests.support.processes import ROOT

NAMESPACES = {
    path.stem
    for path in (ROOT / "arraybridge" / "xp").glob("*.py")
    if "\npublished(__name__)" in path.read_text()
}


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
    xps = make_strategies_namespace(xp)
    assert xps.api_version == "2025.12"
    dtypes = (
        xps.boolean_dtypes() | xps.integer_dtypes(sizes=(8, 16, 32)) | xps.floating_dtypes(sizes=32)
    )

    @settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])  # JAX compiles
    @given(xps.arrays(dtypes, xps.array_shapes(min_dims=0, min_side=0, max_side=3)))
    def valid(x):
        assert isinstance(x, ab.Array)
        assert x.__array_namespace__() is xp
        assert np.asarray(x).shape == x.shape
        assert ab.inspect(x).dtype_name == np.asarray(x).dtype.name

    valid()
