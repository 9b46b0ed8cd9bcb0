"""Where the pixels of an image are: by the address in what it exports for Arrow.

Source: the Arrow C data interface, for the fields of ``ArrowArray``. The capsule is read and never
consumed: it holds the memory of the image, whatever becomes of the image, until it is collected.
"""

from __future__ import annotations

from ctypes import c_void_p

from PIL import Image

from ...dlpack import pyapi
from ...protocols.arrow_memory import Array


def pixels(image: Image.Image) -> tuple[int, object] | None:
    """Return the address of an image's first pixel, and what holds the memory.

    None where its rows lie apart: in several blocks (16 MB each), or in a part of other memory.
    """
    if 0 in image.size:
        return 0, image.im
    try:
        _, capsule = image.__arrow_c_array__()
    except (ValueError, AttributeError):  # a version without it
        image.load()  # says what is wrong with a closed one
        return None
    array = Array.from_address(pyapi.capsule_pointer(capsule, b"arrow_array"))
    if array.n_children:  # several channels are a list of four bytes a pixel
        array = Array.from_address(c_void_p.from_address(array.children).value or 0)
    return c_void_p.from_address(array.buffers + 8).value or 0, capsule
