"""Routes that ``explain`` returns, and layouts that ``inspect`` describes, as pictures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import arraybridge as ab
from arraybridge.drawing import memory_svg, route_svg


class OnGPU:
    """What a library for GPUs shows of its arrays; nobody reads the memory."""

    __cuda_array_interface__ = {  # noqa: RUF012
        "shape": (3, 4),
        "typestr": "<f4",
        "data": (1 << 20, False),
        "version": 3,
        "strides": None,
    }


def plain() -> np.ndarray:
    return np.arange(12, dtype=np.float32).reshape(3, 4)


def readonly() -> np.ndarray:
    x = plain()
    x.flags.writeable = False
    return x


def tracked() -> Any:
    import torch

    return torch.ones(3, requires_grad=True)


class Shown(NamedTuple):
    """An array, as the title of its picture writes it, and where it goes."""

    title: str
    make: Callable[[], Any]
    to: str = ""
    options: dict[str, Any] = {}  # noqa: RUF012 - never written


ROUTES = {
    "view": Shown('ab.explain(x.T, "torch")', lambda: plain().T, "torch"),
    "copy": Shown('ab.explain(x[::-1], "torch")', lambda: plain()[::-1], "torch"),
    "refusal": Shown('ab.explain(t, "numpy"), where t.requires_grad', tracked, "numpy"),
    "readonly": Shown('ab.explain(x, "torch"), where x is read-only', readonly, "torch"),
    "immutable": Shown('ab.explain(x, "jax")', plain, "jax"),
    "cast": Shown(
        'ab.explain(x, "torch", dtype="float16", order="F")',
        plain,
        "torch",
        {"dtype": "float16", "order": "F"},
    ),
    "kernel": Shown(
        'ab.explain(photo.transpose(2, 0, 1), "jax")',
        lambda: np.zeros((480, 640, 3), np.uint8).transpose(2, 0, 1),
        "jax",
    ),
    "device": Shown('ab.explain(x, "numpy"), where x is on a GPU', OnGPU, "numpy"),
}

MEMORY = {
    "strided": Shown("x[:, ::2]", lambda: plain()[:, ::2]),
    "negative": Shown("x[::-1, ::-1]", lambda: plain()[::-1, ::-1]),
    "broadcast": Shown("np.broadcast_to(row, (3, 4))", lambda: np.broadcast_to(plain()[0], (3, 4))),
}


def route(name: str) -> str:
    shown = ROUTES[name]
    return route_svg(
        ab.explain(shown.make(), shown.to, **shown.options), title=shown.title, page=True
    )


def memory(name: str) -> str:
    shown = MEMORY[name]
    return memory_svg(ab.inspect(shown.make()), title=shown.title, page=True)
