"""The shapes that a function of PyTorch returns, told by fake tensors, which have no elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

from ...array.differentiation import Outcome, Shape
from ...array.followed import Flat
from ...dispatch.records import ConversionError
from .exchange import LIBRARY
from .tables import BY_NAME, DLPACK_DTYPES


class _NothingReal(TorchDispatchMode):  # type: ignore[misc]
    """Give each operation fake tensors in place of real ones, such as a module's parameters.

    FakeTensorMode by itself computes what has real ones alone: a buffer would be written.
    """

    def __init__(self, mode: FakeTensorMode) -> None:
        super().__init__()
        self.mode = mode

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        def fake(x: torch.Tensor) -> torch.Tensor:
            return x if isinstance(x, FakeTensor) else self.mode.from_tensor(x)

        args, kwargs = tree_map_only(torch.Tensor, fake, (args, kwargs or {}))
        return func(*args, **kwargs)


def shapes_of(flat: Flat, arguments: Sequence[Shape]) -> Outcome:
    """Call a function with fake tensors of these shapes."""
    device = flat.terms.options.get("device")
    place = None if device is None else LIBRARY.native_device(device)
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    with mode, _NothingReal(mode), torch.no_grad():
        fakes = [torch.empty(x.shape, dtype=BY_NAME[x.dtype], device=place) for x in arguments]
        try:
            outcome = flat(fakes)
        except Exception as error:
            error.add_note(
                f"{flat.terms.function} was called with fake tensors, to learn the shapes of its "
                "results before there are values: pass result_shape_dtypes= to adapt where it "
                "looks at values"
            )
            raise
        floats, others = map(_shape, outcome.floats), map(_shape, outcome.others)
        return Outcome([*floats], [*others], outcome.rebuilt)


def _shape(x: torch.Tensor) -> Shape:
    dtype = DLPACK_DTYPES.get(x.dtype)
    if dtype is None:
        raise ConversionError(f"{x.dtype} has no DLPack type: pass its bytes, x.view(torch.uint8)")
    return Shape(tuple(x.shape), dtype.name)
