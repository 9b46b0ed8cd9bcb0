"""What results are compared by: values, data types, and what makes a decomposition right.

A check of values takes what a function gave, as NumPy's arrays (or as it is, where it is no array),
what the reference gave, and the call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from arraybridge.xp.standard.data_types import KINDS

from .recipes import BITS, Call, promoted

# Rounding errors, of results near 1 and relative.
TOLERANCE = {4: 2e-4, 8: 1e-9}


def exact(found: Any, expected: Any, call: Call) -> None:
    _each(np.testing.assert_array_equal, found, expected)


def close(found: Any, expected: Any, call: Call) -> None:
    _each(agree, found, expected)


def agree(found: Any, expected: Any) -> None:
    """Equal but for rounding errors of the largest number, by the precision of what was found."""
    found = np.asarray(found)
    if found.dtype.kind not in "fc":
        np.testing.assert_array_equal(found, expected)
        return
    tolerance = TOLERANCE[found.real.itemsize]
    scale = max(1.0, np.max(np.abs(expected), initial=0.0))
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * scale)


def _each(compare: Callable[..., None], found: Any, expected: Any) -> None:
    if isinstance(found, tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            _each(compare, one, other)
    else:
        assert np.shape(found) == np.shape(expected)
        compare(found, expected)


def shape(found: Any, expected: Any, call: Call) -> None:
    assert found.shape == expected.shape


# What is no array.


def same(found: Any, expected: Any, call: Call) -> None:
    assert found == expected
    assert type(found) is type(expected)


def dtype(found: Any, expected: np.dtype, call: Call) -> None:
    assert str(found).rpartition(".")[2] == expected.name or found == expected


def can_cast(from_: Any, to: np.dtype) -> bool:
    return promoted(_name(from_), to.name) == to.name


def result_type(*arguments: Any) -> np.dtype:
    names = [_name(x) for x in arguments if isinstance(x, np.ndarray | np.dtype)]
    return np.dtype(promoted(*names))


def finfo(x: Any) -> Any:
    return np.finfo(np.dtype(_real(_name(x))))


def iinfo(x: Any) -> Any:
    return np.iinfo(_name(x))


def _name(x: Any) -> str:
    return (x.dtype if isinstance(x, np.ndarray) else x).name


def limits(found: Any, expected: Any, call: Call) -> None:
    for name in ("bits", "eps", "max", "min", "smallest_normal"):
        if hasattr(expected, name):
            value = getattr(found, name)
            assert type(value) is (int if name == "bits" or isinstance(value, int) else float), name
            assert value == getattr(expected, name), name
    assert str(expected.dtype) in str(found.dtype)


def info(found: Any, expected: Any, call: Call) -> None:
    assert {*found.default_dtypes()} == {
        *("real floating", "complex floating", "integral", "indexing")
    }
    default = found.default_device()
    assert default is None or default in found.devices()  # None: array-api#923
    assert {"boolean indexing", "data-dependent shapes", "max dimensions"} <= {
        *found.capabilities()
    }
    for kind in (None, *KINDS):
        names = BITS if kind is None else KINDS[kind]
        assert {*found.dtypes(kind=kind)} <= {*names}
        assert {*found.dtypes(kind=kind)} >= {*names} - {"uint16", "uint32", "uint64"}


# References that NumPy lacks.


def sign(x: np.ndarray) -> np.ndarray:
    return x / np.abs(x) if x.dtype.kind == "c" else np.sign(x)


def diff(x: np.ndarray, axis: int = -1, n: int = 1, **ends: np.ndarray) -> np.ndarray:
    """NumPy's, which forgets the ends of n=0."""
    parts = [each for each in (ends.get("prepend"), x, ends.get("append")) if each is not None]
    return np.diff(np.concatenate(parts, axis), n, axis)


