"""The namespace of native tensors, and what another library computes for PyTorch."""

import operator
import re
from typing import Any

import torch

from ...array.device_namespace import fallback_library
from ...conversion import convert
from ...core.records import ConversionError
from ...core.registry import library_named
from ...pytree import leaves, mapped
from ...xp.build import make_native_namespace
from ...xp.retry import Retry, large_numbers
from .corrections import CORRECTIONS
from .promotion import in_range

# Few functions support these: https://github.com/pytorch/pytorch/issues/58734. Those that do are
# correct; tests/unit/xp/test_xp_functions.py compares them with NumPy.
_RARE = frozenset({torch.uint16, torch.uint32, torch.uint64})
_UNIMPLEMENTED = re.compile(
    r"not implemented for|(does|do) not support \w+ dtypes|dtypes? not supported"
    r"|Unsupported input type"
)
# Without arrays among the arguments the device is unknown.
_EXCEPTED = {"asarray", "from_dlpack", "can_cast", "finfo", "iinfo", "result_type"}


def in_another_library(path: str, template: Any, own: Any) -> Retry | None:
    """Compute on views in another library on the device, but never cut a graph of gradients."""
    kinds = map(str, template.__annotations__.values())
    if path in _EXCEPTED or not any("Array" in kind for kind in kinds):
        return None

    def retry(error: Exception, args: Any, kwargs: Any) -> Any:
        tensors = [x for x in leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
        if not tensors or not isinstance(error, RuntimeError | TypeError):
            return NotImplemented
        missing = isinstance(error, NotImplementedError) or _UNIMPLEMENTED.search(str(error))
        # A TypeError is one of the caller: a wrong argument, dtypes without a common one.
        rare = not isinstance(error, TypeError) and any(x.dtype in _RARE for x in tensors)
        if not (missing or rare):
            return NotImplemented
        try:
            device = library_named("torch").describe(tensors[0]).device
            other = fallback_library(device, but="torch")
            there = library_named(other).computing.native_namespace()

            def given(x: Any) -> Any:
                if isinstance(x, torch.dtype):
                    return getattr(there, str(x).removeprefix("torch."))
                return convert(x, other) if isinstance(x, torch.Tensor) else x

            kwargs = {name: x for name, x in kwargs.items() if name != "device"}
            args, kwargs = mapped(given, (args, kwargs))
        except (ConversionError, ImportError, AttributeError) as why:
            names = ", ".join(dict.fromkeys(str(x.dtype) for x in tensors))
            raise NotImplementedError(
                f"torch has no {path} for {names}, and another library cannot compute it without "
                f"a copy or losing gradients: {why}"
            ) from None
        try:
            result = operator.attrgetter(path)(there)(*args, **kwargs)
        except (TypeError, AttributeError, NotImplementedError) as lacking:
            error.add_note(f"tried with {other}'s {path} on the same memory: {lacking}")
            return NotImplemented

        def returned(x: Any) -> Any:
            is_array = hasattr(x, "dtype") and hasattr(x, "shape")  # also a NumPy scalar
            return convert(there.asarray(x), "torch") if is_array else x

        return mapped(returned, result)

    return retry


native = make_native_namespace(
    "torch",
    "array_api_compat.torch",
    CORRECTIONS,
    (large_numbers(in_range, bits=16, floats=True), in_another_library),
)
