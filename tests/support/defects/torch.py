"""Where PyTorch departs from the standard."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy
import torch

from arraybridge.libraries.torch.promotion import CORRECTIONS as OF_PROMOTION

from . import NUMPY, Probe, raises

_READ_ONLY = numpy.zeros(1)
_READ_ONLY.flags.writeable = False

# An argument that shows the wrong special case of each function, and the right result.
_WRONG = {
    "acos": (0j, complex(math.pi / 2, -0.0)),
    "expm1": (complex(math.inf, 0.0), complex(math.inf, 0.0)),
    "log1p": (complex(math.inf, math.nan), complex(math.inf, math.nan)),
    "tanh": (complex(math.inf, 2.0), 1 + 0j),
}


def _wrong(name: str) -> Probe:
    argument, right = _WRONG[name]

    def probe(xp: Any) -> bool:
        x = torch.tensor(argument, dtype=torch.complex128)
        return str(complex(getattr(xp, name)(x))) != str(right)

    return probe


def _signed(name: str) -> Probe:
    return lambda xp: getattr(xp, name)(xp.ones(2, dtype=xp.uint8)).dtype != xp.uint64


def _promotes_otherwise(xp: Any) -> bool:
    narrow = xp.ones((2,), dtype=xp.uint8)
    return bool(xp.result_type(narrow, xp.ones((), dtype=xp.uint16)) != xp.uint16)


def _warns(xp: Any) -> bool:
    torch.set_warn_always(True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return raises(lambda: xp.asarray(torch.ones(1, requires_grad=True)))
    finally:
        torch.set_warn_always(False)


PROBES: dict[str, Probe] = {
    **dict.fromkeys(OF_PROMOTION, _promotes_otherwise),
    **{name: _wrong(name) for name in _WRONG},
    **{name: _signed(name) for name in ("sum", "prod", "cumulative_sum", "cumulative_prod")},
    "from_dlpack": lambda xp: xp.from_dlpack(_READ_ONLY).data_ptr() == _READ_ONLY.ctypes.data,
    "asarray": _warns,
    "can_cast": lambda xp: xp.can_cast(xp.int16, xp.int8),
    "finfo": lambda xp: xp.finfo(xp.complex64).dtype != xp.float32,
    "iinfo": lambda xp: xp.iinfo(xp.int8).dtype != xp.int8,
    "floor_divide": NUMPY["floor_divide"],
    "remainder": lambda xp: bool(xp.signbit(xp.remainder(xp.asarray(-0.0), xp.asarray(1.0)))),
    "linalg.trace": lambda xp: xp.linalg.trace(xp.ones((2, 2), dtype=xp.uint8)).dtype != xp.uint64,
    "roll": lambda xp: xp.roll(xp.ones((2, 2)), 1, axis=(0, 1)).shape != (2, 2),
    "searchsorted": lambda xp: (
        xp.searchsorted(torch.tensor([1.0, torch.nan]), torch.tensor([2.0, torch.nan])).tolist()
        != [1, 1]
    ),
    "linspace": lambda xp: xp.linspace(0, 3, 4, dtype=xp.uint16).tolist() != [0, 1, 2, 3],
    "diff": lambda xp: raises(lambda: xp.diff(xp.ones(3), 2)),
    "take": lambda xp: xp.take(xp.ones(200), torch.tensor([-1], dtype=xp.int8)).shape != (1,),
    "take_along_axis": lambda xp: raises(
        lambda: xp.take_along_axis(xp.ones(4), torch.tensor([2], dtype=torch.int32))
    ),
    "broadcast_shapes": lambda xp: not raises(lambda: xp.broadcast_shapes((2,), (3,)), ValueError),
}
