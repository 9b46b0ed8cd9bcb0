"""Arrays between processes: pickles whose memory travels out of band, start methods, Ray."""

from __future__ import annotations

import io
import os
import pickle

import ml_dtypes
import numpy as np
import pytest

import arraybridge as ab
from tests.support.optional import needs, optional
from tests.support.processes import ROOT, python

torch = optional("torch")
LIBRARIES = [pytest.param(name, marks=needs(name)) for name in ("numpy", "torch", "jax")]
#: Views of 48 elements, with the number of those that are sent.
VIEWS = {
    "whole": (lambda x: x, 48),
    "transposed": (lambda x: x.transpose(2, 0, 1), 48),
    "flipped": (lambda x: x[::-1, :, ::-1], 48),
    "columns": (lambda x: x[..., :2], 16),
    "broadcast": (lambda x: np.broadcast_to(x[1], (2, 4, 6)), 48),
    "scalar": (lambda x: x[1, 2, 3], 1),
    "empty": (lambda x: x[:0], 0),
}


def numbers(dtype):
    return np.arange(48).reshape(2, 4, 6).astype(getattr(ml_dtypes, dtype, dtype))


def dumped(x):
    """Return a pickle of protocol 5, and the memory outside it."""
    buffers, file = [], io.BytesIO()
    pickle.Pickler(file, 5, buffer_callback=buffers.append).dump(x)
    assert len(file.getvalue()) < 500
    return file.getvalue(), [bytes(buffer.raw()) for buffer in buffers]


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float8_e4m3fn", "bool"])
@pytest.mark.parametrize("view", VIEWS)
def test_pickles(view, dtype, library):
    make, sent = VIEWS[view]
    source = make(numbers(dtype))
    x = ab.from_dlpack(ab.convert(source, library))
    stream, memory = dumped(x)
    assert sum(map(len, memory)) == sent * x.info.itemsize
    for again in (
        pickle.loads(stream, buffers=memory),
        pickle.loads(stream, buffers=map(bytearray, memory)),
        pickle.loads(pickle.dumps(x, 2)),
        pickle.loads(pickle.dumps(x, 5)),
    ):
        assert type(again) is type(x)
        assert again.dtype == x.dtype
        np.testing.assert_array_equal(
            ab.convert(again, "numpy").astype(float), np.asarray(source).astype(float)
        )


def test_memory_is_shared_where_it_may_be():
    """Read-only memory is no tensor's, so it is copied for PyTorch."""
    stream, memory = dumped(ab.from_dlpack(np.ones(3)))
    x = pickle.loads(stream, buffers=memory)
    assert x.readonly
    assert x.info.pointer == np.frombuffer(memory[0], np.uint8).ctypes.data
    stream, memory = dumped(ab.from_dlpack(torch.ones(3)))
    x = pickle.loads(stream, buffers=memory)
    x += 1
    assert memory[0] == np.ones(3, "f4").tobytes()
    shared = [bytearray(memory[0])]
    x = pickle.loads(stream, buffers=shared)
    x += 1
    assert shared[0] == np.full(3, 2, "f4").tobytes()


def test_the_axes_keep_their_order():
    x = ab.from_dlpack(numbers("float32").transpose(2, 0, 1))
    assert pickle.loads(pickle.dumps(x)).strides == x.strides


def test_what_lies_between_is_not_sent():
    secret = np.full((4, 4), 7.0)
    secret[:, 0] = 1
    _, memory = dumped(ab.from_dlpack(secret[:, :1]))
    assert {*np.frombuffer(b"".join(memory))} == {1.0}


def test_what_numpy_cannot_view_is_pickled_by_the_library():
    x = pickle.loads(pickle.dumps(ab.from_dlpack(torch.ones(2, requires_grad=True))))
    assert x.native.requires_grad


@pytest.mark.heavy
@needs("torch")
def test_start_methods(tmp_path):
    """fork, spawn and forkserver: in a process without other threads."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    python(f"import runpy; runpy.run_path({str(program)!r}, run_name='__main__')")


PROGRAM = """
import multiprocessing as mp
import numpy as np, torch
import arraybridge as ab

def work(inbox, outbox):
    for x in iter(inbox.get, None):
        x[0] = 9
        outbox.put(ab.namespace(x).flip(x))

def main():
    sent = [np.arange(4.0), torch.arange(4.0), torch.arange(4.0).bfloat16(), np.arange(8.0)[::-2]]
    for method in ("fork", "spawn", "forkserver"):
        context = mp.get_context(method)
        inbox, outbox = context.Queue(), context.Queue()
        worker = context.Process(target=work, args=(inbox, outbox), daemon=True)
        worker.start()
        try:
            for native in sent:
                before = ab.convert(native, "numpy", copy=True)
                inbox.put(ab.from_dlpack(native))
                x = outbox.get(timeout=60)
                assert type(x.native) is type(native) and x.dtype == ab.from_dlpack(native).dtype
                wanted = before.copy()
                wanted[0] = 9
                assert (ab.convert(x, "numpy") == wanted[::-1]).all()
                assert (ab.convert(native, "numpy") == before).all()
            inbox.put(None)
            worker.join(60)
            assert worker.exitcode == 0
        finally:
            worker.kill()

if __name__ == "__main__":
    main()
"""


@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore")  # Ray's own, and at a fork
@needs("ray", "torch", "jax")
def test_ray(monkeypatch):
    """Through the object store, to a task and back; nobody writes to the store."""
    import ray

    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    ray.init(
        num_cpus=1, object_store_memory=200 << 20, include_dashboard=False, log_to_driver=False,
        _node_ip_address="127.0.0.1", runtime_env={"env_vars": {"PYTHONPATH": str(ROOT)}},
    )  # fmt: skip
    try:

        @ray.remote
        def double(x):
            x *= 2
            return os.getpid(), x

        for library in ("numpy", "torch", "jax"):
            x = ab.from_dlpack(ab.convert(np.ones(1 << 18, "f4"), library))
            ref = ray.put(x)
            assert ray.get(ref).readonly == (library != "torch")
            process, back = ray.get(double.remote(ref), timeout=60)
            assert process != os.getpid()
            assert back.library == library
            assert (np.asarray(back) == 2).all()
            assert (np.asarray(ray.get(ref)) == 1).all()
    finally:
        ray.shutdown()
