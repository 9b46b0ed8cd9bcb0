"""cubed, which computes with the namespace that an environment variable names."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.optional import needs
from tests.support.processes import run_python

pytest.importorskip("cubed")
pytestmark = pytest.mark.heavy

PROGRAM = """
import sys
import numpy as np
import cubed, cubed.array_api as xp
import arraybridge as ab
from cubed.backend_array_api import namespace

library, folder = sys.argv[1:]
assert namespace.__name__ == "arraybridge.xp." + library, namespace
spec = cubed.Spec(work_dir=folder, allowed_mem="200MB")
values = np.arange(24.0).reshape(4, 6)
a = xp.asarray(values, chunks=(2, 3), spec=spec)
kinds = []

def look(chunk):
    kinds.append((type(chunk), chunk.library))
    return chunk * 2

b = cubed.map_blocks(look, a, dtype=a.dtype)
holes = xp.where(a > 20, xp.asarray(np.nan, spec=spec), a)
for found, wanted in [
    (b, values * 2),
    (xp.sum(xp.sqrt(a) + 1, axis=0), (np.sqrt(values) + 1).sum(0)),
    (xp.mean(a), values.mean()),
    (xp.std(a, axis=1), values.std(1)),
    (xp.max(a, axis=1), values.max(1)),
    (xp.argmax(a, axis=1), values.argmax(1)),
    (xp.matmul(a, xp.permute_dims(a, (1, 0))), values @ values.T),
    (xp.astype(a, xp.float32), values),
    (a[1:3, ::2], values[1:3, ::2]),
    (a[:, [5, 0]], values[:, [5, 0]]),
    (a.rechunk((4, 2)), values),
    (xp.isnan(holes), values > 20),
    (cubed.nanmean(holes), values[values <= 20].mean()),
    (xp.concat([a, a + 1]), np.concatenate([values, values + 1])),
]:
    result = found.compute()
    assert isinstance(result, ab.Array) and result.library == library, type(result)
    np.testing.assert_allclose(np.asarray(result), wanted, rtol=1e-6)
assert {of for _, of in kinds} == {library} and len(kinds) == 4, kinds
print(kinds[0][0].__name__)
"""


@pytest.mark.parametrize(
    ("library", "kind"),
    [("numpy", "NumPyArray"), pytest.param("torch", "TorchArray", marks=needs("torch"))],
)
def test_chunks_are_arrays(library, kind, tmp_path: Path):
    env = {"CUBED_BACKEND_ARRAY_API_MODULE": f"arraybridge.xp.{library}"}
    done = run_python("-c", PROGRAM, library, str(tmp_path), env=env)
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout.strip() == kind
