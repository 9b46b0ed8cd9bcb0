"""Routes that ``explain`` returns, and layouts that ``inspect`` describes, as pictures."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import wrap
from typing import Any, NamedTuple

import numpy as np

import arraybridge as ab
from benchmarks.svg import WIDTH, Picture

BLUE, GREEN = "#2f81c7", "#3a9a4b"
ROW = 12  # items of memory in a row; of longer memory the first row is drawn
LEFT, BOX, LINE = 12, 38, 17


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
    """Draw the memory before, what happens to it and why, and the memory after."""
    shown = ROUTES[name]
    x = shown.make()
    found = ab.explain(x, shown.to, **shown.options)
    lines = [*memory_of(ab.inspect(x), found.source, BLUE), Line(""), *told(found)]
    if found.kind == "view":
        lines.append(Line(f"{found.target}: the same addresses, the same strides", "bold"))
    elif found.kind != "refuse":
        made = ab.inspect(ab.convert(x, shown.to, **shown.options))
        lines += memory_of(made, found.target, GREEN)
    return drawn(shown.title, lines, str(found))


def memory(name: str) -> str:
    shown = MEMORY[name]
    info = ab.inspect(shown.make())
    lines = memory_of(info, "", BLUE)
    return drawn(shown.title, lines, f"{shown.title}: {lines[0].text}")


class Line(NamedTuple):
    """A line of text, or a row of boxes."""

    text: str
    kind: str = ""
    boxes: tuple[str, ...] = ()
    color: str = ""

    @property
    def high(self) -> int:
        return 28 if self.boxes else LINE if self.text else 10


def told(found: ab.Route) -> list[Line]:
    """Return what a route does, and why."""
    first, _, _ = str(found).partition(": ")[2].partition(" (")
    text = [first[:1].upper() + first[1:], *wrap(found.why, 74)]
    return [Line(f"↓ {text[0]}", "bold"), *[Line(each) for each in text[1:]], Line("")]


def memory_of(info: ab.TensorInfo, library: str, color: str) -> list[Line]:
    """Return the facts of an array, and its memory: a box for each item, by address."""
    size = info.itemsize
    steps = ", ".join(str(step * size) for step in info.strides)
    facts = f"{info.dtype_name} {info.shape}, strides ({steps}) bytes, {info.layout}"
    flags = ", read-only" if info.readonly else ""
    lines = [Line(f"{library}: {facts}{flags}" if library else facts, "bold")]
    labels, length = items(info)
    rows = [tuple(labels[at : at + ROW]) for at in range(0, len(labels), ROW)]
    lines += [Line("", "", row, color) for row in rows]
    if length > len(labels):
        lines.append(Line(f"… {length - len(labels):,} more", "faint"))
    return lines


def items(info: ab.TensorInfo) -> tuple[list[str], int]:
    """Return the index of the element in each item, "" for a gap, and the number of items."""
    ends = [(n - 1) * step for n, step in zip(info.shape, info.strides, strict=True)]
    low = sum(min(end, 0) for end in ends)
    length = sum(max(end, 0) for end in ends) - low + 1
    found: dict[int, str] = {}
    for index in np.ndindex(*[min(n, 2 * ROW) for n in info.shape]):
        place = sum(i * step for i, step in zip(index, info.strides, strict=True)) - low
        parts = [str(i) if step else ":" for i, step in zip(index, info.strides, strict=True)]
        found.setdefault(place, ",".join(parts))
    most = length if length <= 2 * ROW else ROW
    return [found.get(place, "") for place in range(most)], length


def drawn(title: str, lines: list[Line], description: str) -> str:
    picture = Picture(WIDTH, 44 + sum(line.high for line in lines), title, description)
    y = 32
    for line in lines:
        for at, label in enumerate(line.boxes):
            x = LEFT + at * BOX
            picture.box(x, y, BOX, 22, fill=line.color if label else "")
            picture.text(x + BOX / 2, y + 15, label, anchor="middle", kind="mono small")
        if line.text:
            picture.text(LEFT, y + 13, line.text, kind=line.kind)
        y += line.high
    return picture.svg
