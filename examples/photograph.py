"""One photograph through NumPy, PyTorch and JAX and back, and one function for all three.

    python examples/photograph.py [picture.png]

It prints the route of every conversion, and writes the photograph beside its sharpened copy.
Needs scikit-learn and pillow (for the photograph), torch and jax; ``make demo`` installs them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from PIL import Image
from sklearn.datasets import load_sample_image

import arraybridge as ab
from arraybridge.typing import LibraryName

DETAIL = 1.5  # how much of the detail is added back
BLUR = (1 / 16, 4 / 16, 6 / 16, 4 / 16, 1 / 16)  # binomial weights


def sharpen(image: Any) -> Any:
    """Sharpen an image by an unsharp mask: add the detail that a blur removes.

    Parameters
    ----------
    image : array, shape (channels, height, width)
        Floating point, values in 0 to 1, of any library that has an array-API namespace.

    Returns
    -------
    array
        Of the same library, shape and dtype.
    """
    xp = ab.namespace(image)  # NumPy's for an ndarray, PyTorch's for a tensor, JAX's for its arrays
    blurred = image
    for axis in (1, 2):
        last = image.shape[axis] - 1
        indices = xp.arange(last + 1)
        blurred = sum(  # pixels past the border repeat those on it
            weight * xp.take(blurred, xp.clip(indices + offset, 0, last), axis=axis)
            for offset, weight in enumerate(BLUR, start=-2)
        )
    return xp.clip(image + DETAIL * (image - blurred), 0.0, 1.0)


def convert(what: str, x: Any, to: LibraryName) -> Any:
    """Convert an array and print how; return None if arraybridge refuses."""
    route = ab.explain(x, to)
    print(f"\n{what}: {route}")
    try:
        result = ab.convert(x, to)
    except ab.ConversionError:
        return None  # the route gives the reason and the remedy
    print(f"    address before {ab.inspect(x).pointer:#x}, after {ab.inspect(result).pointer:#x}")
    print(f"    converted in {median_time(lambda: ab.convert(x, to))}")
    return result


def median_time(call: Callable[[], object]) -> str:
    """Return the median time of a call as text."""
    times = []
    for _ in range(101):
        begun = time.perf_counter()
        call()
        times.append(time.perf_counter() - begun)
    return f"{sorted(times)[50] * 1e6:,.1f} us"


def main(out: str) -> None:
    """Convert the photograph, sharpen it in every library, compare, and write a PNG."""
    photograph = np.array(load_sample_image("china.jpg"))
    print(f"A photograph, decoded in NumPy: {photograph.shape}, {photograph.dtype}.")
    print("arraybridge returns a view if that is safe, else a copy, and raises an error if")
    print("neither is right.")

    # PyTorch models want channels first and floating point.
    tensor = convert("The photograph", photograph, "torch")
    floats = tensor.permute(2, 0, 1).to(torch.float32).div(255).contiguous()

    # The same image in three libraries.
    images = {"torch": floats}
    images["jax"] = convert("As float32", floats, "jax")
    images["numpy"] = convert("As float32", images["jax"], "numpy")
    convert("As float32", images["numpy"], "torch")  # JAX's memory stays read-only: a copy

    # What PyTorch or JAX cannot represent.
    convert("Its mirror image, photograph[:, ::-1]", photograph[:, ::-1], "torch")
    convert("In double precision", images["numpy"].astype(np.float64), "jax")

    print("\nOne function, sharpen(image), in each library; the results are native arrays:")
    results = {library: sharpen(image) for library, image in images.items()}
    for library, result in results.items():
        difference = np.max(np.abs(ab.convert(result, "numpy") - results["numpy"]))
        name = type(result).__name__
        print(f"    {library}: {name} {tuple(result.shape)}, at most {difference:.1e} from NumPy")
        if difference > 1e-6:  # more than the rounding of float32
            sys.exit("the libraries disagree")

    sharpened = np.round(ab.convert(results["jax"], "numpy").transpose(1, 2, 0) * 255)
    Image.fromarray(np.hstack([photograph, sharpened.astype(np.uint8)])).save(out)
    print(f"\nBefore and after, side by side: {out}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "arraybridge-demo.png")
