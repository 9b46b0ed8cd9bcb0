"""One array, several processes: NumPy in the workers and a tensor here, on the same memory.

    python examples/shared_memory.py

Needs torch.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from multiprocessing.shared_memory import SharedMemory
from typing import Any

import numpy as np

import arraybridge as ab

SHAPE, DTYPE = (4, 1000, 1000), "float32"


def array_in(block: SharedMemory) -> ab.Array:
    """Return the array in a block of shared memory; it keeps the block open."""
    assert block.buf is not None  # it is open
    memory = np.frombuffer(block.buf, np.uint8)
    owner = block, memory
    return ab.from_pointer(memory.ctypes.data, SHAPE, DTYPE, device="cpu", owner=owner)


def opened(name: str) -> Any:
    """Return the array in a block of that name."""
    return ab.convert(array_in(SharedMemory(name)), "numpy")


def fill(name: str, index: int) -> float:
    """Compute one part of the array, in a worker."""
    part = opened(name)[index]
    part[...] = np.sin(np.arange(1000) * index / 100)[:, None]
    return float(part[-1, 0])


def least(name: str) -> float:
    """Return the least element, in a worker."""
    return float(opened(name).min())


def main() -> None:
    """Have two workers fill an array in shared memory, and use it as a tensor."""
    import torch  # here, so that the workers do not import it

    block = SharedMemory(create=True, size=4 * 4 * 1000 * 1000)
    try:
        shared = ab.convert(array_in(block), "torch")
        print(f"a {type(shared).__name__} of {shared.numel() * 4:,} bytes, in shared memory")
        with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
            last = list(pool.map(fill, [block.name] * 4, range(4)))
            print("the workers returned: ", " ".join(f"{x:7.4f}" for x in last))
            held = shared[:, -1, 0].tolist()
            print("what the tensor holds:", " ".join(f"{x:7.4f}" for x in held))
            shared.clamp_(min=0)  # in place, here: the workers see it
            print(f"the least element, in a worker: {pool.submit(least, block.name).result()}")
        model = torch.nn.Conv2d(4, 1, 5)
        print("a layer takes it as any tensor:", tuple(model(shared[None]).shape))
    finally:
        block.unlink()  # the last array frees the memory
    print(f"unlinked, but the tensor keeps the memory: {shared.max():.4f}")


if __name__ == "__main__":
    main()
