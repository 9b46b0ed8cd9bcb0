"""The main namespace of the array API standard 2025.12 with its extensions.

Type checkers see ``arraybridge.xp.<library>`` as this; nothing imports it. It has no ``__all__``:
mypy does not support one that is combined from others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import fft as fft
    from . import linalg as linalg
    from .creation_functions import *
    from .data_types import *
    from .data_types import DType
    from .elementwise_functions import *
    from .linear_algebra_functions import *
    from .manipulation_functions import *
    from .searching_and_sorting import *
    from .statistical_functions import *

    __array_api_version__: str

    bool: DType
    int8: DType
    int16: DType
    int32: DType
    int64: DType
    uint8: DType
    uint16: DType
    uint32: DType
    uint64: DType
    float32: DType
    float64: DType
    complex64: DType
    complex128: DType
