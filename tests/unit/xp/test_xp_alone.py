"""Calls with a single array, which go a shorter way: what it gives is what the function gives."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import arraybridge as ab
from arraybridge.xp import calls
from tests.support.namespaces import table_of
from tests.support.optional import needs, optional

torch = optional("torch")

SHAPES = ((), (0,), (1,), (7,), (3, 4), (2, 0, 3), (2, 3, 4))
DTYPES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 "
    "complex128"
).split()
LIBRARIES = ["numpy", pytest.param("torch", marks=needs("torch"))]


def arrays(library: str) -> list[Any]:
    rng = np.random.default_rng(0)
    found: list[Any] = []
    for shape in SHAPES:
        for dtype in DTYPES:
            x = np.asarray(rng.integers(0, 200, shape)).astype(dtype)
            found.append(x if library == "numpy" else torch.from_numpy(x))
    x = np.asarray([[1.0, np.nan, -0.0], [np.inf, 0.0, 2.0]])
    found += [x, x[::-1, ::-2], x.T, np.broadcast_to(x, (2, 2, 3)), x.astype(">f4")]
    if library == "numpy":
        return [*found, np.array(["a"]), np.array([1, None]), np.array("2020-01-01", "M8[D]")]
    found = [x if isinstance(x, torch.Tensor) else torch.from_numpy(x.astype("f8")) for x in found]
    return [
        *found,
        torch.ones(3, dtype=torch.bfloat16),
        torch.ones(3, requires_grad=True),
        torch.nn.Parameter(torch.ones(3)),
        torch.ones(3, dtype=torch.complex64).conj(),
        torch.ones(3, device="meta"),
        torch.eye(3).to_sparse(),
    ]


def outcome(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    try:
        result = function(*args, **kwargs)
    except Exception as error:
        return type(error), str(error), getattr(error, "__notes__", [])
    native = getattr(result, "native", result)
    if torch and isinstance(native, torch.Tensor):
        grad = type(native.grad_fn).__name__
        elements = (
            repr(native.detach().resolve_conj().flatten().tolist())
            if native.device.type != "meta"
            else ""
        )
        return type(result), native.dtype, native.shape, elements, grad, native.requires_grad
    return type(result), getattr(native, "dtype", None), np.shape(native), repr(native)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_shorter_way(library: str) -> None:
    table = table_of(library)
    functions = importlib.import_module(
        f"arraybridge.libraries.{library}.namespace"
    ).native._functions
    assert table.alone
    for path, alone in table.alone.items():
        assert functions[path].alone is alone
        for x in arrays(library):
            assert outcome(alone, x) == outcome(functions[path].own, x), (path, x)


@pytest.mark.parametrize("library", LIBRARIES)
def test_calls_without_an_array(library: str) -> None:
    x = np.ones(3) if library == "numpy" else torch.ones(3)
    for given in (x, ab.from_dlpack(x)):
        xp = ab.namespace(given)
        for name in ("sum", "exp", "max", "negative"):
            with pytest.raises(TypeError):
                getattr(xp, name)()
            with pytest.raises(TypeError):
                getattr(xp, name)(given, nonsense=1)
            with pytest.raises(TypeError):
                getattr(xp, name)(nonsense=given)


@needs("torch")
def test_the_librarys_own_names_of_arguments() -> None:
    x = torch.ones(3)
    xp = ab.namespace(x)
    assert torch.equal(xp.exp(input=x), torch.exp(x))
    assert torch.equal(xp.exp(x, out=torch.empty(3)), torch.exp(x))


@pytest.mark.parametrize("library", LIBRARIES)
def test_isdtype_gives_the_same_answer_each_time(library: str) -> None:
    home = importlib.import_module(f"arraybridge.libraries.{library}.namespace")
    x = np.ones(3) if library == "numpy" else torch.ones(3)
    xp = ab.namespace(x)
    dtypes = [getattr(xp, name) for name in DTYPES if hasattr(xp, name)]
    things = [*dtypes, "float64", float, np.float64, np.dtype(">f4"), 1, True, None, x, [x.dtype]]
    kinds = [
        *("bool", "integral", "real floating", "numeric", "complex floating", "none"),
        *(("bool", "integral"), ("bool", 1), ("bool", True), (), ["bool"], 1, None),
        *(dtypes[1], (dtypes[2], "bool"), x, (x,)),
    ]
    for dtype in things:
        for kind in kinds:
            fresh = calls.remembering(home.native._functions["isdtype"])
            expected = outcome(fresh, dtype, kind)
            for namespace in (xp, ab.namespace(ab.from_dlpack(x))):
                for _ in range(2):
                    assert outcome(namespace.isdtype, dtype, kind) == expected, (dtype, kind)
                assert outcome(namespace.isdtype, dtype, kind=kind) == expected, (dtype, kind)


def test_answers_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "_MOST", 3)
    asked: list[Any] = []

    def own(x: Any) -> Any:
        asked.append(x)
        return -x

    function = calls.remembering(calls.Function("isdtype", own, ("x",)))
    assert [function(x) for x in (1, 2, 3, 4, 4, 1)] == [-1, -2, -3, -4, -4, -1]
    assert asked == [1, 2, 3, 4, 1]
