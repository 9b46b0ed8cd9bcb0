"""Why a test fails on Arrays and passes on array-api-strict."""

from __future__ import annotations

import re
from typing import NamedTuple


class Cause(NamedTuple):
    """One reason: the tests whose names and messages match have it."""

    suite: str
    test: str
    message: str
    why: str


CAUSES = (
    Cause(
        "scipy",
        r"FiltFilt::test_sine",
        "ufunc|NumPy",
        "The test hands its arrays to `np.abs` and `np.vstack`, which give NumPy's in silence for "
        "those of array-api-strict; for Arrays NumPy's functions are a TypeError that says what to "
        "call.",
    ),
    Cause(
        "scipy",
        r"test_support_alternative_backends_mismatched_dtypes\[(rel_entr|xlogy)-",
        "float32",
        "int64 and float32 together, which the standard leaves open, are float32 in PyTorch and "
        "float64 in NumPy, which is the test's measure; array-api-strict refuses them, and SciPy "
        "then chooses float64.",
    ),
    Cause(
        "xarray",
        r"test_dot\[",
        "",
        "opt_einsum looks for `einsum` and `tensordot` in the package that the array's class comes "
        "from, which is array-api-strict's namespace; the package `arraybridge` is none.",
    ),
)

# Tests that tell libraries apart by name, where one of ours belongs with array-api-strict.
EXCUSED = {
    "array_api_extra/tests/main/test_testing.py::test_lazy_xp_function_cython_ufuncs": (
        "array-api-strict is expected to refuse NumPy's ufuncs, every other library to dispatch "
        "them; Arrays refuse them with a TypeError"
    ),
    "array_api_extra/tests/main/test_set.py::TestNUnique::test_delegates": (
        "skipped for libraries that array-api-extra has no delegate for, by their names"
    ),
}


def cause_of(suite: str, test: str, message: str) -> str | None:
    """The reason why a test fails; None where it is not known."""
    for cause in CAUSES:
        if (
            cause.suite == suite
            and re.search(cause.test, test)
            and re.search(cause.message, message)
        ):
            return cause.why
    return None
