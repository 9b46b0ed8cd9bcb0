"""``Array``: an array of any library, or bare memory, as the standard's array object."""

from . import device_namespace as device_namespace  # which gives Array its operators
from .array import Array, from_dlpack
from .pointer import from_pointer

__all__ = ["Array", "from_dlpack", "from_pointer"]
