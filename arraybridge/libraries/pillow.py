"""Pillow. An image is an array of (height, width), or of (height, width, channels) of bytes.

Every pixel of several channels has four bytes, so RGB is a strided view of three of them, and an
array of three channels can only be copied into an image. Arrays of one or four channels are shared:
the image is made over their memory, as ``Image.frombuffer`` does, and writes to it.

Pillow's own conversions change values: ``Image.fromarray`` makes int32 from int8 and uint16 and
float32 from float64; ``numpy.asarray`` drops an image's palette. Neither is used.
"""

from ctypes import c_void_p

import numpy as np
from PIL import Image

from ..core.library import Library
from ..core.records import NO_DTYPE, Accepts, ConversionError, Edge, TensorInfo
from ..dlpack import CPU, DataType, ManagedTensor, c_strides
from ..native import pyapi
from .numpy.exchange import LIBRARY as NUMPY

_UINT8, _BOOL = DataType.named("uint8"), DataType.named("bool")
#: The dtypes of modes with one channel.
_PLAIN = {
    "L": _UINT8,
    "1": _BOOL,
    "I": DataType.named("int32"),
    "F": DataType.named("float32"),
    **dict.fromkeys(("I;16", "I;16L", "I;16N", "I;16B"), DataType.named("uint16")),
}
#: Modes of several bytes: the number of channels, and their distance in the four bytes of a pixel.
_CHANNELS = {
    **dict.fromkeys(("RGBA", "RGBX", "RGBa", "CMYK"), (4, 1)),
    **dict.fromkeys(("RGB", "YCbCr", "HSV"), (3, 1)),
    **dict.fromkeys(("LA", "La"), (2, 3)),
}
_PENDING = {"1": ("truth",), "I;16B": ("byteorder",)}
_MODES = {"uint8": "L", "uint16": "I;16", "int32": "I", "float32": "F", "bool": "1"}
_OF_CHANNELS = {2: "LA", 3: "RGB", 4: "RGBA"}


class Pillow(Library):
    """``PIL.Image.Image``."""

    name = "pillow"
    # Of any size: the mode is more than the dtype.
    edges = (Edge("pillow", "pillow", lambda x: x.copy(), copies=True),)
    accepts = Accepts(
        library="pillow",
        tested="13.0.0",
        dtypes=frozenset(_MODES),
        strides="c",
        readonly=True,
        ndim=(2, 3),
        largest=2**31 - 1,
        copied=frozenset({"bool"}),
        remedies={
            "": "its images are uint8, uint16, int32, float32 or bool: pass one as dtype=, and "
            "casting='same_value', which raises if a number would change"
        },
        per_array=lambda info: _accepted(info),
        one_layout=True,
    )

    def owns(self, array_type: type) -> bool:
        return issubclass(array_type, Image.Image)

    def describe(self, x: Image.Image | np.ndarray) -> TensorInfo:
        if isinstance(x, np.ndarray):  # the result of resolve
            return NUMPY.describe(x)._replace(library="pillow")
        return self._described(x)[0]

    def may_change(self, x: Image.Image | np.ndarray) -> bool:
        return True  # a mapped file may, and Pillow writes to what it exports read-only

    def _described(self, x: Image.Image) -> tuple[TensorInfo, object]:
        """Describe an image, and return what holds its memory."""
        mode = x.mode
        shape: tuple[int, ...] = x.height, x.width
        if mode not in _PLAIN and mode not in _CHANNELS:  # a palette, or LAB's signed channels
            why = (
                f"an image of mode {mode!r} has no dtype: pass its channels, "
                "numpy.asarray(x), or the colors of its palette, x.convert('RGBA')"
            )
            return TensorInfo("pillow", 0, 0, shape, (), NO_DTYPE, CPU, refused=why), None
        try:
            found = pixels(x)
        except ValueError as error:
            raise ConversionError(f"Pillow could not export the pixels ({error})") from error
        data, holder = found or (0, None)
        pending = _PENDING.get(mode, ()) + (() if found else ("chunks",))
        dtype, strides = _PLAIN.get(mode, _UINT8), c_strides(shape)
        if mode in _CHANNELS:
            channels, step = _CHANNELS[mode]
            shape = (*shape, channels)
            strides = (4 * shape[1], 4, step) if found else c_strides(shape)
        # The lightness of LA is stored three times: writing to one would not change the others.
        readonly = bool(x.readonly) or mode in ("LA", "La")
        info = TensorInfo("pillow", data, 0, shape, strides, dtype, CPU, readonly, pending=pending)
        return info, holder

    def memory_owner(self, x: object, info: TensorInfo, briefly: bool = False) -> object:
        if briefly or isinstance(x, np.ndarray):
            return x
        now, holder = self._described(x)
        if now.data != info.data:
            raise ConversionError("the image's pixels were replaced meanwhile: convert it again")
        return holder

    def wrap(self, tensor: ManagedTensor) -> Image.Image:
        height, width, *channels = tensor.shape
        kind = tensor.dtype.name
        mode = _OF_CHANNELS[channels[0]] if channels else _MODES[kind]
        array = NUMPY.wrap(tensor)
        if not array.size:
            return Image.new(mode, (width, height))
        if mode in ("L", "RGBA", "I;16", "I", "F"):
            return _shared(array, mode)
        raw = "1;8" if mode == "1" else mode
        return Image.frombytes(mode, (width, height), np.ascontiguousarray(array), "raw", raw, 0, 1)

    def resolve(self, x: Image.Image) -> np.ndarray:
        """Copy the pixels by Pillow, which decodes what a dtype cannot describe."""
        array = np.asarray(x)
        if array.dtype == np.bool_:  # bytes of 255
            return array.view(np.uint8) != 0
        return np.array(array, array.dtype.newbyteorder("="))


