"""A name that is unknown: the message says which known one was meant, wherever it is given."""

from __future__ import annotations

import numpy as np
import pytest

import arraybridge as ab

X = np.ones((1, 2, 3, 4), np.float32)

# How the message begins, the calls that take a name, and what is given = what is meant.
NAMES = {
    "order": (
        "order is '{}'",
        (
            lambda name: ab.convert(X, "torch", order=name),
            lambda name: ab.convert(X, "numpy", order=name, dtype="float64"),
            lambda name: ab.explain(X, "torch", order=name),
            lambda name: ab.adapt("torch", order=name),
        ),
        "NHWC nhwc channels-last = channels_last; c NCHW C_CONTIGUOUS row-major = C; "
        "f Fortran = F; k A = K",
    ),
    "dtype": (
        "'{}'",
        (
            lambda name: ab.convert(X, "torch", dtype=name),
            lambda name: ab.explain(X, "torch", dtype=name),
            lambda name: ab.asarray(X, like="torch", dtype=name),
            lambda name: ab.asarray([1], like="torch", dtype=name),
            lambda name: ab.unify(X, dtype=name),
            lambda name: ab.adapt("torch", dtype=name),
            lambda name: ab.DataType(name),
        ),
        "flaot32 Float32 float_32 torch.float32 = float32; fp16 = float16; bf16 = bfloat16; "
        "unit8 = uint8",
    ),
    "casting": (
        "casting is '{}'",
        (
            lambda name: ab.convert(X, "torch", dtype="float64", casting=name),
            lambda name: ab.explain(X, "torch", dtype="float64", casting=name),
            lambda name: ab.asarray(X, like="torch", dtype="float64", casting=name),
        ),
        "safely = safe; same-kind = same_kind; Unsafe = unsafe",
    ),
    "device": (
        "unknown device '{}'",
        (
            lambda name: ab.convert(X, "torch", device=name),
            lambda name: ab.explain(X, "torch", device=name),
            lambda name: ab.asarray(X, like="torch", device=name),
            lambda name: ab.from_dlpack(X, device=name),
            lambda name: ab.Device(name),
        ),
        "cdua cuda0 cuad:1 = cuda; host = cpu",
    ),
    "library": (
        "no library '{}'",
        (
            lambda name: ab.convert(X, name),
            lambda name: ab.explain(X, name),
            lambda name: ab.asarray([1], like=name),
            lambda name: ab.unify(X, like=name),
            lambda name: ab.adapt(name),
            lambda name: ab.from_dlpack(X).to(name),
        ),
        "pytorch Torch = torch; np numpyy nunpy = numpy; tf = tensorflow; jax.numpy jnp = jax; "
        "mlx.core = mlx; tvm = tvm_ffi; PIL = pillow; pyarrow.array = pyarrow.Array",
    ),
    "copies": ("copies is '{}'", (lambda name: ab.audit(copies=name),), "forbids = forbid"),
    "result": (
        "result is '{}'",
        (lambda name: ab.adapt("torch", result=name),),
        "calller = caller",
    ),
}
ROWS = [
    (message, calls, given, meant.strip())
    for message, calls, rows in NAMES.values()
    for names, _, meant in (row.partition("=") for row in rows.split(";"))
    for given in names.split()
]


@pytest.mark.parametrize(
    ("message", "calls", "given", "meant"), ROWS, ids=[f"{row[2]}, {row[3]}" for row in ROWS]
)
def test_what_was_meant_is_told(message, calls, given, meant) -> None:
    for call in calls:
        with pytest.raises(ValueError, match=f"{message.format(given)}.*: did you mean '{meant}'"):
            call(given)


def test_what_nothing_is_close_to_gets_no_guess() -> None:
    for call in (
        lambda: ab.convert(X, "torch", order="zigzag"),
        lambda: ab.convert(X, "torch", dtype="string"),
        lambda: ab.convert(X, "torch", device="abacus"),
        lambda: ab.convert(X, "scipy"),
    ):
        with pytest.raises(ValueError, match=r"expected|knows") as told:
            call()
        assert "did you mean" not in str(told.value)
