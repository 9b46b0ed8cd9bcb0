"""The C extension `arraybridge._native`, and what does its work, slower, where there is none.

============  ==================================================================================
`lookup`      the look-ups of the core's table
`pyapi`       CPython's C API by ctypes
`deleters`    DLPack structs and capsules, which any thread may delete
`blocks`      memory for results, used again once nobody refers to it
============  ==================================================================================
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

#: The extension; None without it.
C: Any = None

#: Why there is none; None where there is.
MISSING: str | None = None

if os.environ.get("ARRAYBRIDGE_NO_NATIVE", "0") not in ("", "0"):
    MISSING = "ARRAYBRIDGE_NO_NATIVE is set"
else:
    try:
        C = import_module("arraybridge._native")
    except ModuleNotFoundError:
        MISSING = "it was not compiled"
    # With another ABI of NumPy's; and where warnings are errors, without the global lock.
    except (ImportError, RuntimeError, RuntimeWarning) as error:
        MISSING = f"it cannot be loaded: {error}"
