"""Where JAX departs from the standard, by chapter."""

from ....xp.corrections import Correction
from . import creation, elementwise, functions, reductions

CORRECTIONS: tuple[Correction, ...] = (
    *creation.CORRECTIONS,
    *elementwise.CORRECTIONS,
    *functions.CORRECTIONS,
    *reductions.CORRECTIONS,
)
