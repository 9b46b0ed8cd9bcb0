"""``"pyarrow.Array"``: a conversion that gives a ``pyarrow.Array``, with an axis of rows.

Other axes are fixed-size lists. Memory in C order is shared, as ``pyarrow.array`` shares NumPy's;
other layouts are copied, and so are booleans, which Arrow packs eight to a byte. Arrow computes at
once: what it has computed does not change when the memory is written later.
"""

from __future__ import annotations

import pyarrow as pa

from ...dispatch.library import Library
from ...dlpack import DeviceType, ManagedTensor
from ...protocols.arrow_export import EXPORTS, of_tensor


class Arrays(Library):
    """Arrow's arrays, as a target; as a source they are those of ``"pyarrow"``."""

    name = "pyarrow.Array"
    forms = (pa.Array,)
    accepts = EXPORTS.accepts._replace(
        library="pyarrow.Array", tested="26.0.1", devices=frozenset({DeviceType.CPU})
    )

    def owns(self, array_type: type) -> bool:
        return False

    def wrap(self, tensor: ManagedTensor, *, move: bool = False) -> pa.Array:
        return pa.array(of_tensor(tensor))


LIBRARY = Arrays()
