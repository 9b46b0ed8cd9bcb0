"""Pillow: images as arrays and arrays as images; nothing is silently converted or dropped."""

from __future__ import annotations

import numpy as np
import pytest

PIL = pytest.importorskip("PIL")

from PIL import Image  # noqa: E402

import arraybridge as ab  # noqa: E402
from tests.support.optional import optional  # noqa: E402

torch = optional("torch")


def numbers(dtype, *shape):
    x = np.arange(1, 1 + np.prod(shape)).reshape(shape)
    return x % 3 == 0 if dtype == "bool" else (x * 3).astype(dtype)


# Mode, the array that it is, whether Pillow's memory is viewed, and the array's.
MODES = [
    ("L", numbers("uint8", 3, 5), True, True),
    ("RGBA", numbers("uint8", 3, 5, 4), True, True),
    ("RGB", numbers("uint8", 3, 5, 3), True, False),
    ("LA", numbers("uint8", 3, 5, 2), True, False),
    ("I;16", numbers("uint16", 3, 5), True, True),
    ("I", numbers("int32", 3, 5), True, True),
    ("F", numbers("float32", 3, 5), True, True),
    ("1", numbers("bool", 3, 5), False, False),
]
BY_MODE = pytest.mark.parametrize(
    ("mode", "x", "viewed", "shared"), MODES, ids=[mode for mode, *_ in MODES]
)


@BY_MODE
def test_an_array_becomes_an_image(mode, x, viewed, shared):
    given = x.copy()
    for _ in range(2):
        image = ab.convert(given, "pillow")
        assert (image.mode, image.size) == (mode, (5, 3))
        np.testing.assert_array_equal(np.asarray(image), x)
        assert ab.explain(given, "pillow").kind == ("view" if shared else "copy")
    given[0, 0] = given[2, 4]
    assert (image.getpixel((0, 0)) == image.getpixel((4, 2))) is shared
    if shared:
        image.putpixel((1, 1), image.getpixel((4, 2)))  # in place: it is not marked read-only
        assert given[1, 1].tolist() == given[2, 4].tolist()
    other = ab.convert(x, PIL, copy=True)
    other.putpixel((0, 0), other.getpixel((1, 0)))
    assert x[0, 0].tolist() != x[0, 1].tolist() or mode == "1"
    if not shared:
        with pytest.raises(ab.ConversionError, match="by copying it only"):
            ab.convert(x, "pillow", copy=False)


@BY_MODE
@pytest.mark.parametrize("to", ["numpy", "torch"])
def test_an_image_becomes_an_array(mode, x, viewed, shared, to):
    image = ab.convert(x, "pillow", copy=True)
    for _ in range(2):
        route = ab.explain(image, to)
        result = ab.convert(image, to)
        assert ab.convert(result, "numpy").tobytes() == x.tobytes()
        copied = not viewed or (mode == "LA" and to == "torch")  # read-only: it is there thrice
        assert route.kind == ("copy" if copied else "view")
    if not copied and mode != "LA":
        image.putpixel((0, 0), image.getpixel((4, 2)))
        assert result[0, 0].tolist() == result[2, 4].tolist()
        result[1, 1] = result[2, 4]
        assert image.getpixel((1, 1)) == image.getpixel((4, 2))


def test_read_only_memory_stays_so():
    x = numbers("uint8", 3, 5)
    x.flags.writeable = False
    image = ab.convert(x, "pillow")
    assert image.readonly
    view = ab.convert(image, "numpy")
    assert view.ctypes.data == x.ctypes.data
    assert not view.flags.writeable
    image.putpixel((0, 0), 99)  # Pillow copies it first
    assert x[0, 0] == 3
    assert ab.convert(image, "numpy")[0, 0] == 99
    mapped = Image.frombuffer("L", (5, 3), bytes(x), "raw", "L", 0, 1)
    assert not ab.convert(mapped, "numpy").flags.writeable


@pytest.mark.parametrize("mode", ["RGB", "L", "LA", "1", "F"])
def test_images_of_several_blocks(mode):
    channels = {"RGB": (3,), "LA": (2,)}.get(mode, ())
    dtype = {"1": "bool", "F": "float32"}.get(mode, "uint8")
    shape = (5000, 4000) if mode in ("L", "1") else (2500, 2000)
    rng = np.random.default_rng(1)
    x = rng.integers(0, 2 if mode == "1" else 256, (*shape, *channels)).astype(dtype)
    image = Image.new(mode, shape[::-1])
    with pytest.raises(ValueError, match="contiguous"):
        image.__arrow_c_array__()
    image = ab.convert(x, "pillow", copy=True)
    assert image.tobytes() == Image.fromarray(x).tobytes()
    image = image.copy()  # in blocks of Pillow's, also where the array was shared
    if mode != "1":
        assert "several chunks" in ab.explain(image, "numpy").why
    result = ab.convert(image, "numpy")
    assert result.flags.writeable
    assert np.array_equal(result, x)


def test_a_palette_is_not_dropped():
    image = Image.new("RGB", (4, 4), (250, 1, 1)).quantize(4)
    assert image.mode == "P"
    for odd in (image, image.convert("PA")):
        for to in ("numpy", "torch", "jax"):
            assert ab.explain(odd, to).kind == "refuse"
            with pytest.raises(ab.ConversionError, match=r"palette, x.convert\('RGBA'\)"):
                ab.convert(odd, to, copy=True)
    x = image
    colors, indices = x.convert("RGBA"), np.asarray(x)
    assert ab.convert(colors, "numpy")[0, 0].tolist() == [250, 1, 1, 255]
    assert ab.convert(indices, "torch").shape == (4, 4)


@pytest.mark.parametrize("mode", ["HSV", "YCbCr", "CMYK", "RGBa", "La", "RGBX", "I;16B"])
def test_other_modes_are_the_numbers_that_numpy_sees_and_keep_their_mode(mode):
    image = Image.new(mode, (4, 3))
    width = {"I;16B": 2}.get(mode, len(image.getbands()))
    image.frombytes(bytes(range(12 * width)))
    expected = np.asarray(image)
    for to in ("numpy", "torch"):
        for _ in range(2):
            found = ab.convert(ab.convert(image, to), "numpy")
            np.testing.assert_array_equal(found, expected)
    copy = ab.convert(image, "pillow", copy=True)
    assert (copy.mode, copy.tobytes()) == (image.mode, image.tobytes())
    assert ab.convert(image, "pillow") is image
    assert ab.contiguous(image) is image


def test_closed_and_empty_images():
    image = Image.new("RGB", (4, 4))
    image.close()
    with pytest.raises(ab.ConversionError, match="closed"):
        ab.convert(image, "numpy")
    for shape in ((0, 4), (4, 0), (0, 0), (0, 4, 3), (3, 0, 4)):
        x = np.zeros(shape, np.uint8)
        image = ab.convert(x, "pillow")
        assert image.size == shape[1::-1]
        assert ab.convert(image, "numpy").shape == shape
