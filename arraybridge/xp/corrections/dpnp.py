"""Where dpnp departs from the standard."""

from __future__ import annotations

from . import Correction

CORRECTIONS: tuple[Correction, ...] = ()
