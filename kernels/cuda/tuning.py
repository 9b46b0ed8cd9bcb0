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


DEFAULT = Tuning()

#: What may be chosen, the default first.
CHOICES: dict[str, tuple[Any, ...]] = {
    "box": ("registers", "cp.async"),
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
