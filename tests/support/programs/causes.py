"""Why some programs do not run on Arrays: the causes that the table of programs names."""

from __future__ import annotations

from .record import Failure

SUM = Failure(
    "has no 'sum'",
    "SciPy's: it calls the method `x.sum()`, which the standard's array does not have.",
)
VIEW = Failure(
    "has no 'view'",
    "SciPy's: it calls NumPy's method `x.view(float)`; its source says that this is not portable.",
)
FLAT = Failure(
    "has no 'flat'",
    "scikit-learn's: it writes through NumPy's attribute `x.flat`; PyTorch's and JAX's own arrays "
    "fail alike.",
)
ZEROS_LIKE = Failure(
    r"takes arraybridge Arrays, got numpy\.ndarray",
    "SciPy's: it takes `numpy.zeros_like(y)` for an array of the caller's library; PyTorch's own "
    "tensors fail alike.",
)
HSTACK = Failure(
    "Multiple namespaces",
    "scikit-learn's: it joins the labels with `numpy.hstack`, and then finds two libraries; "
    "PyTorch's and JAX's own arrays fail alike.",
)
HSTACK_TORCH = HSTACK._replace(match="isdtype takes data types of torch")
NUMPYS_CODE = Failure(
    "native ndarray in one operation",
    "scikit-learn's: written for NumPy alone (not in its list of estimators for the array API), it "
    "takes medians with `numpy` and mixes them in; PyTorch's own tensors fail alike.",
)
NUMPYS_CODE_TORCH = NUMPYS_CODE._replace(match="isdtype takes data types of torch")
COMPLEX_ROOTS = Failure(
    "complex128 .* in place of float64",
    "SciPy's choice: real roots come back as floats on NumPy itself, as complex numbers on every "
    "other library.",
)
THROUGH_A_VIEW = Failure(
    "other values",
    "The client's: it writes through a slice of an array (`y = x[1:]; y += 1`) and expects `x` to "
    "change, which the standard leaves open; JAX has no such views, its own arrays do no better.",
)
WRITABLE = Failure(
    "buffer source array is read-only",
    "SciPy's: its compiled code asks for writable memory though it only reads; JAX's memory is "
    "not, its own arrays fail alike.",
)
