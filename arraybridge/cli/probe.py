"""What one library is and accepts here: ``python -m arraybridge.cli.probe torch``, a line of JSON.

Run by :mod:`arraybridge.cli.info` in a process of its own, as an import may end it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def _cuda(torch) -> list[str]:
    return [f"cuda:{i} {torch.cuda.get_device_name(i)}" for i in range(torch.cuda.device_count())]


def _dpnp(dpnp) -> list[str]:
    dpctl = import_module("dpctl")
    return [f"oneapi:{i} {device.name.strip()}" for i, device in enumerate(dpctl.get_devices())]


def _cupy(cupy) -> list[str]:
    count = cupy.cuda.runtime.getDeviceCount()
    names = (cupy.cuda.runtime.getDeviceProperties(i)["name"].decode() for i in range(count))
    return [f"cuda:{i} {name}" for i, name in enumerate(names)]


DEVICES: dict[str, tuple[str, Callable[[Any], list[str]]]] = {  # name -> (import name, devices)
    "torch": ("torch", lambda torch: ["cpu", *_cuda(torch)]),
    "jax": ("jax", lambda jax: [f"{d.platform}:{d.id}" for d in jax.devices()]),
    "tensorflow": (
        "tensorflow",
        lambda tf: [
            d.name.removeprefix("/physical_device:") for d in tf.config.list_physical_devices()
        ],
    ),
    "paddle": ("paddle", lambda paddle: [*dict.fromkeys(("cpu", paddle.device.get_device()))]),
    "warp": ("warp", lambda wp: [str(device) for device in wp.get_devices()]),
    "mlx": ("mlx.core", lambda mx: [mx.default_device().type.name]),
    "dpnp": ("dpnp", _dpnp),
    "cupy": ("cupy", _cupy),
    "numba": (
        "numba.cuda",
        lambda cuda: [f"cuda:{i}" for i in range(len(cuda.gpus) if cuda.is_available() else 0)],
    ),
}


def main(name: str) -> None:
    """Print the record of one library."""
    from ..dispatch.registry import library_named, requirement_of
    from ..dlpack import Device
    from .matrix import versions

    try:
        accepts = library_named(name).accepts
    except ImportError as error:
        print(json.dumps({"state": f"does not load: {error}"}))
        return
    module, devices = DEVICES.get(name, (name, lambda _: ["cpu"]))
    try:
        found = devices(import_module(module)) or ["none"]
    except Exception as error:
        found = [f"unknown ({type(error).__name__}: {error})"]
    record = accepts._asdict()
    record["devices"] = {Device(kind).type.name.lower() for kind in accepts.devices}
    answer = {
        "state": "ready",
        "version": versions([name]).get(name),
        "install": requirement_of(name),
        "devices": found,
        "accepts": record,
    }
    print(json.dumps(answer, default=sorted))


if __name__ == "__main__":
    main(sys.argv[1])
