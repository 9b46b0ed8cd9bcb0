"""Dask's distributed with two worker processes: Arrays sent, gathered and spilled to disk."""

import numpy as np
import pytest

import arraybridge as ab
import arraybridge.pickling
from tests.support.optional import optional
from tests.support.pickles import megabyte, values

torch = optional("torch")

pytestmark = [pytest.mark.heavy, pytest.mark.filterwarnings("ignore")]  # at fork, and its own

LIBRARIES = ["numpy", "torch", "jax"]


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address=None,
            memory_limit=0,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8_e4m3fn"])
@pytest.mark.parametrize("library", LIBRARIES)
def test_frames_are_the_memory(library, dtype):
    protocol = pytest.importorskip("distributed.protocol")
    x = ab.from_dlpack(megabyte(library, dtype))
    header, frames = protocol.serialize(x)
    place = np.frombuffer(frames[1], np.uint8)
    assert place.ctypes.data == x.info.pointer
    assert len(bytes(frames[0])) < 500
    arrived = bytearray(frames[1])
    again = protocol.deserialize(header, [frames[0], arrived])
    assert again.dtype == x.dtype
    np.testing.assert_array_equal(values(again), values(x))
    if library != "jax":  # of unaligned memory JAX makes a copy
        assert again.info.pointer == np.frombuffer(arrived, np.uint8).ctypes.data


@pytest.mark.parametrize("library", LIBRARIES)
def test_spilled_to_disk(library, tmp_path):
    spill = pytest.importorskip("distributed.spill")
    buffer = spill.SpillBuffer(str(tmp_path), target=1)  # all goes to disk
    made = {f"x{i}": ab.from_dlpack(megabyte(library) + i) for i in range(4)}
    for key, x in made.items():
        buffer[key] = x
    assert not buffer.fast
    assert len(buffer.slow) == len(made)
    for key, x in made.items():
        again = buffer[key]
        assert again.library == library
        assert again.readonly == x.readonly
        np.testing.assert_array_equal(values(again), values(x))


class TestWorkers:
    @pytest.mark.parametrize("library", LIBRARIES)
    def test_there_and_back(self, client, library):
        x = ab.from_dlpack(megabyte(library))
        workers = list(client.scheduler_info()["workers"])
        there = client.scatter(x, workers=workers[:1])
        # on the other worker, so that it goes from one to the other as well
        made = client.submit(_doubled, there, workers=workers[1:], pure=False)
        name, back = made.result(timeout=60)
        assert name == library
        assert back.library == library
        np.testing.assert_array_equal(values(back), values(x)[::-1, ::-1] * 2)

    @pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
    def test_native_tensors(self, client, dtype):
        x = megabyte("torch", dtype)
        with arraybridge.pickling.register("torch"):
            there = client.scatter(x)
            assert client.submit(_sum, there, pure=False).result(timeout=60) == values(x).sum()

    def test_what_dask_refuses_without(self):
        protocol = pytest.importorskip("distributed.protocol")
        x = megabyte("torch", "bfloat16")
        with pytest.raises(TypeError, match="serialize"):
            protocol.serialize(x, on_error="raise")
        with arraybridge.pickling.register("torch"):
            again = protocol.deserialize(*protocol.serialize(x, on_error="raise"))
        assert torch.equal(again, x)
        with pytest.raises(TypeError, match="serialize"):
            protocol.serialize(x, on_error="raise")


def _doubled(x):
    return x.library, ab.namespace(x).flip(x) * 2


def _sum(x):
    return float(x.double().sum())
