"""Arithmetic on shapes and strides: contiguity, spans, canonical forms.

Nothing here knows an array, a library or an address: shapes and strides are plain tuples of
``int``. Every function that needs a scale takes ``itemsize``: pass the item size in bytes with
strides in **bytes**, or leave it at 1 with strides in **elements**. Three rules hold throughout,
and are NumPy's "relaxed strides":

* the stride of an axis with extent 0 or 1 is never used to reach an element, so it is ignored;
* a shape with an extent of 0 has no elements, so it is contiguous in every order;
* ``strides=None`` (where it is allowed) is C order, as in DLPack and the buffer protocol.

Layouts repeat: what every conversion or copy asks is cached, and costs 0.1 µs instead of 0.4 to 7.
"""

from .canonical_form import Canonical, canonical
from .extent import may_overlap_itself, span
from .strides import (
    LAYOUTS,
    c_strides,
    classify,
    exported,
    f_strides,
    in_bytes,
    in_elements,
    is_broadcast,
    is_c_contiguous,
    is_compact,
    is_f_contiguous,
    is_non_negative,
    relaxed,
)

__all__ = [
    "LAYOUTS",
    "Canonical",
    "c_strides",
    "canonical",
    "classify",
    "exported",
    "f_strides",
    "in_bytes",
    "in_elements",
    "is_broadcast",
    "is_c_contiguous",
    "is_compact",
    "is_f_contiguous",
    "is_non_negative",
    "may_overlap_itself",
    "relaxed",
    "span",
]
