"""``Array``: any library's array, or bare memory, as the standard's array object."""

from .array import Array, from_dlpack
from .fallback import delegate_to_fallback
from .pointer import from_pointer

delegate_to_fallback(Array)

__all__ = ["Array", "from_dlpack", "from_pointer"]
