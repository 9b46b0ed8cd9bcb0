"""Names: of libraries to type checkers, of devices by anybody's object, and what is misspelt."""

from __future__ import annotations

import inspect
from typing import get_args

import numpy as np
import pytest

import arraybridge as ab
import arraybridge.typing as types
from arraybridge.core.library import place_named
from arraybridge.libraries import LIBRARIES
from tests.support.optional import optional

torch, jax = optional("torch"), optional("jax")
tvm_ffi, strict = optional("tvm_ffi"), optional("array_api_strict")


def test_the_names_and_the_keywords_are_those_of_convert():
    assert set(get_args(types.LibraryName)) >= {entry.name for entry in LIBRARIES} - {"dask"}
    parameters = inspect.signature(ab.convert).parameters
    assert set(types.Options.__annotations__) == {
        name for name, p in parameters.items() if p.kind is p.KEYWORD_ONLY
    }
    assert inspect.signature(ab.explain).parameters.keys() == parameters.keys()


@pytest.mark.parametrize(
    ("begin", "given", "meant", "keyword"),
    [
        ("order is", "channels-last", "channels_last", "order"),
        ("", "flaot32", "float32", "dtype"),
        ("casting is", "same-kind", "same_kind", "casting"),
        ("unknown device", "cuad:1", "cuda", "device"),
        ("no library", "pytorch", "torch", "to"),
    ],
)
def test_the_name_spelled_most_alike_is_suggested(begin, given, meant, keyword):
    x = np.ones((1, 2, 3, 4), "f4")
    with pytest.raises(ValueError, match=f"{begin} ?'{given}'.*: did you mean '{meant}'"):
        ab.convert(x, **{"to": "numpy", keyword: given})
    with pytest.raises(ValueError, match=r"expected|knows") as told:
        ab.convert(x, **{"to": "numpy", keyword: "zigzag"})
    assert "did you mean" not in str(told.value)


DEVICES = [
    *("cpu", ab.Device("cpu"), (1, 0), ab.DeviceType.CPU, torch.device("cpu")),
    *(jax.devices("cpu")[0], tvm_ffi.device("cpu"), strict.Device("CPU_DEVICE")),
]


@pytest.mark.parametrize("device", DEVICES, ids=repr)
def test_devices_of_all_libraries_everywhere(device):
    x = np.ones(2, "f4")
    assert place_named(device) == ab.Device("cpu")
    for target in ("numpy", "torch", "jax"):
        assert ab.inspect(ab.convert(x, target, device=device)).device == (1, 0)
        assert ab.explain(x, target, device=device).kind != "refuse"
        assert ab.unify(x, like=target, device=device)[1].shape == (2,)
        assert ab.asarray([1, 2], like=target, device=device).shape == (2,)
        xp = getattr(ab.xp, target)
        assert xp.asarray([1, 2], device=device).shape == (2,)
        assert xp.zeros(2, device=device).to_device(device).shape == (2,)
    assert ab.adapt("numpy", device=device)(lambda x: x + 1)(x).tolist() == [2, 2]
    assert ab.from_dlpack(x, device=device).device == (1, 0)
    assert ab.from_dlpack(x).to(device=device).device == (1, 0)
