"""``Array``: any library's array, or bare memory, as the standard's array object."""

from .adoption import hand_on
from .carrier import Array
from .ingest import from_dlpack, from_pointer

hand_on(Array)

__all__ = ["Array", "from_dlpack", "from_pointer"]
