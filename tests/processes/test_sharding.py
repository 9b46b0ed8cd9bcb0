"""Sharded arrays: one process with eight devices of JAX; two and four of JAX and PyTorch."""

from __future__ import annotations

import os
import socket
from multiprocessing import get_context

import numpy as np
import pytest

import arraybridge
import arraybridge as ab
from tests.support.optional import needs
from tests.support.processes import resident

MB = 1 << 20
IMPORTS = ["jax.numpy", "torch.distributed.tensor.debug"]


@needs("torch")
@pytest.mark.parametrize("world", [1, 2, 4])
def test_shards(world, tmp_path):
    from torch.multiprocessing import start_processes

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # Forked from a process that has imported what takes seconds, and has started nothing.
    get_context("forkserver").set_forkserver_preload(IMPORTS)
    start_processes(
        _main, (world, port, f"file://{tmp_path}/ranks"), world, start_method="forkserver"
    )


def _main(rank, world, port, store):
    if world == 1:
        os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
    import jax
    import torch.distributed as dist

    if world == 1:
        with refused("torch.distributed.init_process_group.."):
            ab.sharding.to_torch(spread(np.ones(4), grid(1)))
    else:
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        jax.distributed.initialize(f"127.0.0.1:{port}", num_processes=world, process_id=rank)
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=world)
    if world == 1:
        eight_devices()
    else:
        round_trips(world)
        meshes(rank, world)
        placements(world)
        memory(world)
        jax.distributed.shutdown()  # which waits for all; who ends sooner would end the others
    dist.destroy_process_group()


def refused(why, kind=ab.ConversionError):
    return pytest.raises(kind, match=why)


def bits(shape, dtype="i4"):
    """Any bits: of floats, NaNs with their payloads among them."""
    count = int(np.prod(shape)) * np.dtype(dtype).itemsize
    made = np.random.default_rng(7).integers(256, size=count, dtype="u1")
    return made.view(dtype).reshape(shape)


def spread(full, mesh, *spec):
    """The array over a mesh; each process makes its own part."""
    import jax

    place = jax.NamedSharding(mesh, jax.P(*spec))
    return jax.make_array_from_callback(full.shape, place, lambda index: full[index])


def grid(*sizes):
    """A mesh of the first devices, with the axes a, b, c."""
    import jax

    devices = np.array(jax.devices()[: int(np.prod(sizes))]).reshape(sizes)
    return jax.sharding.Mesh(devices, tuple("abc"[: len(sizes)]))


def pointers(x):
    return [shard.data.unsafe_buffer_pointer() for shard in x.addressable_shards]


