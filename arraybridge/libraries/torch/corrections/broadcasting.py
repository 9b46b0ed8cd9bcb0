"""Corrected broadcasting for PyTorch: shapes that do not broadcast raise ValueError."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ....xp.corrections import Correction


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape that all broadcast to."""
    try:
        return tuple(torch.broadcast_shapes(*shapes))
    except RuntimeError as error:
        raise _refusal(shapes) from error


def broadcast_arrays(*arrays: Any) -> tuple[torch.Tensor, ...]:
    """Arrays as views of the shape that all broadcast to."""
    if not arrays:
        return ()
    try:
        shape = torch.broadcast_tensors(*arrays)[0].shape
    except RuntimeError as error:
        raise _refusal([tuple(x.shape) for x in arrays]) from error
    views: tuple[torch.Tensor, ...] = ()
    for x in arrays:
        views = (*views, x.expand(shape))  # broadcast_tensors may give `x` itself
    return views


def broadcast_to(x: Any, /, shape: Any) -> torch.Tensor:
    """An array as a view of a shape that it broadcasts to."""
    try:
        return torch.broadcast_to(x, shape)
    except RuntimeError as error:
        raise ValueError(
            f"an array of the shape {tuple(x.shape)} could not be broadcast to {tuple(shape)}"
        ) from error


def _refusal(shapes: Any) -> ValueError:
    given = ", ".join(map(str, shapes))
    return ValueError(f"the shapes {given} could not be broadcast to a single one")


def _another_error(call: Callable[[Any], Any]) -> Callable[[Any], bool]:
    def needed(xp: Any) -> bool:
        try:
            call(xp)
        except ValueError:
            return False
        return True

    return needed


CORRECTIONS = tuple(
    Correction(
        function.__name__,
        function,
        f"{function.__name__}: a ValueError if the shapes do not broadcast",
        "no issue known",
        _another_error(call),
    )
    for function, call in (
        (broadcast_shapes, lambda xp: xp.broadcast_shapes((2,), (3,))),
        (broadcast_arrays, lambda xp: xp.broadcast_arrays(xp.empty(2), xp.empty(3))),
        (broadcast_to, lambda xp: xp.broadcast_to(xp.empty(2), (3,))),
    )
)
