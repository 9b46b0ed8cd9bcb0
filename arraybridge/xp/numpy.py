"""The array API standard over Arrays of NumPy."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy

from .namespace import open_namespace

if TYPE_CHECKING:
    from .standard.everything import *  # noqa: F403


def _normal(result):
    return result if result.__class__ is numpy.ndarray else numpy.asarray(result)


open_namespace(sys.modules[__name__], "numpy", native_type=numpy.ndarray, normal=_normal)
