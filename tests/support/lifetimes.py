"""Every way in which the memory of an array goes, against every view of it.

``python -m tests.support.lifetimes SOURCE[+SOURCE] TARGET...`` prints, as JSON, how many views it
looked at, and for which of them the memory was gone, or held other numbers, afterwards. In a
process of its own, where the C library gives every block of this size back to the system when it is
freed: what is gone is then not mapped, and nobody has to crash to show it.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import mmap
import sys
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np

import arraybridge as ab
from arraybridge.core.registry import forget
from arraybridge.layout import in_bytes, span

SIZE = 40_000  # elements: each array is a block of its own
LIBC = ctypes.CDLL(None)
PAGE = mmap.PAGESIZE
M_MMAP_THRESHOLD = -3  # malloc.h
Case = tuple[str, str, str, str]
#: What makes an array, by kind, and what takes an array's memory away.
Ways = tuple[dict[str, Callable[[], Any]], dict[str, Callable[[Any], Any]]]


def give_back_what_is_freed() -> None:
    """Have blocks of 16 KB and more unmapped when they are freed."""
    assert LIBC.mallopt(M_MMAP_THRESHOLD, 1 << 14)


def mapped(address: int, nbytes: int, _libc: Any = LIBC) -> bool:
    """Whether a range of memory is this process's: mincore(2) knows."""
    start = address & -PAGE
    pages = -(-(address + nbytes - start) // PAGE)
    seen = ctypes.create_string_buffer(pages)
    return _libc.mincore(ctypes.c_void_p(start), ctypes.c_size_t(pages * PAGE), seen) == 0


def contents(view: Any) -> bytes | None:
    """The bytes between the first element of a view and the last; None where they are gone."""
    info = ab.inspect(view)
    low, high = span(info.shape, in_bytes(info.strides, info.itemsize), info.itemsize)
    start, nbytes = info.pointer + low, high - low
    return ctypes.string_at(start, nbytes) if mapped(start, nbytes) else None


def ways_to(target: str) -> dict[str, Callable[[Any], Any]]:
    """How an array gets to a library: by what there is for native arrays, and for Arrays."""
    ways: dict[str, Callable[[Any], Any]] = {
        "native": lambda x: ab.convert(x, target),
        "asked for": lambda x: ab.convert(x, target, copy=False, alias_readonly=True),
        "Array": lambda x: ab.convert(ab.from_dlpack(x), target),
        "capsule": lambda x: ab.convert(
            ab.from_dlpack(x).__dlpack__(max_version=(1, 0)), target, alias_readonly=True
        ),
        "bare": lambda x: ab.convert(
            ab.from_dlpack(ab.from_dlpack(x).__dlpack__(max_version=(1, 0))), target
        ),
    }
    if target == "numpy":
        if not hasattr(ab.Array, "__array_interface__"):  # which cannot name who has the memory
            ways["numpy.asarray"] = lambda x: np.asarray(ab.from_dlpack(x))
        ways["numpy.from_dlpack"] = lambda x: np.from_dlpack(ab.from_dlpack(x))
    if target == "torch":
        ways["torch.from_dlpack"] = lambda x: importlib.import_module("torch").from_dlpack(
            ab.from_dlpack(x)
        )
    if target in ("numpy", "torch", "jax", "array_api_strict"):
        xp = importlib.import_module(f"arraybridge.xp.{target}")
        ways["asarray"] = lambda x: xp.asarray(ab.from_dlpack(x)).native
        ways["native asarray"] = lambda x: xp.native.asarray(x)
    return ways


def torch_ways() -> Ways:
    import torch

    def dense(dtype: Any) -> Callable[[], Any]:
        bits = torch.arange(SIZE * 8, dtype=torch.int32).to(torch.uint8)
        return lambda: bits[: SIZE * dtype.itemsize].clone().view(dtype)

    arrays = {
        name: dense(getattr(torch, name))
        for name in ("float32", "bool", "complex64", "uint16", "bfloat16", "float8_e5m2")
    }
    arrays["transposed"] = lambda: dense(torch.float32)().reshape(200, 200).T
    arrays["slice"] = lambda: dense(torch.float32)()[5::2]
    arrays["parameter"] = lambda: torch.nn.Parameter(dense(torch.float32)(), requires_grad=False)
    arrays["subclass"] = lambda: dense(torch.float32)().as_subclass(_subclass(torch.Tensor))
    other = torch.zeros(3)

    def module_to(x: Any) -> None:
        module = torch.nn.Module()
        module.register_buffer("x", x)
        module.to(torch.float16)

    def swap(x: Any) -> None:
        torch.utils.swap_tensors(x, other.clone().as_subclass(type(x)))

    return arrays, {
        "data =": lambda x: setattr(x, "data", other.to(x.dtype)),
        "set_": lambda x: x.set_(other.to(x.dtype)),
        "resize_": lambda x: x.resize_(SIZE * 20),
        "resize_as_": lambda x: x.resize_as_(torch.empty(SIZE * 20)),
        "out=": lambda x: torch.cat([x.detach().flatten()] * 20, out=x),
        "storage resize_(0)": lambda x: x.untyped_storage().resize_(0),
        "storage resize_": lambda x: x.untyped_storage().resize_(SIZE * 99),
        "swap_tensors": swap,
        "module.to": module_to,
        "set_ source": lambda x: x.set_(other.to(x.dtype).untyped_storage()),
    }


def _subclass(cls: type) -> type:
    return type("Subclass", (cls,), {})


def jax_ways() -> Ways:
    import jax
    import jax.numpy as jnp
    from jax.experimental.layout import Format, Layout

    def donate(x: Any) -> None:
        jax.jit(lambda v: v + v, donate_argnums=0)(x).block_until_ready()

    place = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    fortran = Format(Layout(major_to_minor=(1, 0)), place)
    arrays = {
        name: lambda name=name: jnp.arange(SIZE, dtype=name) + 1
        for name in ("float32", "int16", "bfloat16", "float8_e5m2")
    }
    arrays["not computed yet"] = lambda: jnp.sort(jnp.sin(jnp.arange(SIZE * 4.0)))
    arrays["another layout"] = lambda: jax.device_put(
        jnp.arange(SIZE * 1.0).reshape(200, 200), fortran
    )
    return arrays, {"delete": lambda x: x.delete(), "donation": donate}


def paddle_ways() -> Ways:
    import paddle

    other = paddle.zeros([3])

    def batch_norm(x: Any) -> None:
        layer = paddle.nn.Layer()
        layer.register_buffer("x", x)
        layer.to(dtype="float64")

    arrays = {
        name: lambda name=name: (paddle.arange(SIZE) % 100 + 1).astype(name)
        for name in ("float32", "complex64", "bfloat16")
    }
    arrays["slice"] = lambda: paddle.arange(SIZE).astype("float32")[7:]
    return arrays, {
        "layer.to": batch_norm,
        "cast_": lambda x: x.cast_("complex128"),  # into new memory: it is larger
        "set_": lambda x: x.set_(other.astype(x.dtype)),
        "data =": lambda x: setattr(x, "data", other.astype(x.dtype)),
        "_clear_data": lambda x: x._clear_data(),
        "_clear": lambda x: x._clear(),
        "resize_": lambda x: x.resize_([SIZE * 3], fill_zero=True),
        "_share_buffer_to": lambda x: other.astype(x.dtype)._share_buffer_to(x),
        "reconstruct_from_": lambda x: x.reconstruct_from_(other.astype(x.dtype)),
        "assign": lambda x: paddle.assign(paddle.zeros([SIZE * 3], x.dtype), output=x),
        "DenseTensor._clear": lambda x: x.get_tensor()._clear(),
    }


def numpy_ways() -> Ways:
    def over(make: Callable[[int], Any]) -> Callable[[], Any]:
        def array() -> Any:
            block = make(SIZE * 4)
            result = np.frombuffer(block, np.float32)
            result[:] = np.arange(SIZE)
            return result

        return array

    def mapping(nbytes: int) -> Any:
        return mmap.mmap(-1, nbytes)

    def integers(nbytes: int) -> Any:
        import array

        return array.array("i", bytes(nbytes))

    def block_of(x: Any) -> Any:
        base = x.base
        return base.obj if isinstance(base, memoryview) else base

    arrays = {
        "own": lambda: np.arange(SIZE, dtype=np.float32),
        "slice": lambda: np.arange(SIZE, dtype=np.float32)[::-2],
        "bytearray": over(bytearray),
        "mmap": over(mapping),
        "array.array": over(integers),
    }
    return arrays, {
        "resize": lambda x: x.resize(SIZE * 9),
        "shape =": lambda x: setattr(x, "shape", (2, -1)),
        "clear": lambda x: block_of(x).clear(),
        "extend": lambda x: block_of(x).extend([0] * SIZE),
        "close": lambda x: block_of(x).close(),
    }


def strict_ways() -> Ways:
    import array_api_strict as xp

    return {"float32": lambda: xp.arange(SIZE, dtype=xp.float32)}, {
        "_array =": lambda x: setattr(x, "_array", np.zeros(3)),
    }


def tvm_ffi_ways() -> Ways:
    import tvm_ffi

    def make() -> Any:
        return tvm_ffi.from_dlpack(np.arange(SIZE, dtype=np.float32))

    return {"float32": make}, {
        "handle moved away": lambda x: make().__move_handle_from__(x),
        "handle replaced": lambda x: x.__move_handle_from__(make()),
    }


def tensorflow_ways() -> Ways:
    import tensorflow as tf

    arrays = {
        name: lambda name=name: tf.cast(tf.range(SIZE) + 1, name)
        for name in ("float32", "bfloat16")
    }
    arrays["variable"] = lambda: tf.Variable(tf.range(SIZE, dtype=tf.float32))
    return arrays, {
        "assign": lambda x: x.assign(tf.zeros(SIZE)),
        "assign_add": lambda x: x.assign_add(tf.ones(SIZE)),
    }


def mlx_ways() -> Ways:
    import mlx.core as mx

    mx.set_cache_limit(0)

    def in_place(x: Any) -> None:
        x += 1
        mx.eval(x)

    def item(x: Any) -> None:
        x[0] = 9
        mx.eval(x)

    return {"float32": lambda: mx.arange(SIZE, dtype=mx.float32)}, {"+=": in_place, "[0] =": item}


def warp_ways() -> Ways:
    import warp as wp

    def anew(x: Any) -> None:
        x.__init__(np.zeros(3, np.float32), dtype=wp.float32, device="cpu")

    return {"float32": lambda: wp.array(np.arange(SIZE, dtype=np.float32), device="cpu")}, {
        "__init__": anew,
    }


def pillow_ways() -> Ways:
    from PIL import Image

    def image(mode: str, shape: tuple[int, ...], dtype: str = "u1") -> Callable[[], Any]:
        values = (np.arange(np.prod(shape)) % 100).reshape(shape).astype(dtype)
        return lambda: Image.frombytes(mode, shape[1::-1], values.tobytes())

    return {
        "L": image("L", (200, 200)),
        "F": image("F", (200, 200), "f4"),
        "RGBA": image("RGBA", (100, 100, 4)),
    }, {
        "close": lambda x: x.close(),
        "thumbnail": lambda x: x.thumbnail((10, 10)),
        "resize": lambda x: x.__setstate__(x.resize((5, 5)).__getstate__()),
    }


WAYS = {
    "numpy": numpy_ways,
    "torch": torch_ways,
    "jax": jax_ways,
    "array_api_strict": strict_ways,
    "tvm_ffi": tvm_ffi_ways,
    "paddle": paddle_ways,
    "tensorflow": tensorflow_ways,
    "mlx": mlx_ways,
    "warp": warp_ways,
    "pillow": pillow_ways,
}


def looked_at(source: str, targets: list[str]) -> Iterator[tuple[Case, str]]:
    """(case, what is wrong with it) of each view there is."""
    arrays, losses = WAYS[source]()
    losses = losses | {"del": None}
    for target in targets:
        for (name, way), (kind, make) in product(ways_to(target).items(), arrays.items()):
            if name != "native" and make is not next(iter(arrays.values())):
                continue  # the other arrays by one way
            for loss, lose in losses.items():
                forget()  # the planned route first, then the fast paths
                for turn in ("first", "later"):
                    wrong = after(make, way, lose)
                    if wrong is not None:
                        yield (f"{kind} to {target}", name, loss, turn), wrong


def after(make: Callable[[], Any], way: Callable[[Any], Any], lose: Any) -> str | None:
    """What is wrong with a view after its source has lost its memory; None if there is no view."""
    x = make()
    try:
        where = ab.inspect(x).pointer
        view = way(x)
    except (BufferError, RuntimeError, TypeError, ValueError):  # no such view
        return None
    if ab.inspect(view).pointer != where or view is x:
        return None
    before = contents(view)
    if lose is not None:
        with contextlib.suppress(Exception):  # refused: the memory stays
            lose(x)
    del x
    now = contents(view)
    return "its memory is gone" if now is None else "" if now == before else "other numbers"


def main(sources: str, *targets: str) -> None:
    give_back_what_is_freed()
    count, wrong = {}, []
    for source in sources.split("+"):
        count[source] = 0
        for case, problem in looked_at(source, list(targets)):
            count[source] += 1
            if problem:
                wrong.append([source, *case, problem])
    json.dump({"views": count, "wrong": wrong}, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
