"""One picture of what arraybridge does: a view, two copies and a refusal, each a real result.

Beside each is what the library's own function does with the same array: found out as the picture is
drawn, and so on the newest libraries by ``make test VERSIONS=newest``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import arraybridge as ab
from benchmarks.svg import WIDTH, Picture

BLUE, GREEN, RED = "#2f81c7", "#3a9a4b", "#d9534f"
BOX, HIGH, TOP = 21, 110, 52


class Row(NamedTuple):
    """A call of ours, the library's own, and how the latter ends."""

    title: str
    call: str
    own: str
    ends: Callable[[], tuple[str, bool]]  # in words, and whether that is harm


def flags() -> np.ndarray:
    x = np.arange(6.0)
    x.flags.writeable = False
    return x


def given() -> dict[str, Any]:
    import torch

    z = torch.view_as_complex(torch.arange(6.0).reshape(3, 2))
    t = torch.ones(6, requires_grad=True)
    return {"x": np.arange(6.0), "z": z, "r": flags(), "t": t, "np": np, "torch": torch}


def shares() -> tuple[str, bool]:
    names = given()
    y = eval("torch.from_dlpack(x[::2])", names)
    same = y.data_ptr() == names["x"].ctypes.data
    return "is a view, too" if same else "copies", False


def signs() -> tuple[str, bool]:
    names = given()
    own, right = eval("np.from_dlpack(z.conj().imag), z.conj().imag", names)
    harm = own.tolist() == [-value for value in right.tolist()]
    return "flips the signs silently" if harm else "is the same", harm


def writes() -> tuple[str, bool]:
    names = given()
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        eval("torch.from_dlpack(r)", names)[0] = 9.0
    harm, said = bool(names["r"][0] == 9), "with" if heard else "without"
    return f"is writable, {said} a warning" if harm else "copies", harm


def raises() -> tuple[str, bool]:
    try:
        eval("np.from_dlpack(t)", given())
    except Exception as error:
        return f"raises {type(error).__name__}, too", False
    return "makes an array", True


ROWS = (
    Row("a slice with a step", 'ab.convert(x[::2], "torch")', "torch.from_dlpack(x[::2])", shares),
    Row(
        "the imaginary part of a conjugate",
        'ab.convert(z.conj().imag, "numpy")',
        "np.from_dlpack(z.conj().imag)",
        signs,
    ),
    Row("a read-only array", 'ab.convert(r, "torch")', "torch.from_dlpack(r)", writes),
    Row("a tensor with a gradient", 'ab.convert(t, "numpy")', "np.from_dlpack(t)", raises),
)
KINDS = {"view": ("view", BLUE), "kernel": ("copy", GREEN), "refuse": ("error", RED)}


def drawn() -> str:
    title = "Convert any library's array to any other library"
    told = []
    picture = Picture(WIDTH, TOP + len(ROWS) * HIGH - 2, title)
    picture.text(
        12, 40, "A view where that is safe, otherwise a copy, or an error with the remedy."
    )
    for at, row in enumerate(ROWS):
        told.append(_row(picture, TOP + at * HIGH, row))
    picture.lines[1] = picture.lines[1].replace(title, f"{title}. {' '.join(told)}", 1)
    return picture.svg


def _row(picture: Picture, top: float, row: Row) -> str:
    names = {"ab": ab, **given()}
    route = eval(row.call.replace("convert", "explain"), names)
    word, color = KINDS[route.kind]
    picture.line(12, top, WIDTH - 12, top, "grid")
    picture.text(12, top + 19, row.title, kind="bold")
    picture.box(12, top + 28, 42, 18, fill=color)
    picture.text(33, top + 41, word, anchor="middle", kind="bold")
    picture.text(62, top + 41, row.call, kind="mono")
    why, _, advice = route.why.partition(": ")
    why = why.partition(";")[0]
    first = {"view": "nothing is copied", "kernel": f"{route.nbytes} bytes are copied"}
    said = [first.get(route.kind, why), advice or why]
    for line, words in enumerate(said):
        picture.text(12, top + 62 + 15 * line, words)
    ends, harmful = row.ends()
    picture.text(12, top + 97, row.own, kind="mono small")
    shown = "bad bold" if harmful else "faint"
    picture.text(26 + 6.1 * len(row.own), top + 97, ends, kind=shown)
    _memory(picture, top + 14, route, row.call, names)
    return f"{row.title}: {row.call} gives {word}, {', '.join(said)}; {row.own} {ends}."


def _memory(picture: Picture, top: float, route: Any, call: str, names: dict[str, Any]) -> None:
    """The items of the source with their values, and those of a copy."""
    info, left = route.info, WIDTH - 12 - 6 * BOX
    values = eval(call.removeprefix("ab.convert(").rpartition(", ")[0], names).tolist()
    for i in range(6):
        at, off = divmod(i, info.strides[0])
        held = "" if off else f"{-values[at] if info.pending else values[at]:g}"
        _item(picture, left + i * BOX, top, held, BLUE)
    said = {"view": "memory of both", "kernel": f"memory of {route.source}"}
    picture.text(WIDTH - 12, top + BOX + 11, said.get(route.kind, f"memory of {route.source}"),
                 anchor="end", kind="small faint")  # fmt: skip
    if route.kind != "kernel":
        return
    for i, value in enumerate(values):
        _item(picture, left + i * BOX, top + 42, f"{value:g}", GREEN)
    picture.text(WIDTH - 12, top + 42 + BOX + 11, "new memory", anchor="end",
                 kind="small faint")  # fmt: skip


def _item(picture: Picture, x: float, y: float, value: str, color: str) -> None:
    picture.box(x, y, BOX, BOX, fill=color if value else "")
    if value:
        picture.text(x + BOX / 2, y + 15, value, anchor="middle", kind="mono")
    else:
        picture.line(x + 4, y + BOX - 4, x + BOX - 4, y + 4, "grid")
