"""Where PyTorch departs from the standard."""

from __future__ import annotations

import math
from typing import Any

import numpy
import torch

from arraybridge.libraries.torch.promotion import CORRECTIONS as OF_PROMOTION

from . import Probe, shared

_NAN_LAST = torch.tensor([1.0, torch.nan])
_READ_ONLY = numpy.zeros(1)
_READ_ONLY.flags.writeable = False

# An argument that shows the wrong special case of each function, and the right result.
_WRONG = {
    "acos": (0j, complex(math.pi / 2, -0.0)),
    "expm1": (complex(math.inf, 0.0), complex(math.inf, 0.0)),
    "log1p": (complex(math.inf, math.nan), complex(math.inf, math.nan)),
    "tan": (complex(2.0, math.inf), 1j),
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


def _broadcasts(call: Any) -> Probe:
    return lambda xp: not shared.raises(lambda: call(xp), ValueError)


PROBES: dict[str, Probe] = {
    **{entry.name: _promotes_otherwise for entry in OF_PROMOTION},
    **shared.DIFF,
    **shared.LINSPACE,
    **shared.SHIFTS,
    **{name: _wrong(name) for name in _WRONG},
    **{name: _signed(name) for name in ("sum", "prod", "cumulative_sum", "cumulative_prod")},
    "from_dlpack": lambda xp: xp.from_dlpack(_READ_ONLY).data_ptr() == _READ_ONLY.ctypes.data,
    "can_cast": lambda xp: xp.can_cast(xp.int16, xp.int8),
    "finfo": lambda xp: xp.finfo(xp.complex64).dtype != xp.float32,
    "iinfo": lambda xp: xp.iinfo(xp.int8).dtype != xp.int8,
    "asarray": lambda xp: (
        not shared.raises(lambda: xp.asarray([-1], dtype=xp.uint8), OverflowError)
    ),
    "floor_divide": lambda xp: (
        not bool(xp.isinf(xp.floor_divide(xp.asarray(xp.inf), xp.asarray(1.0))))
    ),
    "remainder": lambda xp: bool(xp.signbit(xp.remainder(xp.asarray(-0.0), xp.asarray(1.0)))),
    "linalg.trace": lambda xp: xp.linalg.trace(xp.ones((2, 2), dtype=xp.uint8)).dtype != xp.uint64,
    "std": lambda xp: not xp.isfinite(xp.std(xp.asarray([1.0, 2.0]), correction=0.5)),
    "var": lambda xp: not xp.isnan(xp.var(xp.asarray(1.0), axis=(), correction=1)),
    "count_nonzero": lambda xp: xp.count_nonzero(xp.ones(2), axis=()).shape != (2,),
    "roll": lambda xp: xp.roll(xp.ones((2, 2)), 1, axis=(0, 1)).shape != (2, 2),
    "linalg.vector_norm": lambda xp: xp.linalg.vector_norm(xp.ones(0), ord=math.inf) != 0,
    "unique_all": lambda xp: xp.unique_all(xp.asarray([2, 1, 2])).indices.shape != (2,),
    "take": lambda xp: xp.take(xp.ones(200), torch.tensor([-1], dtype=xp.int8)).shape != (1,),
    "take_along_axis": lambda xp: (
        not shared.raises(lambda: xp.take_along_axis(xp.ones(4), torch.tensor([5])), IndexError)
    ),
    "searchsorted": lambda xp: (
        xp.searchsorted(_NAN_LAST, torch.tensor([2.0, torch.nan])).tolist() != [1, 1]
    ),
    "repeat": lambda xp: xp.repeat(xp.ones(1), torch.tensor([2], dtype=xp.uint64)).shape != (2,),
    "broadcast_shapes": _broadcasts(lambda xp: xp.broadcast_shapes((2,), (3,))),
    "broadcast_arrays": _broadcasts(lambda xp: xp.broadcast_arrays(xp.empty(2), xp.empty(3))),
    "broadcast_to": _broadcasts(lambda xp: xp.broadcast_to(xp.empty(2), (3,))),
}
