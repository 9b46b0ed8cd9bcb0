"""Arrays of JAX over several devices: two CPUs, which JAX makes of one in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

HEAD = """
import copy, pickle
import jax, numpy as np, pytest
import arraybridge as ab
import arraybridge.xp.jax as xp

mesh = jax.sharding.Mesh(np.array(jax.devices()), ("d",))
def spread(*axes):
    place = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*axes))
    return jax.device_put(np.arange(4, dtype="f4"), place)
native = spread("d")
x = xp.asarray(native)
"""

CASES = {
    "repr": """
        assert repr(x).startswith("Array([0., 1., 2., 3.], jax: float32 (4,) on NamedSharding(")
    """,
    "device": """
        assert x.device == native.sharding
        assert xp.zeros(4, device=x.device).native.sharding == native.sharding
        assert x.to_device(x.device) is x
        assert x.to_device("cpu").device == ab.Device(1)
    """,
    "numpy": """
        for each in (x, xp.asarray(spread())):
            assert np.asarray(each).tolist() == [0, 1, 2, 3]
            assert np.asarray(each, dtype="f8").dtype == "f8"
        with pytest.raises(ab.ConversionError, match="2 devices"):
            np.array(x, copy=False)
    """,
    "pickle": """
        for protocol in range(2, 6):
            again = pickle.loads(pickle.dumps(x, protocol))
            assert type(again) is type(x)
            assert np.asarray(again).tolist() == [0, 1, 2, 3]
    """,
    "copy": """
        for again in (copy.copy(x), copy.deepcopy(x), x + 1):
            assert again.native.sharding == native.sharding
        assert f"{xp.sum(x):.1f}" == "6.0"
    """,
    "elsewhere": """
        for hand_over in (
            lambda: ab.from_dlpack(native),
            lambda: ab.convert(native, "numpy"),
            lambda: ab.convert(x, "numpy"),
            lambda: ab.inspect(native),
            lambda: np.from_dlpack(x),
            lambda: x.info,
        ):
            with pytest.raises(ab.ConversionError, match="2 devices.*jax.device_put"):
                hand_over()
        assert not hasattr(x, "__array_interface__")
        assert not hasattr(x, "__cuda_array_interface__")
    """,
    "one": """
        second = ab.from_dlpack(jax.device_put(np.arange(4.0), jax.devices()[1]))
        assert (second + xp.zeros(4, device=second.device)).device == second.device
        assert repr(second).startswith("Array([0., 1., 2., 3.], jax")
    """,
}


@pytest.mark.parametrize("case", CASES)
def test_over_two(case):
    lines = [line.removeprefix(" " * 8) for line in CASES[case].splitlines()]
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    code = HEAD + "\n".join(lines)
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | flags,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
