"""Corrections of JAX's functions, by chapter of the standard."""

from ....xp.corrections import Correction
from . import creation, elementwise, functions, reductions

CORRECTIONS: tuple[Correction, ...] = (
    *creation.CORRECTIONS,
    *elementwise.CORRECTIONS,
    *functions.CORRECTIONS,
    *reductions.CORRECTIONS,
)
