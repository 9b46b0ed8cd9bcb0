"""Functions of other libraries inside ``jax.jit``: callbacks on the host.

On the CPU they get XLA's own buffers. ``jax.pure_callback``, for other devices, converts arguments
in threads of XLA, and waits for ever once all of these are inside callbacks (jax#24255).
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np
from jax.experimental.buffer_callback import buffer_callback

from ...adapting.call import Call
from ...adapting.decorator import Adapted
from ...array.array_types import ArrayType, is_array, unwrapped
from ...core.records import ConversionError
from ...core.registry import library_named
from ...core.table import OBSERVERS, notify_copy
from ...ndarrays import canonical
from ...pytree import items
from .state import NARROWED


class Arguments:
    """The arguments of a call; `arrays` are those that a library tracks, without their Arrays."""

    def __init__(self, args: Any, kwargs: Any, tracks: Callable[[Any], bool]) -> None:
        leaves, self.tree = jax.tree.flatten((args, kwargs), is_leaf=is_array)
        self.leaves = [unwrapped(x) for x in leaves]
        self.places = [n for n, x in enumerate(self.leaves) if is_array(x) and tracks(x)]
        self.arrays = [self.leaves[n] for n in self.places]
        if not self.places:
            raise TypeError(
                "a traced array or a tensor with a gradient is in a container that jax does not "
                "know: register its class, such as by jax.tree_util.register_dataclass"
            )
        self.wrapped = leaves[self.places[0]] is not self.arrays[0]

    def convert_others(self, adapted: Adapted) -> None:
        """Convert the other arrays for the function."""
        tracked = {*self.places}
        rest = [None if n in tracked else x for n, x in enumerate(self.leaves)]
        self.leaves = items(Call(adapted).argument, rest, is_array)

    def replaced(self, arrays: Any) -> Any:
        """Return the positional and keyword arguments with other arrays in place of `arrays`."""
        leaves = [*self.leaves]
        for n, x in zip(self.places, arrays, strict=True):
            leaves[n] = x
        return jax.tree.unflatten(self.tree, leaves)

    def result(self, tree: Any, library: str) -> Any:
        """Return a result of the library with Arrays if the caller passed one."""
        if not self.wrapped:
            return tree
        kind = ArrayType(library, True)
        return jax.tree.map(lambda x: kind.convert(x) if is_array(x) else x, tree)


def call(adapted: Adapted, args: Any, kwargs: Any) -> Any:
    """Call an adapted function with tracers among its arguments."""
    given = Arguments(args, kwargs, is_tracer)
    like = structs(adapted, given)
    given.convert_others(adapted)

    def function(*arrays: Any) -> Any:
        args, kwargs = given.replaced(arrays)
        return adapted.plain("numpy")(*args, **kwargs)

    result = call_back(adapted.name, function, like, given.arrays)
    return given.result(result, "jax")


def is_tracer(x: Any) -> bool:
    """Whether JAX traces the array, which has no value yet."""
    return isinstance(x, jax.core.Tracer)


def structs(adapted: Adapted, given: Arguments) -> Any:
    """Return the shapes and data types of a call's result by ``callback=``; None if unknown."""
    like = adapted.callback
    if callable(like) and not hasattr(like, "shape"):
        args, kwargs = given.replaced(given.arrays)
        like = like(*args, **kwargs)
    return jax.tree.map(partial(_struct, adapted.name), like)


def _struct(name: str, x: Any) -> jax.ShapeDtypeStruct:
    try:
        struct = jax.ShapeDtypeStruct(x.shape, x.dtype)
    except (AttributeError, TypeError):
        raise TypeError(
            f"callback= of {name} has a {type(x).__name__}: pass objects with a shape and a dtype, "
            "such as jax.ShapeDtypeStruct((3,), 'float32'), or a function that returns them"
        ) from None
    if jax.dtypes.canonicalize_dtype(struct.dtype) != struct.dtype:
        raise ConversionError(
            f"callback= of {name} describes {struct.dtype}: {NARROWED}, or describe 32 bits"
        )
    return struct


def call_back(name: str, function: Callable[..., Any], like: Any, arrays: Any) -> Any:
    """Call a function of JAX arrays, which returns NumPy's, when the compiled program runs."""
    if like is None:
        raise TypeError(
            f"{name} was called inside jax.jit or jax.vmap, where its result is not known before "
            "the program runs: describe it by callback=, such as callback=lambda x: x for the "
            "shape and dtype of the argument"
        )
    wanted, tree = jax.tree.flatten(like)
    expected = ", ".join(f"{x.dtype} {x.shape}" for x in wanted)

    def on_host(*arrays: Any) -> list[np.ndarray]:
        found = [canonical(np.asarray(x)) for x in jax.tree.leaves(function(*arrays))]
        if [(x.shape, x.dtype) for x in found] != [(x.shape, x.dtype) for x in wanted]:
            returned = ", ".join(f"{x.dtype} {x.shape}" for x in found) or "nothing"
            raise ConversionError(f"{name} returned {returned}; callback= describes {expected}")
        return found

    def fill(context: Any, out: Any, *buffers: Any) -> None:
        if OBSERVERS:
            for x in map(np.asarray, buffers):
                info = library_named("numpy").describe(x)
                notify_copy("XLA reuses the memory of a callback's arguments", info, "numpy")
        given = [np.asarray(x).copy() for x in buffers]  # XLA reuses its buffers
        for x in given:
            x.flags.writeable = False
        for buffer, x in zip(out, on_host(*given), strict=True):
            np.asarray(buffer)[...] = x

    if all(device.platform == "cpu" for device in jax.devices()):
        found = buffer_callback(fill, wanted, vmap_method="sequential")(*arrays)
    else:
        found = jax.pure_callback(on_host, wanted, *arrays, vmap_method="sequential")
    return jax.tree.unflatten(tree, found)
