"""Which variant of a kernel a device uses: measured choices, as data.

``tuning.json`` is a table: compute capability, such as ``"9.0"`` -> the choices that differ from
`DEFAULT`. ``make gpu`` measures each on a device and proposes an entry.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any, NamedTuple


class Tuning(NamedTuple):
    """The choices of the planner that do not depend on the layout; hashable, as a cache key."""

    #: How `box` moves lines to shared memory: through ``"registers"``, or by ``"cp.async"``, which
    #: needs none and has all loads in flight at once (sm_80 and later).
    box: str = "registers"
    #: Whether `shift` is compiled for ``"any"`` distance of the two sides modulo 16, or for each
    #: ``"known"`` one, with fewer instructions but more kernels.
    shift: str = "any"
    #: Vectors of a channel per thread of `merge`, if the layout is even and items have at least 4
    #: bytes.
    merge: int = 1
    #: How `plain` moves items to shared memory, like `box`.
    plain: str = "registers"
    #: Bytes of a tile, for items of at least 2 bytes.
    tile: int = 16384
    #: Cache hints in `rows` and `tile`, for ``"loads"`` of 16 bytes (``L1::no_allocate``,
    #: ``L2::128B``), ``"stores"`` (``.cs``, evicted first), or ``"both"``.
    hints: str = ""


DEFAULT = Tuning()

#: The possible choices, the default first.
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
