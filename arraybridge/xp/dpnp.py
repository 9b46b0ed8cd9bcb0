"""The array API standard over Arrays of dpnp."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import dpnp

from .namespace import open_namespace

if TYPE_CHECKING:
    from .standard.everything import *  # noqa: F403

open_namespace(sys.modules[__name__], "dpnp", native_type=dpnp.ndarray)
