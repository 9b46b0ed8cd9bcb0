"""Arrays of JAX over several devices: two CPUs, which JAX makes of one in a process of its own."""

from __future__ import annotations

import json
from functools import cache
from textwrap import dedent

import pytest

from tests.support.processes import python

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

# On a device of its own each, one(i); `place` is what JAX says.
from importlib.util import find_spec
other = "torch" if find_spec("torch") else "tvm_ffi"
tensor = ab.convert(np.arange(4, dtype="f4"), other)
def one(i):
    return jax.device_put(np.arange(4, dtype="f4"), jax.devices()[i])
def place(x):
    (device,) = x.devices()
    return device.id
host = np.arange(4, dtype="f4")
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
        assert not hasattr(x, "__cuda_array_interface__")
    """,
    "one": """
        second = ab.from_dlpack(jax.device_put(np.arange(4.0), jax.devices()[1]))
        assert (second + xp.zeros(4, device=second.device)).device == second.device
        assert repr(second).startswith("Array([0., 1., 2., 3.], jax")
    """,
    # An array on one of the two.
    "where it is": """
        for i in range(2):
            assert ab.inspect(one(i)).device == ab.Device(1, i)
            for copy in (None, True, False):
                assert place(ab.convert(one(i), "jax", copy=copy)) == i
                assert ab.explain(one(i), "jax", copy=copy).device == ab.Device(1, i)
            assert place(ab.contiguous(one(i).reshape(2, 2).T)) == i
            assert place(ab.from_dlpack(one(i), copy=True).native) == i
    """,
    "where it shall be": """
        wrapped = ab.from_dlpack(one(1)), xp.zeros(4)
        for source in (host, tensor, one(0), one(1), *wrapped):
            for i in range(2):
                for copy in (None, True):
                    how = {"device": f"cpu:{i}", "copy": copy}
                    assert place(ab.convert(source, "jax", **how)) == i
                    assert ab.explain(source, "jax", **how).device == ab.Device(1, i)
                    assert place(xp.from_dlpack(source, **how).native) == i
                made = xp.asarray(source, device=f"cpu:{i}"), xp.asarray([source], device=(1, i))
                assert [place(x.native) for x in made] == [i, i]
            with pytest.raises(ab.ConversionError, match="no arrays on cpu:9; .* cpu to cpu:1"):
                ab.convert(source, "jax", device="cpu:9")
            assert ab.explain(source, "jax", device="cpu:9").kind == "refuse"
        for moved in (
            xp.native.asarray(one(0), device=jax.devices()[1]),
            xp.asarray(one(0), device="cpu:1", dtype=xp.int32, copy=True).native,
        ):
            assert place(moved) == 1 and moved.tolist() == [0, 1, 2, 3]
        with pytest.raises(ValueError):
            xp.asarray(one(0), device="cpu:1", copy=False)
        assert ab.convert(one(1), "jax", device=(1, 0)).unsafe_buffer_pointer()
        for device in ("cpu:1", jax.devices()[1]):
            with ab.audit() as log:
                assert xp.asarray(one(0)).to_device(device).device == ab.Device(1, 1)
            assert log.copies == 1
        assert place(xp.ones(3, device="cpu:1").native) == 1
    """,
    "to others": """
        for i in range(2):
            j = one(i)
            view = ab.convert(j, "numpy")
            assert view.ctypes.data == j.unsafe_buffer_pointer() and not view.flags.writeable
            assert ab.explain(j, "numpy").device == ab.Device(1)
            assert ab.convert(j, other).device.type == "cpu"
            for device in ("cpu:1", "cpu:9"):
                with pytest.raises(ab.ConversionError, match="numpy has no arrays on cpu:.; .*cpu"):
                    ab.convert(j, "numpy", device=device)
            assert np.from_dlpack(ab.from_dlpack(j)).tolist() == [0, 1, 2, 3]
    """,
    "unify": """
        with pytest.raises(ab.ConversionError, match="on cpu and cpu:1: pass device="):
            ab.unify(one(0), one(1))
        for i in range(2):
            _, a, b, c = ab.unify(one(0), one(1), host, like=one(i))
            assert [place(x) for x in (a, b, c)] == [i, i, i]
            assert (a + b + c).tolist() == [0, 3, 6, 9]
            f = ab.adapt("jax", device=f"cpu:{i}", result="function")(lambda x: x * 2)
            assert place(f(host)) == i
    """,
}


RUN_EACH = """
import json, sys, traceback
wrong = {}
for name, code in json.loads(sys.argv[1]).items():
    try:
        exec(code, dict(globals()))
    except BaseException:
        wrong[name] = traceback.format_exc()
print(json.dumps(wrong))
"""


@cache
def wrong() -> dict[str, str]:
    """What is wrong with each case, in one process for all of them."""
    cases = json.dumps({name: dedent(code) for name, code in CASES.items()})
    env = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    said = python(HEAD + RUN_EACH, cases, env=env, flags=())
    return json.loads(said.splitlines()[-1])


@pytest.mark.parametrize("case", CASES)
def test_two_devices(case):
    assert wrong().get(case) is None
