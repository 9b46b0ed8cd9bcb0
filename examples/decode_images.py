"""Images from Pillow to PyTorch and JAX: views of the pixels, and a batch in one pass.

    python examples/decode_images.py

Needs pillow, torch and jax.
"""

from __future__ import annotations

import io

import jax
import numpy as np
import torch
from PIL import Image

import arraybridge as ab


def files() -> list[bytes]:
    """Return four PNG files."""
    rng = np.random.default_rng(0)
    result = []
    for _ in range(4):
        rough = Image.fromarray(rng.integers(0, 256, (12, 16, 3), np.uint8))
        stream = io.BytesIO()
        rough.resize((640, 480), Image.Resampling.BICUBIC).save(stream, "png")
        result.append(stream.getvalue())
    return result


@jax.jit  # type: ignore[untyped-decorator]
def contrast(batch: jax.Array) -> jax.Array:
    """Compute the contrast of each image."""
    return batch.astype("float32").std(axis=(1, 2, 3))


def main() -> None:
    """Decode, look at the routes, make a batch for both libraries, and draw into an image."""
    images = [Image.open(io.BytesIO(file)) for file in files()]
    first = images[0]
    first.load()
    print(f"{first.mode}, {first.size[0]} x {first.size[1]}: {ab.explain(first, 'torch')}")
    pixels = ab.convert(first, "torch")
    print(f"strides of the tensor: {pixels.stride()}, as Pillow stores four bytes per pixel")
    print(f"NumPy's view is writable: {np.asarray(first).flags.writeable}", end=", ")
    print(f"arraybridge's: {ab.convert(first, 'numpy').flags.writeable}")

    batch = torch.empty(4, 3, 480, 640, dtype=torch.uint8)
    for image, place in zip(images, batch, strict=True):
        ab.copyto(place, ab.convert(image, "torch").permute(2, 0, 1))  # one copy, channels first
    print(f"\nthe batch: {tuple(batch.shape)}, {batch.dtype}, contiguous {batch.is_contiguous()}")
    values = contrast(ab.convert(batch, "jax", copy=False))  # a view: nobody writes to it now
    print("contrasts by JAX:   ", np.round(np.asarray(values), 2))
    print("contrasts by PyTorch:", batch.float().std((1, 2, 3), correction=0).numpy().round(2))

    pixels[200:280, 280:360] = torch.tensor([255, 0, 0], dtype=torch.uint8)
    print("\na square drawn by PyTorch, as Pillow sees it:", first.getpixel((320, 240)))
    mask = ab.convert((batch[1, 0] > 128), "pillow")
    print(f"a mask as an image: mode {mask.mode}, {mask.size[0]} x {mask.size[1]}")


if __name__ == "__main__":
    main()
