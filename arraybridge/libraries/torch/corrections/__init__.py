"""Corrections of PyTorch's functions, by chapter of the standard."""

from ....xp.corrections import Correction
from . import broadcasting, creation, elementwise, indices, promotion, reductions, types

CORRECTIONS: tuple[Correction, ...] = (
    *types.CORRECTIONS,
    *creation.CORRECTIONS,
    *promotion.CORRECTIONS,
    *elementwise.CORRECTIONS,
    *reductions.CORRECTIONS,
    *indices.CORRECTIONS,
    *broadcasting.CORRECTIONS,
)
