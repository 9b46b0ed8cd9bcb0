"""The array API standard over Arrays of dpnp."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import dpnp

from .namespace import open_namespace

if TYPE_CHECKING:
    from .standard.everything import *  # noqa: F403
    from .standard.everything import __array_api_version__ as __array_api_version__
    from .standard.everything import __array_namespace_info__ as __array_namespace_info__

open_namespace(sys.modules[__name__], "dpnp", native_type=dpnp.ndarray)
