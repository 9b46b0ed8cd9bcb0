"""Where PyTorch departs from the standard, by chapter."""

from ....xp.corrections import Correction
from . import broadcasting, creation, elementwise, places, promotion, reductions, types

CORRECTIONS: tuple[Correction, ...] = (
    *types.CORRECTIONS,
    *creation.CORRECTIONS,
    *promotion.CORRECTIONS,
    *elementwise.CORRECTIONS,
    *reductions.CORRECTIONS,
    *places.CORRECTIONS,
    *broadcasting.CORRECTIONS,
)
