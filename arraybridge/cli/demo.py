"""``demo``: one photograph through NumPy, PyTorch and JAX and back, one function for all."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from .explain import COLOURS
from .screen import screen

NAMES = {"view": "view", "kernel": "copy", "transfer": "transfer", "refuse": "refused"}
SHARPEN = 1.5  # how much of the detail is added back


def sharpen(image: Any) -> Any:
    """Sharpen an image by an unsharp mask: the image, plus what a blur takes away from it.

    Parameters
    ----------
    image : array, shape (channels, height, width)
        Floating point, values in 0 to 1, of any library that has an array-API namespace.

    Returns
    -------
    array
        Of the same library, shape and dtype.
    """
    import arraybridge as ab

    xp = ab.namespace(image)
    blurred = image
    for axis in (1, 2):  # binomial weights, one axis after the other; borders are repeated
        places = xp.arange(image.shape[axis])
        taps = [
            weight * xp.take(blurred, xp.clip(places + k, 0, image.shape[axis] - 1), axis=axis)
            for k, weight in enumerate((1.0, 4.0, 6.0, 4.0, 1.0), start=-2)
        ]
        blurred = (taps[0] + taps[1] + taps[2] + taps[3] + taps[4]) / 16.0
    return xp.clip(image + SHARPEN * (image - blurred), 0.0, 1.0)


def photograph() -> np.ndarray:
    """scikit-learn's photograph of a Chinese temple: (427, 640, 3), uint8.

    Raises
    ------
    ImportError
        If scikit-learn or pillow is not installed.
    """
    import PIL  # noqa: F401 - with which scikit-learn decodes it
    import sklearn.datasets as datasets

    return np.array(datasets.load_sample_image("china.jpg"))  # a writable one


class _Journey:
    """The conversions that the demo makes, each explained before and timed."""

    def __init__(self) -> None:
        self.table = Table(
            "array",
            "from -> to",
            "route",
            "bytes copied",
            "address before\nand after",
            "time",
            "why",
            title="Where the photograph goes",
            caption="The same address before and after: the same memory under another library's "
            "name, nothing was copied. Times are the median of many.",
            caption_justify="left",
            show_lines=True,
        )

    def convert(self, what: str, x: Any, to: str) -> Any:
        """``ab.convert``, with a row in the table; None where it refuses."""
        import arraybridge as ab

        route = ab.explain(x, to)
        colour = COLOURS[route.kind]
        kind = f"[{colour}]{NAMES[route.kind]}[/]"
        where, why = f"{route.source} -> {route.target}", str(route.why)
        try:
            result = ab.convert(x, to)
        except ab.ConversionError as error:
            self.table.add_row(what, where, kind, "-", "-", "-", str(error))
            return None
        before, after = ab.inspect(x).pointer, ab.inspect(result).pointer
        if (before == after) != (route.kind == "view"):
            raise RuntimeError(f"explain said {route.kind}, the addresses are {before}, {after}")
        self.table.add_row(
            what,
            where,
            kind,
            f"{route.nbytes:,}",
            f"[{colour}]{before:#x}\n{after:#x}[/]",
            _time(lambda: ab.convert(x, to)),
            why,
        )
        return result


def _time(call: Callable[[], object]) -> str:
    """The median time of a call, in words."""
    times: list[float] = []
    end = time.perf_counter() + 0.2
    while time.perf_counter() < end or len(times) < 5:
        begun = time.perf_counter()
        call()
        times.append(time.perf_counter() - begun)
    seconds = sorted(times)[len(times) // 2]
    for factor, unit in ((1e3, "ms"), (1e6, "us")):
        if seconds * factor >= 1:
            return f"{seconds * factor:.1f} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def show(out: Path) -> int:
    """Run the demo and write its PNG."""
    import arraybridge as ab

    console = screen()
    pixels = photograph()
    import jax  # noqa: F401 - so that its start is in no time below
    import torch
    from PIL import Image

    console.print(
        f"\n[bold]A photograph[/], decoded in NumPy: {pixels.shape[0]} x {pixels.shape[1]} pixels, "
        f"{pixels.dtype}, height x width x colour.\n"
        "PyTorch makes it colour x height x width and float32, as its models want it. Then it "
        "goes to JAX, and back to NumPy and PyTorch. Nobody says how: a view where a view is "
        "safe, a copy where it is not, a clear error where there is nothing right to do.\n"
    )
    journey = _Journey()
    tensor = journey.convert("the photograph", pixels, "torch")
    chw = tensor.permute(2, 0, 1).to(torch.float32).div(255).contiguous()
    images = {"torch": chw}
    images["jax"] = journey.convert("as floats", chw, "jax")
    images["numpy"] = journey.convert("as floats", images["jax"], "numpy")
    journey.convert("as floats", images["numpy"], "torch")
    journey.convert("its mirror image, pixels\\[:, ::-1]", pixels[:, ::-1], "torch")
    journey.convert("in double precision", images["numpy"].astype(np.float64), "jax")
    console.print(journey.table)

    results = {name: sharpen(image) for name, image in images.items()}
    console.print(_agreement(images, results))
    sharpened = ab.convert(results["jax"], "numpy")
    if max(_differences(results).values()) > 1e-6:
        console.print("[bold red]The libraries disagree.[/]")
        return 1

    both = np.concatenate([pixels, _bytes(sharpened)], axis=1)
    Image.fromarray(both).save(out)
    console.print(f"\nBefore and after, side by side: [bold]{os.path.relpath(out)}[/]")
    return 0


def _sharpened(image: Any) -> np.ndarray:
    return np.asarray(sharpen(image))  # as JAX works behind one's back


def _bytes(image: np.ndarray) -> np.ndarray:
    """(channels, height, width) in 0 to 1 -> (height, width, channels) uint8."""
    return np.round(np.transpose(image, (1, 2, 0)) * 255).astype(np.uint8)


def _differences(results: dict[str, Any]) -> dict[str, float]:
    """The largest difference of each library's result from NumPy's."""
    import arraybridge as ab

    ours = results["numpy"]
    return {
        name: float(np.max(np.abs(ab.convert(result, "numpy") - ours)))
        for name, result in results.items()
    }


def _agreement(images: dict[str, Any], results: dict[str, Any]) -> Table:
    import arraybridge as ab

    differences = _differences(results)
    table = Table(
        "library",
        "namespace",
        "result",
        "time",
        "largest difference from NumPy's",
        title="One function, sharpen(image), through xp = arraybridge.namespace(image)",
        caption="Every result is native: a tensor from a tensor, a jax.Array from a jax.Array. "
        "Values lie in 0 to 1; a difference of 1e-7 is the rounding of float32.",
        caption_justify="left",
    )
    for name in ("numpy", "torch", "jax"):
        result = results[name]
        table.add_row(
            name,
            ab.namespace(images[name]).__name__,
            f"{type(result).__module__}.{type(result).__name__} {tuple(result.shape)}",
            _time(partial(_sharpened, images[name])),
            f"{differences[name]:.1e}",
        )
    return table
