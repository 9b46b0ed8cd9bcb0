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
        r"test_support_alternative_backends_mismatched_dtypes\[(rel_entr|xlogy)-",
        "float32",
        "int64 and float32 together, which the standard leaves open, are float32 in PyTorch and "
        "float64 in NumPy, which is the test's measure; array-api-strict refuses them, and SciPy "
        "then chooses float64.",
    ),
    Cause(
        "scipy",
        r"TestVectorizedFilter::test_input_validation",
        "asarray takes numbers",
        "SciPy passes a text on to `asarray` and its test knows the words of each library's error.",
    ),
    Cause(
        "xarray",
        r"test_dot\[",
        "",
        "opt_einsum looks for `einsum` and `tensordot` in the package that the array's class comes "
        "from, which is array-api-strict's namespace; the package `arraybridge` is none.",
    ),
)

# array-api-extra expects an error by the name of the library, of array-api-strict alone, and of
# every other library that it goes well. These Arrays are in the first case.
AS_STRICT = {
    "array_api_extra/tests/main/test_at.py::test_incompatible_dtype": (
        "floating-point numbers written into an array of integers are an error"
    ),
    "array_api_extra/tests/main/test_testing.py::test_lazy_xp_function_cython_ufuncs": (
        "ufuncs of NumPy's kind do not take an Array"
    ),
}
# And these it skips on array-api-strict by its name.
EXCUSED = {
    "array_api_extra/tests/main/test_set.py::TestNUnique::test_delegates": (
        "it asks for a delegate, which array-api-extra has by the names of libraries"
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
