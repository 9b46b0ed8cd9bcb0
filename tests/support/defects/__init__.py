"""Probes of the defects that arraybridge corrects: by library, and by the name of the function.

``probe(xp)`` says whether the defect shows in a namespace of native arrays; False, and the entry of
the library's ``CORRECTIONS`` can go. An exception counts as the defect.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

Probe = Callable[[Any], bool]


def probes_of(library: str) -> dict[str, Probe]:
    """The probe of each correction of a library."""
    probes: dict[str, Probe] = import_module(f"{__name__}.{library}").PROBES
    return probes
