"""The array API standard over Arrays of array-api-strict."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import array_api_strict

from .namespace import open_namespace

if TYPE_CHECKING:
    from .standard.everything import *  # noqa: F403

open_namespace(
    sys.modules[__name__], "array_api_strict", native_type=type(array_api_strict.zeros(()))
)
