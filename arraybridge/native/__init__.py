"""The C extension `arraybridge._native`, and slower Python code for the same without it.

============  ==================================================================================
`lookup`      the look-ups of the core's table
`pyapi`       CPython's C API through ctypes
`deleters`    DLPack structs and capsules, which any thread may delete
`blocks`      memory for results, reused once nothing refers to it
============  ==================================================================================
"""

import ctypes
import os
from importlib import import_module
from typing import Any

_api = ctypes.pythonapi
_this = ctypes.PYFUNCTYPE(ctypes.c_void_p)(("PyInterpreterState_Get", _api))
_number = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(("PyInterpreterState_GetID", _api))
if _number(_this()):  # deleters, NumPy's as well, take the GIL of the main interpreter
    raise ImportError(
        "arraybridge does not work in a sub-interpreter, as NumPy does not: import it in the main "
        "one (for mod_wsgi: WSGIApplicationGroup %{GLOBAL})"
    )

#: The extension; None without it.
C: Any = None

#: Why the extension is missing; None if it is not.
MISSING: str | None = None

if os.environ.get("ARRAYBRIDGE_NO_NATIVE", "0") not in ("", "0"):
    MISSING = "ARRAYBRIDGE_NO_NATIVE is set"
else:
    try:
        C = import_module("arraybridge._native")
    except ModuleNotFoundError:
        MISSING = "it was not compiled"
    # NumPy may have another ABI; without the GIL the import warns, which may be an error.
    except (ImportError, RuntimeError, RuntimeWarning) as error:
        MISSING = f"it cannot be loaded: {error}"