def round_trips(world):
    import ml_dtypes
    import torch
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor
    from torch.distributed.tensor.debug import CommDebugMode

    line, plane = grid(world), grid(2, world // 2)
    cases = [
        (line, ("a",), [Shard(0)]),
        (line, (), [Replicate()]),
        (plane, ("a", "b"), [Shard(0), Shard(1)]),
        (plane, ("b", "a"), [Shard(1), Shard(0)]),
        (plane, (None, "b"), [Replicate(), Shard(1)]),
        (plane, (("a", "b"),), [Shard(0), Shard(0)]),
        (plane, (None, ("a", "b")), [Shard(1), Shard(1)]),
    ]
    for dtype in ("float32", ml_dtypes.bfloat16):
        full = bits((8, 4), dtype)
        tensor = ab.convert(full, "torch")
        for mesh, spec, expected in cases:
            x = spread(full, mesh, *spec)
            with CommDebugMode() as sent:
                t = ab.sharding.to_torch(x, alias_readonly=True)
                back = ab.sharding.to_jax(t, copy=False)
                copied = ab.sharding.to_jax(ab.sharding.to_torch(x))
                ((index, _, array),) = ab.sharding.shards(t)
            assert sent.get_total_counts() == 0
            assert list(t.placements) == expected
            assert t.device_mesh.mesh_dim_names == mesh.axis_names
            assert t.device_mesh is ab.sharding.to_torch(x).device_mesh
            assert (t.shape, t.stride()) == (tensor.shape, tensor.stride())
            own = distribute_tensor(tensor, t.device_mesh, expected, src_data_rank=None).to_local()
            assert torch.equal(t.to_local().view(torch.uint8), own.contiguous().view(torch.uint8))
            assert full[index].tobytes() == ab.convert(array, "numpy").tobytes()
            assert back.sharding.mesh == mesh
            assert back.sharding.is_equivalent_to(x.sharding, 2)
            for made in (back, copied):
                for shard in made.addressable_shards:
                    assert np.asarray(shard.data).tobytes() == full[shard.index].tobytes()
            assert (
                [t.to_local().data_ptr()] == [array.info.pointer] == pointers(x) == pointers(back)
            )
            assert pointers(copied) != pointers(x)


def meshes(rank, world):
    import jax
    import torch
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.tensor import DTensor, Shard

    full = bits((8, 4))
    x = spread(full, grid(world), "a")
    given = DeviceMesh("cpu", list(range(world)))
    t = ab.sharding.to_torch(x, given)
    assert t.device_mesh is given
    assert ab.sharding.to_jax(t).sharding.mesh.axis_names == ("axis_0",)
    assert ab.sharding.to_jax(t, x.sharding.mesh).sharding.is_equivalent_to(x.sharding, 2)
    turned = DeviceMesh("cpu", list(range(world))[::-1])
    with refused(r"needs the part \[\d:\d, 0:4\] of the array but holds \[\d:\d, 0:4\]: number"):
        ab.sharding.to_torch(x, turned)
    line = jax.sharding.Mesh(jax.devices()[::-1], ("a",))
    tensor = DTensor.from_local(torch.ones(8 // world), turned, [Shard(0)])
    for function, given in (
        (ab.sharding.to_torch, spread(full, line, "a")),
        (ab.sharding.shards, tensor),
    ):
        with refused(r"ranks of the mesh descend along axis 0, \[\d.*: make a mesh of ascending"):
            function(given)
    whole = ab.sharding.to_torch(spread(full, grid(world)), turned)
    assert whole.to_local().tolist() == full.tolist()
    with refused(r"over a mesh of \(\d,\) but the mesh passed is \(2, \d\): pass one of the same"):
        ab.sharding.to_torch(x, DeviceMesh("cpu", torch.arange(world).reshape(2, -1)))
    own, first = jax.numpy.ones(3), DeviceMesh("cpu", [0])
    with refused(f"has 1 shards of processes .*, but a DTensor .* the {world} processes"):
        ab.sharding.to_torch(own)
    if rank:
        with refused(rf"the mesh has the ranks \(0,\), but this process has rank {rank}"):
            ab.sharding.to_torch(own, first)
    else:
        assert ab.sharding.to_torch(own, first).to_local().tolist() == [1, 1, 1]
    # What comes without a device is on that of this process, which is not JAX's first.
    here = {jax.local_devices()[0]}
    for array in (np.ones(3, "f4"), torch.ones(3), np.ones((2, 2), "f4")[::-1]):
        assert ab.convert(array, "jax").devices() == here
        assert ab.convert(array, "jax", device="cpu").devices() == here
    with refused(f"{world} devices.*arraybridge.sharding"):
        ab.convert(x, "numpy")


def placements(world):
    import jax
    import torch
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
    from torch.distributed.tensor.placement_types import _StridedShard

    mesh, rows = init_device_mesh("cpu", (2, world // 2)), [Shard(0), Shard(0)]
    full = bits((5, 3))
    uneven = distribute_tensor(ab.convert(full, "torch"), mesh, rows, src_data_rank=None)
    ((index, device, array),) = ab.sharding.shards(uneven)
    assert device == torch.device("cpu")
    assert np.asarray(array).tolist() == full[index].tolist()
    with refused(f"axis 0 of 5 is split into {world}, but JAX needs equal shards: pad .*redist"):
        ab.sharding.to_jax(uneven)
    waiting = uneven.redistribute(placements=[Replicate(), Replicate()], async_op=True)
    assert ab.sharding.to_jax(waiting).addressable_data(0).tolist() == full.tolist()
    for placement in (Partial(), _StridedShard(0, split_factor=2)):
        t = DTensor.from_local(torch.ones(4), mesh, [placement, Shard(0)])
        for function in (ab.sharding.to_jax, ab.sharding.shards):
            with refused(r"does not place a part .*: pass x.redistribute\(placements=...\)"):
                function(t)
    wrong = DTensor.from_local(torch.ones(3), mesh, rows, shape=torch.Size([8]), stride=(1,))
    with refused(r"local tensor has the shape \(3,\), but its placements imply \(\d,\)"):
        ab.sharding.shards(wrong)
    tracked = distribute_tensor(torch.ones(4, 4), mesh, rows).requires_grad_()
    with refused(r"pass x.detach\(\)"):
        ab.sharding.to_jax(tracked)
    with refused(r"a DTensor has shards in several processes: .*arraybridge.sharding"):
        ab.convert(tracked.detach(), "numpy")
    columns = DTensor.from_local(torch.ones(6, 4).T, mesh, [Shard(0), Shard(1)])
    with refused("copy=False, but a layout of .* to C"):
        ab.sharding.to_jax(columns, copy=False)
    assert ab.sharding.to_jax(columns).addressable_data(0).format.layout.major_to_minor == (0, 1)
    if world == 4:
        x = spread(bits((8, 4)), grid(2, 2), ("b", "a"))
        with refused(r"axis 0 is split by \('b', 'a'\), but a DTensor .*\('a', 'b'\): move"):
            ab.sharding.to_torch(x)
        mesh, spec = x.sharding.mesh, jax.P(("a", "b"))
        moved = jax.device_put(x, jax.sharding.NamedSharding(mesh, spec))
        assert ab.sharding.to_torch(moved).placements == tuple(rows)


def memory(world):
    import jax

    part = jax.numpy.ones((1, 4 * MB), "f4").block_until_ready()
    place = jax.NamedSharding(grid(world), jax.P("a"))
    x = jax.make_array_from_single_device_arrays((world, 4 * MB), place, [part])
    before = resident()
    t = ab.sharding.to_torch(x, alias_readonly=True)
    back = ab.sharding.to_jax(t, copy=False)
    assert resident() - before < 4 * MB  # of 16 MB that each shard has
    copy = ab.sharding.to_torch(x)
    assert 12 * MB < resident() - before < 20 * MB
    del part, x, t, copy
    assert float(back.addressable_data(0)[0, -1]) == 1


def eight_devices():
    import jax
    import torch
    from jax import P
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.tensor import Replicate

    import arraybridge.xp.jax as xp

    full = bits((8, 4), "f4")
    x = spread(full, grid(2, 2, 2), ("b", "a"), "c")
    for given in (x, xp.asarray(x)):
        found = ab.sharding.shards(given)
        assert [device for _, device, _ in found] == [s.device for s in x.addressable_shards]
        assert [array.info.pointer for *_, array in found] == pointers(x)
        for index, _, array in found:
            assert np.asarray(array).tobytes() == full[index].tobytes()
    replicas = ab.sharding.shards(spread(full, grid(8)))
    assert [index for index, *_ in replicas] == [(slice(0, 8), slice(0, 4))] * 8
    x = spread(full, grid(8), "a")
    with refused(r"has 8 shards of processes \[0\], .* 1 processes .* start one process per shard"):
        ab.sharding.to_torch(x)
    assert len(arraybridge.sharding.shards(x)) == 8
    with jax.set_mesh(jax.make_mesh((8,), ("a",))):
        x, product = jax.device_put(np.ones((4, 8)), P(None, "a")), P(unreduced={"a"})
        x = jax.jit(lambda x: jax.lax.dot(x, x.T, out_sharding=product))(x)
        with refused("the shards are summands, not parts"):
            ab.sharding.shards(x)
        spec = P()
        assert len(ab.sharding.shards(jax.sharding.reshard(x, spec))) == 8

    one = jax.device_put(full, jax.devices()[3])
    t = ab.sharding.to_torch(one, alias_readonly=True)
    assert (t.placements, t.to_local().data_ptr()) == ((Replicate(),), one.unsafe_buffer_pointer())
    with refused(r"needs one device per process, but JAX has 8 devices in 1 processes: pass mesh="):
        ab.sharding.to_jax(t)
    back = ab.sharding.to_jax(t, jax.sharding.Mesh(jax.devices()[3:4], ("a",)), copy=False)
    assert (back.devices(), pointers(back)) == (one.devices(), pointers(one))
    with refused("the shard is on cpu but the mesh is on meta: move the array first"):
        ab.sharding.to_torch(one, DeviceMesh("meta", [0]))
    for function, given in (
        (ab.sharding.to_jax, DeviceMesh("cpu", [0])),
        (ab.sharding.to_torch, grid(1)),
    ):
        with refused("mesh must be a (DeviceMesh of torch|Mesh of jax), got", TypeError):
            function(one, given)
    with refused("device", TypeError):  # which the mesh has
        ab.sharding.to_jax(one, device="cpu")
    t = ab.sharding.to_torch(jax.numpy.float32(2), dtype="float64")
    assert (t.dtype, t.full_tensor().item()) == (torch.float64, 2)
    assert ab.sharding.to_jax(t, grid(1), dtype="float32") == 2

    with refused("a JAX tracer"):
        jax.jit(ab.sharding.shards)(one)
    with refused("pass jax.random.key_data"):
        ab.sharding.to_torch(jax.random.key(0))
    one.delete()
    with refused("was deleted or donated"):
        ab.sharding.shards(one)
    for array in (full, torch.ones(3), [1]):
        with refused("(only|pass) a .*DTensor", TypeError):
            ab.sharding.shards(array)