def sort(x: np.ndarray, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    order = argsort(x, axis, descending)
    return np.take_along_axis(x, order, axis)


def argsort(x: np.ndarray, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """The order, equals as they were."""
    if not descending:
        return np.argsort(x, axis=axis, stable=True)
    backward = np.argsort(np.flip(x, axis), axis=axis, stable=True)
    return np.flip(x.shape[axis] - 1 - backward, axis)


def order(found: Any, expected: Any, call: Call) -> None:
    """Indices that sort; the very ones where equals must keep their order."""
    if call.kwargs.get("stable", True):
        return exact(found, expected, call)
    x, along = call.args[0], call.kwargs.get("axis", -1)
    exact(*(np.take_along_axis(x, indices, along) for indices in (found, expected)), call)
    return None


def fftfreq(n: int, d: float = 1.0, dtype: Any = None) -> np.ndarray:
    return np.fft.fftfreq(n, d)


def rfftfreq(n: int, d: float = 1.0, dtype: Any = None) -> np.ndarray:
    return np.fft.rfftfreq(n, d)


# Sets, whose order is free.


def unique_values(found: Any, expected: Any, call: Call) -> None:
    exact(np.sort(found), np.unique(call.args[0]), call)


def unique(found: Any, expected: Any, call: Call) -> None:
    """Values with their counts, first places and the way back, as far as there are those."""
    x = call.args[0]
    unique_values(found.values, None, call)
    if hasattr(found, "inverse_indices"):
        exact(found.values[found.inverse_indices], x, call)
    if hasattr(found, "counts"):
        exact(found.counts, [np.count_nonzero(x == value) for value in found.values], call)
    if hasattr(found, "indices"):
        places = [np.flatnonzero(x == value)[0] for value in found.values]
        exact(found.indices, np.asarray(places, "int64"), call)


# Decompositions, which are not unique: put together again.


def adjoint(x: np.ndarray) -> np.ndarray:
    return np.conj(np.swapaxes(x, -1, -2))


def orthonormal(x: np.ndarray) -> None:
    identity = np.eye(x.shape[-1])
    agree(adjoint(x) @ x, np.broadcast_to(identity, (*x.shape[:-2], *identity.shape)))


def qr(found: Any, expected: Any, call: Call) -> None:
    q, r = found
    assert (q.shape, r.shape) == tuple(x.shape for x in expected)
    agree(q @ r, call.args[0])
    orthonormal(q)
    exact(np.tril(r, -1), np.zeros_like(r), call)


def svd(found: Any, expected: Any, call: Call) -> None:
    u, s, vh = found
    assert [x.shape for x in found] == [x.shape for x in expected]
    agree(s, expected[1])
    k = s.shape[-1]
    agree((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], call.args[0])
    orthonormal(u)
    orthonormal(adjoint(vh))


def eigenvalues(found: Any, expected: Any, call: Call) -> None:
    """The same ones, in any order."""
    assert found.shape == expected.shape
    for one, other in zip(_vectors(found), _vectors(expected), strict=True):
        for value in one:
            nearest = np.argmin(np.abs(other - value))
            agree(value, other[nearest])
            other = np.delete(other, nearest)


def _vectors(x: np.ndarray) -> np.ndarray:
    return x.reshape(-1, x.shape[-1])


def eig(found: Any, expected: Any, call: Call) -> None:
    w, v = found
    eigenvalues(w, expected[0], call)
    agree(call.args[0] @ v, v * w[..., None, :])
    agree(np.linalg.vector_norm(v, axis=-2), np.ones(w.shape))


def eigh(found: Any, expected: Any, call: Call) -> None:
    w, v = found
    eigenvalues(w, expected[0], call)
    agree(call.args[0] @ v, v * w[..., None, :])
    orthonormal(v)


# Data types of results: by the names of the arrays' data types together, NumPy's result, the call,
# and the library's defaults by kind.

KIND_NAMES = {"b": "bool", "i": "int", "u": "uint", "f": "float", "c": "complex"}


def _real(name: str) -> str:
    return f"float{BITS[name] // 2}" if name.startswith("complex") else name


def _complex(name: str) -> str:
    return name if name.startswith("complex") else f"complex{2 * BITS[name]}"


def default(together: str | None, result: np.ndarray, call: Call, defaults: dict[str, str]) -> str:
    """The dtype that is asked for, that of the array, or the default of the result's kind."""
    if asked := call.kwargs.get("dtype"):
        return asked.name
    kind = result.dtype.kind
    words = {"b": "bool", "i": "integral", "f": "real floating", "c": "complex floating"}
    return together or ("bool" if kind == "b" else defaults[words[kind]])


def floating(together: str | None, result: np.ndarray, call: Call, defaults: dict[str, str]) -> str:
    """The dtype that is asked for, or the default one."""
    asked = call.kwargs.get("dtype")
    return asked.name if asked else defaults["real floating"]


def summed(together: str, result: np.ndarray, call: Call, defaults: dict[str, str]) -> str:
    """The dtype that is asked for; narrow integers are widened."""
    if asked := call.kwargs.get("dtype"):
        return asked.name
    kind, default = KIND_NAMES[np.dtype(together).kind], defaults["integral"]
    if kind in ("int", "uint") and BITS[together] < BITS[default]:
        return f"{kind}{BITS[default]}"
    return together


def asked(together: str, result: np.ndarray, call: Call, defaults: dict[str, str]) -> str:
    """The dtype that is asked for, as a keyword or by position, or that of the array."""
    found = [x for x in (*call.args, *call.kwargs.values()) if isinstance(x, np.dtype)]
    return found[0].name if found else together


RULES: dict[str, Callable[..., str]] = {
    "same": lambda together, *_: together,
    "asked": asked,
    "bool": lambda *_: "bool",
    "indices": lambda together, result, call, defaults: defaults["indexing"],
    "integral": lambda together, result, call, defaults: defaults["integral"],
    "real": lambda together, *_: _real(together),
    "complex": lambda together, *_: _complex(together),
    "default": default,
    "floating": floating,
    "summed": summed,
    "first": lambda together, result, call, defaults: call.args[0].dtype.name,
    "chosen": lambda together, result, call, defaults: _promoted(arrays_of(call.args[1:])),
    "each": lambda together, result, call, defaults: result.dtype.name,
}


def arrays_of(x: Any) -> list[np.ndarray]:
    """The arrays among arguments, or among results."""
    if isinstance(x, np.ndarray | np.generic):
        return [x]
    if isinstance(x, dict):
        return arrays_of(list(x.values()))
    if isinstance(x, list | tuple):
        return [array for each in x for array in arrays_of(each)]
    return []


def dtype_of(rule: str, result: Any, call: Call, defaults: dict[str, str]) -> str:
    """The name of the data type that a result is to have."""
    arrays = arrays_of(call)
    together = _promoted(arrays) if arrays else None
    return RULES[rule](together, result, call, defaults)


def _promoted(arrays: list[np.ndarray]) -> str | None:
    return promoted(*(x.dtype.name for x in arrays))
