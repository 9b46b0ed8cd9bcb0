"""Why a test fails on Arrays, or on blocks of Dask's, and passes on the reference."""

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
    *(
        Cause("dask", r"test_(reductions|ufunc|routines)\.py", message, why)
        for message, why in (
            (
                r"a block of \S+ and a numpy\.ndarray in one|of blocks and a numpy\.ndarray"
                r"|with out= of ndarray|^TypeError: numpy would make an ndarray",
                "Documented refusal: a block beside an ndarray. The test computes with an array of "
                "NumPy's and such a Dask array, or Dask's kernel makes positions by NumPy.",
            ),
            (
                r"takes no weights=|method must be one of linear",
                "Documented refusal: quantiles by other methods than linear, lower, higher, "
                "nearest, midpoint and inverted_cdf.",
            ),
            (
                r"(take|takes) blocks of|dask\.array\.unique does not support",
                "Documented refusal: functions of NumPy's that the standard lacks and arraybridge "
                "does not compose.",
            ),
            (
                "an ndarray's index would make",
                "Documented refusal: positions of a mask, which Dask takes out of NumPy's indices.",
            ),
            (
                "pandas would make",
                "Documented refusal: functions that Dask leaves to pandas.",
            ),
            (
                "does not take an arraybridge Array|an arraybridge Array has no",
                "Documented refusal: NumPy's functions and methods of what is computed, an Array, "
                "which Dask computes first if it is passed by keyword (weights).",
            ),
            (
                "no order of complex numbers",
                "Documented refusal: the standard has no order of complex numbers.",
            ),
            (
                "has no DLPack type|no data type for NumPy's object|would lose its mask",
                "Documented refusal: objects, text, dates and masked arrays, which have no DLPack "
                "type.",
            ),
            (
                "zero-size array",
                "Documented refusal: the largest and smallest of an empty block, of which Dask "
                "makes one of other extents.",
            ),
            (
                "DID NOT WARN",
                "Dask's own: the test expects a warning that NumPy gives.",
            ),
            (
                r"isinstance\(|numpy\.float64'>|transpose\(\): argument|only an array of zero dim"
                r"|have different shapes|must be a sequence of length",
                "Dask's own: the test takes what is computed for an array or a number of NumPy's.",
            ),
            (
                "DID NOT RAISE",
                "Documented refusal, in `compute`: the test expects it of the call before.",
            ),
            (
                "to-torch|to-numpy",
                "Dask's own: the test counts the layers of the graph, and the conversion is one.",
            ),
        )
    ),
)

# array-api-extra expects an error from array-api-strict alone, by its name, and success from every
# other library. Arrays raise the error as well.
AS_STRICT = {
    "array_api_extra/tests/main/test_at.py::test_incompatible_dtype": (
        "writing floating-point numbers to an array of integers is an error"
    ),
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
