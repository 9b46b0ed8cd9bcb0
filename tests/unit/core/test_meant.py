"""A name that is unknown: the message says which known one was meant, wherever it is given."""

from __future__ import annotations

import numpy as np
import pytest

import arraybridge as ab

X = np.ones((1, 2, 3, 4), np.float32)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("NHWC", "channels_last"),
        ("nhwc", "channels_last"),
        ("channels-last", "channels_last"),
        ("c", "C"),
        ("f", "F"),
        ("k", "K"),
        ("A", "K"),
        ("NCHW", "C"),
        ("Fortran", "F"),
        ("C_CONTIGUOUS", "C"),
        ("row-major", "C"),
    ],
)
def test_orders(given: str, meant: str) -> None:
    for call in (
        lambda: ab.convert(X, "torch", order=given),
        lambda: ab.convert(X, "numpy", order=given, dtype="float64"),
        lambda: ab.explain(X, "torch", order=given),
        lambda: ab.adapt("torch", order=given),
    ):
        with pytest.raises(ValueError, match=f"order is '{given}': did you mean '{meant}'"):
            call()


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("flaot32", "float32"),
        ("Float32", "float32"),
        ("float_32", "float32"),
        ("fp16", "float16"),
        ("bf16", "bfloat16"),
        ("torch.float32", "float32"),
        ("unit8", "uint8"),
    ],
)
def test_data_types(given: str, meant: str) -> None:
    for call in (
        lambda: ab.convert(X, "torch", dtype=given),
        lambda: ab.explain(X, "torch", dtype=given),
        lambda: ab.asarray(X, like="torch", dtype=given),
        lambda: ab.asarray([1], like="torch", dtype=given),
        lambda: ab.unify(X, dtype=given),
        lambda: ab.adapt("torch", dtype=given),
    ):
        with pytest.raises(ValueError, match=f"'{given}': did you mean '{meant}'"):
            call()
    with pytest.raises(ValueError, match=f"named '{given}'; .*: did you mean '{meant}'"):
        ab.DataType(given)


@pytest.mark.parametrize(
    ("given", "meant"), [("safely", "safe"), ("same-kind", "same_kind"), ("Unsafe", "unsafe")]
)
def test_casting(given: str, meant: str) -> None:
    for call in (
        lambda: ab.convert(X, "torch", dtype="float64", casting=given),
        lambda: ab.explain(X, "torch", dtype="float64", casting=given),
        lambda: ab.asarray(X, like="torch", dtype="float64", casting=given),
    ):
        with pytest.raises(ValueError, match=f"casting is '{given}': did you mean '{meant}'"):
            call()


@pytest.mark.parametrize(
    ("given", "meant"), [("cdua", "cuda"), ("cuda0", "cuda"), ("cuad:1", "cuda"), ("host", "cpu")]
)
def test_devices(given: str, meant: str) -> None:
    for call in (
        lambda: ab.convert(X, "torch", device=given),
        lambda: ab.explain(X, "torch", device=given),
        lambda: ab.asarray(X, like="torch", device=given),
        lambda: ab.from_dlpack(X, device=given),
        lambda: ab.Device(given),
    ):
        with pytest.raises(ValueError, match=f"unknown device '{given}': did you mean '{meant}'"):
            call()


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("pytorch", "torch"),
        ("Torch", "torch"),
        ("np", "numpy"),
        ("tf", "tensorflow"),
        ("jax.numpy", "jax"),
        ("mlx.core", "mlx"),
        ("tvm", "tvm_ffi"),
        ("numpyy", "numpy"),
        ("PIL", "pillow"),
        ("pyarrow.array", "pyarrow.Array"),
    ],
)
def test_libraries(given: str, meant: str) -> None:
    for call in (
        lambda: ab.convert(X, given),
        lambda: ab.explain(X, given),
        lambda: ab.asarray([1], like=given),
        lambda: ab.unify(X, like=given),
        lambda: ab.adapt(given),
        lambda: ab.from_dlpack(X).to(given),
    ):
        with pytest.raises(ValueError, match=f"no library '{given}': did you mean '{meant}'"):
            call()


def test_words_of_other_keywords() -> None:
    with pytest.raises(ValueError, match="copies is 'forbids': did you mean 'forbid'"):
        ab.audit(copies="forbids")
    with pytest.raises(ValueError, match="result is 'calller': did you mean 'caller'"):
        ab.adapt("torch", result="calller")


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
