"""The namespace of native tensors, and what another library computes for PyTorch."""

from __future__ import annotations

import re

import torch

from ...array.dtypes import DTypes
from ...xp import fallback
from ...xp.native_namespace import NativeNamespace, make_native_namespace
from ...xp.numbers import Wide, as_float
from .corrections import ALONE, CORRECTIONS

# Other functions accept any integer type by themselves.
AXES = {
    **dict.fromkeys("all any max mean min prod std sum var".split(), "axis"),
    **dict.fromkeys(("expand_dims", "linalg.vector_norm", "squeeze"), "axis"),
    "tensordot": "axes",
    "full": "shape",
}


WIDE = Wide(as_float)

_SAYS_SO = re.compile(
    r"not implemented for|(does|do) not support \w+ dtypes|dtypes? not supported"
    r"|Unsupported input type"
)


def _unimplemented(error: Exception) -> bool:
    """Whether a kernel is missing for a dtype; TypeErrors and shapes are the caller's errors."""
    return isinstance(error, NotImplementedError) or bool(_SAYS_SO.search(str(error)))


# Few functions support these: https://github.com/pytorch/pytorch/issues/58734. Those that do are
# correct; tests/unit/xp/test_xp_functions.py compares them with NumPy.
IN_ANOTHER_LIBRARY = fallback.in_another_library(
    "torch",
    torch.Tensor,
    frozenset({torch.uint16, torch.uint32, torch.uint64}),
    (RuntimeError, TypeError),  # includes NotImplementedError; from 2.15 on, sorting raises it
    _unimplemented,
    frozenset({"asarray", "from_dlpack", "can_cast", "finfo", "iinfo", "result_type"}),
)

DTYPES = DTypes(each for each in vars(torch).values() if isinstance(each, torch.dtype))

TABLE = NativeNamespace(
    "torch",
    "array_api_compat.torch",
    CORRECTIONS,
    WIDE,
    handlers=(fallback.axes(AXES), IN_ANOTHER_LIBRARY),
    takes_nested=False,
    dtypes=DTYPES,
    alone=ALONE,
)
native = make_native_namespace(TABLE)
