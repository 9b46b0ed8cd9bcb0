"""What somebody does who has just installed the wheel: views, copies, an Array, a refusal.

It runs in an environment that holds the wheel and what that asks for, and nothing else. Its
arguments: the folder that the package is to be loaded from, and "kernels" if they are compiled.
"""

import sys
from pathlib import Path

import numpy as np

import arraybridge as ab
import arraybridge.dlpack

folder, compiled = Path(sys.argv[1]), sys.argv[2] == "kernels"
assert Path(ab.__file__).parent == folder, ab.__file__

# A view, out and back: the same memory, and its writes seen on both sides.
image = np.arange(24, dtype=np.float32).reshape(2, 4, 3)
x = ab.from_dlpack(image.transpose(2, 0, 1))
assert x.shape == (3, 2, 4)
back = ab.convert(x, "numpy", copy=False)
back[0, 0, 0] = 7
assert image[0, 0, 0] == 7
assert np.shares_memory(back, image)
assert ab.explain(image, "numpy").kind == "view"

# Copies, by the compiled kernels if they are there: threads, tiles, and small ones.
large = np.arange(4_000_000, dtype=np.float64).reshape(2000, 2000)
assert (ab.contiguous(large.T) == large.T).all()
target = np.empty((2000, 1000), np.float32)
source = np.arange(4_000_000, dtype=np.float32).reshape(2000, 2000)[::-1, ::2]
ab.copyto(target, source)
assert (target == source).all()
assert ab.convert(image, "numpy", dtype="float64", copy=True).dtype == np.float64
own = "arraybridge's own copy" if compiled else "NumPy's copy (there is no "
assert ab.explain(large.T, "numpy", copy=True).kernel.startswith(own)

# The array API, on native arrays and on Arrays.
xp = ab.namespace(image)
assert float(xp.sum(xp.astype(image, xp.float64))) == 283
xp = ab.namespace(x)
assert xp.__name__ == "arraybridge.xp.numpy"
assert xp.unique_all(x > 5).counts.shape == (2,)
assert ab.asarray([1, 2, 3], like=x).shape == (3,)


@ab.adapt("numpy")
def doubled(values):
    """Twice the values, of the caller's kind."""
    assert isinstance(values, np.ndarray)
    return 2 * values


assert isinstance(doubled(x), ab.Array)

# Refusals: what is not installed, and what would be wrong.
for make, told in (
    (lambda: ab.convert(image, "torch"), "pip install"),
    (lambda: ab.convert(np.array(["a"], dtype=object), "numpy", copy=True), "object"),
    (lambda: ab.contiguous(image.T, out=np.broadcast_to(image.T, image.T.shape)), "read-only"),
):
    try:
        said = repr(make())
    except (ab.ConversionError, ImportError, ValueError) as error:
        said = str(error)
    assert told in said, said