_COPIED = Pillow.accepts._replace(copied=frozenset({"uint8"}))
_NO_CHANNELS = Pillow.accepts._replace(
    dtypes=frozenset(),
    copied=frozenset(),
    remedies={
        "": "has no image of this shape and data type: a third axis, the last, has 2, 3 or 4 "
        "channels of uint8; move the channels there, or pass one of them, x[..., 0]"
    },
)


def _accepted(info: TensorInfo) -> Accepts:
    if info.ndim != 3 or info.dtype.name not in _MODES:
        return Pillow.accepts
    channels = info.shape[2]
    if info.dtype == _UINT8 and channels in _OF_CHANNELS:
        return Pillow.accepts if channels == 4 else _COPIED
    return _NO_CHANNELS


def _shared(array: np.ndarray, mode: str) -> Image.Image:
    """Return an image over the memory of an array in C order, as ``Image.frombuffer`` does.

    (For some modes; for others that copies.) Pillow copies an image that is marked read-only before
    it writes to it, but ``frombytes`` ignores the mark.
    """
    size = array.shape[1], array.shape[0]
    core = Image.core.map_buffer(array, size, "raw", 0, (mode, 0, 1))
    image = Image.Image()._new(core)
    image.readonly = int(not array.flags.writeable)
    return image


def pixels(image: Image.Image) -> tuple[int, object] | None:
    """Return the address of an image's first pixel and what holds the memory.

    None if its rows are not contiguous: in several blocks (16 MB each), or in part of other memory.
    """
    if 0 in image.size:
        return 0, image.im
    try:
        _, capsule = image.__arrow_c_array__()
    except (ValueError, AttributeError):  # a version without it
        image.load()  # raises for a closed one
        return None
    # An ArrowArray is length, null_count, offset, n_buffers, n_children, buffers, children, ...
    array = (c_void_p * 7).from_address(pyapi.capsule_pointer(capsule, b"arrow_array"))
    if array[4]:  # several channels are a list of four bytes per pixel
        array = (c_void_p * 7).from_address(c_void_p.from_address(array[6] or 0).value or 0)
    return c_void_p.from_address((array[5] or 0) + 8).value or 0, capsule


LIBRARY = Pillow()
