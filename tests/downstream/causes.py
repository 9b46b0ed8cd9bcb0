"""Why a test fails on Arrays and passes on the reference."""

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
        "int64 and float32 together, which the standard leaves open, give float32 in PyTorch and "
        "float64 in NumPy, which the test expects; array-api-strict refuses them, and SciPy "
        "then chooses float64.",
    ),
    Cause(
        "scipy",
        r"TestVectorizedFilter::test_input_validation",
        "asarray takes numbers",
        "SciPy passes a string to `asarray`, and its test lists the messages of each library.",
    ),
)

# array-api-extra expects an error from array-api-strict alone, by its name, and success from every
# other library. Arrays raise the error as well.
AS_STRICT = {
    "array_api_extra/tests/main/test_testing.py::test_lazy_xp_function_cython_ufuncs": (
        "NumPy ufuncs do not accept an Array"
    ),
}
# Tests that array-api-extra skips for array-api-strict by its name.
EXCUSED = {
    "array_api_extra/tests/main/test_set.py::TestNUnique::test_delegates": (
        "it requires a delegate, which array-api-extra chooses by the names of libraries"
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
