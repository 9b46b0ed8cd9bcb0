"""The main namespace of the array API standard 2025.12 whole, with its extensions.

For type checkers: ``arraybridge.xp.<library>`` shows itself to them as this. Nothing imports it.
mypy knows no ``__all__`` that is put together from others, and is not shown it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

MYPY = False  # True to mypy alone

if TYPE_CHECKING:
    from . import (
        constants,
        creation_functions,
        data_type_functions,
        elementwise_functions,
        indexing_functions,
        inspection,
        linear_algebra_functions,
        manipulation_functions,
        searching_functions,
        set_functions,
        sorting_functions,
        statistical_functions,
        utility_functions,
    )
    from . import fft as fft
    from . import linalg as linalg
    from .constants import *
    from .creation_functions import *
    from .data_type_functions import *
    from .elementwise_functions import *
    from .indexing_functions import *
    from .inspection import *
    from .linear_algebra_functions import *
    from .manipulation_functions import *
    from .searching_functions import *
    from .set_functions import *
    from .sorting_functions import *
    from .statistical_functions import *
    from .types import DType
    from .utility_functions import *

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

    if not MYPY:
        __all__ = [
            "__array_api_version__",
            "bool",
            "complex64",
            "complex128",
            "fft",
            "float32",
            "float64",
            "int8",
            "int16",
            "int32",
            "int64",
            "linalg",
            "uint8",
            "uint16",
            "uint32",
            "uint64",
        ]
        __all__ += constants.__all__
        __all__ += creation_functions.__all__
        __all__ += data_type_functions.__all__
        __all__ += elementwise_functions.__all__
        __all__ += indexing_functions.__all__
        __all__ += inspection.__all__
        __all__ += linear_algebra_functions.__all__
        __all__ += manipulation_functions.__all__
        __all__ += searching_functions.__all__
        __all__ += set_functions.__all__
        __all__ += sorting_functions.__all__
        __all__ += statistical_functions.__all__
        __all__ += utility_functions.__all__
