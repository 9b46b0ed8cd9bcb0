"""Why some programs fail on Arrays: the causes named in the table of programs."""

from .record import Failure

SUM = Failure(
    "has no 'sum'",
    "SciPy calls the method `x.sum()`, which the standard's array does not have.",
)
VIEW = Failure(
    "has no 'view'",
    "SciPy calls NumPy's method `x.view(float)`; its source says that this is not portable.",
)
FLAT = Failure(
    "has no 'flat'",
    "scikit-learn writes through NumPy's attribute `x.flat`; PyTorch's and JAX's own arrays fail "
    "as well.",
)
ZEROS_LIKE = Failure(
    r"takes arraybridge Arrays, got numpy\.ndarray",
    "SciPy treats `numpy.zeros_like(y)` as an array of the caller's library; PyTorch's own tensors "
    "fail as well.",
)
HSTACK = Failure(
    "Multiple namespaces",
    "scikit-learn joins the labels with `numpy.hstack`, and then finds two libraries; PyTorch's "
    "and JAX's own arrays fail as well.",
)
NUMPYS_CODE = Failure(
    "native ndarray in one operation",
    "scikit-learn wrote this for NumPy alone (it is not in its list of estimators for the array "
    "API), and mixes in medians computed by `numpy`; PyTorch's own tensors fail as well.",
)
COMPLEX_ROOTS = Failure(
    "complex128 .* in place of float64",
    "SciPy chooses to return real roots as floats on NumPy itself, and as complex numbers on every "
    "other library.",
)
THROUGH_A_VIEW = Failure(
    "other values",
    "The program writes through a slice of an array (`y = x[1:]; y += 1`) and expects `x` to "
    "change, which the standard leaves open; JAX has no such views: its own arrays fail as well.",
)
WRITABLE = Failure(
    "buffer source array is read-only",
    "SciPy's compiled code requires writable memory although it only reads; JAX's memory is not "
    "writable, and its own arrays fail as well.",
)
