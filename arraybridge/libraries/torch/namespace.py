"""The namespace of native tensors, and what another library computes for PyTorch."""

from __future__ import annotations

import re

import torch

from ...xp.build import NativeNamespace, make_native_namespace
from ...xp.retry import as_float, in_another_library, large_integers
from .corrections import CORRECTIONS

_SAYS_SO = re.compile(
    r"not implemented for|(does|do) not support \w+ dtypes|dtypes? not supported"
    r"|Unsupported input type"
)


def _unimplemented(error: Exception) -> bool:
    """Whether a kernel is missing for a dtype; TypeErrors and shapes are the caller's errors."""
    return isinstance(error, NotImplementedError) or bool(_SAYS_SO.search(str(error)))


# Few functions support these: https://github.com/pytorch/pytorch/issues/58734. Those that do are
# correct; tests/unit/xp/test_xp_functions.py compares them with NumPy.
IN_ANOTHER_LIBRARY = in_another_library(
    "torch",
    torch.Tensor,
    frozenset({torch.uint16, torch.uint32, torch.uint64}),
    (RuntimeError, TypeError),  # includes NotImplementedError; from 2.15 on, sorting raises it
    _unimplemented,
    frozenset({"asarray", "from_dlpack", "can_cast", "finfo", "iinfo", "result_type"}),
)

TABLE = NativeNamespace(
    "torch",
    "array_api_compat.torch",
    CORRECTIONS,
    (large_integers(as_float), IN_ANOTHER_LIBRARY),
    takes_nested=False,
)
native = make_native_namespace(TABLE)
