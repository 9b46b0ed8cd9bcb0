"""``Array``: any library's array, or bare memory, as the standard's array object."""

from .carrier import Array
from .fallback import delegate_to_fallback
from .ingest import from_dlpack, from_pointer

delegate_to_fallback(Array)

__all__ = ["Array", "from_dlpack", "from_pointer"]
