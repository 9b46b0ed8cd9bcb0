"""Which variant of a kernel a device gets: choices that were measured, as data.

``tuning.json`` has a table: a compute capability, as ``"9.0"`` -> the choices that differ from
`DEFAULT`. ``make gpu`` measures each on a device and says what the table should have.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any, NamedTuple


class Tuning(NamedTuple):
    """The choices of the planner that do not follow from a layout; a key, as a plan is."""

    #: How `box` takes lines to shared memory: through ``"registers"``, or by ``"cp.async"``, which
    #: needs none and has all loads in flight at once (sm_80 and later).
    box: str = "registers"
    #: Whether `shift` is compiled for ``"any"`` distance of the two sides, modulo 16, or for each
    #: ``"known"`` one, which takes fewer instructions and more kernels.
    shift: str = "any"
    #: Vectors of a channel that a thread of `merge` takes at once, where the layout is even and
    #: items have 4 bytes and more.
    merge: int = 1
    #: How `plain` takes items to shared memory: as `box`.
    plain: str = "registers"
    #: Bytes of a tile, of items of 2 bytes and more.
    tile: int = 16384
    #: Hints to the caches in `rows` and `tile`, for ``"loads"`` of 16 bytes (``L1::no_allocate``,
    #: ``L2::128B``), ``"stores"`` (``.cs``, evicted first), or ``"both"``.
    hints: str = ""


DEFAULT = Tuning()

#: What may be chosen, the default first.
CHOICES: dict[str, tuple[Any, ...]] = {
    "box": ("registers", "cp.async"),
    "shift": ("any", "known"),
    "merge": (1, 2),
    "plain": ("registers", "cp.async"),
    "tile": (16384, 8192),
    "hints": ("", "loads", "stores", "both"),
}


@cache
def table() -> dict[str, dict[str, Any]]:
    """Read the table."""
    text = resources.files(__package__).joinpath("tuning.json").read_text()
    return dict(json.loads(text))


@cache
def of(capability: tuple[int, int]) -> Tuning:
    """Return the choices for devices of a compute capability."""
    return DEFAULT._replace(**table().get("{}.{}".format(*capability), {}))
