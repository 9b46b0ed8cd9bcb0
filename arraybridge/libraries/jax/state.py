"""JAX's own state that decides: x64 mode, CPU devices, completed computations."""

import functools

import jax

ENABLE_X64 = "jax.config.update('jax_enable_x64', True)"
NARROWED = f"64-bit types would be narrowed while x64 is off; enable it with {ENABLE_X64}"
_EXACT = "casting='same_value', which raises if a number would change"
#: The data types that JAX has with x64 only, and what to do without: integers would wrap.
REMEDIES = {
    "int64": f"{NARROWED}, or pass dtype='int32', {_EXACT}",
    "uint64": f"{NARROWED}, or pass dtype='uint32', {_EXACT}",
    "float64": f"{NARROWED}, or pass dtype='float32'",
    "complex128": f"{NARROWED}, or pass dtype='complex64'",
}


@functools.cache
def local_devices(platform: str) -> dict[int, jax.Device]:
    """Return JAX's devices in this process by their number; XLA_FLAGS may set several CPUs."""
    return {each.local_hardware_id: each for each in jax.local_devices(backend=platform)}


@functools.cache
def only_one_cpu() -> bool:
    """Whether every possible JAX array is on one CPU device."""
    devices = jax.devices()
    return len(devices) == 1 and devices[0].platform == "cpu"


def address_of_buffer(x: jax.Array) -> int:
    """Return the address of an array on one device, once it is computed.

    ``unsafe_buffer_pointer`` also waits, but holds the GIL: it deadlocks with a JAX thread that
    releases the inputs through deleters that take the GIL, as NumPy's do.
    """
    x.block_until_ready()
    return int(x.unsafe_buffer_pointer())
