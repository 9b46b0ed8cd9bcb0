"""``pickling.collate``: batches of arrays of any library and layout, in containers of any kind."""

from collections import namedtuple

import numpy as np
import pytest

import arraybridge as ab
from arraybridge import pickling
from tests.support.optional import needs, optional, with_needs
from tests.support.processes import python
from tests.support.sources import frozen

pytestmark = needs("torch")
torch = optional("torch")

LIBRARIES = ["numpy", "torch", "jax", "pyarrow", "tvm_ffi", "array_api_strict"]
LAYOUTS = {
    "C": lambda x: x,
    "flipped": lambda x: x[::-1],
    "both flipped": lambda x: x[::-1, ::-1],
    "every second, flipped": lambda x: np.repeat(x, 2, 1)[:, ::-2],
    "transposed": lambda x: np.ascontiguousarray(x.T).T,
    "broadcast": lambda x: np.broadcast_to(x[:1], x.shape),
    "read-only": lambda x: frozen(x.copy()),
    "byteswapped": lambda x: x.astype(x.dtype.newbyteorder()),
    "unaligned": lambda x: (
        np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(x.dtype).reshape(3, 4)
    ),
    "mapped": lambda x: x.view(np.memmap),
}
Pair = namedtuple("Pair", "image label")


def _images(dtype="f4"):
    return [np.arange(12).reshape(3, 4).astype(dtype), np.ones((3, 4), dtype)]


def _equal(found, expected):
    assert type(found) is torch.Tensor
    np.testing.assert_array_equal(found.numpy(), np.stack([np.asarray(x) for x in expected]))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "u1", "?", "c8", "u2"])
def test_arrays_of_numpy(layout, dtype):
    items = [LAYOUTS[layout](x) for x in _images(dtype)]
    _equal(pickling.collate(items), items)
    _equal(pickling.collate([ab.from_dlpack(items[0]), items[1]]), items)
    _equal(pickling.collate(items[::-1]), items[::-1])


@pytest.mark.parametrize("library", with_needs(*LIBRARIES))
@pytest.mark.parametrize("other", with_needs(*LIBRARIES))
def test_arrays_of_two_libraries(library, other):
    first, second = _images()
    items = [ab.convert(first, library), ab.convert(second, other)]
    _equal(pickling.collate(items), [first, second])
    _equal(pickling.collate([*items, first[::-1]]), [first, second, first[::-1]])
    found = pickling.collate([{"x": [items[0], 1]}, {"x": [items[1], 2]}])
    _equal(found["x"][0], [first, second])
    assert found["x"][1].tolist() == [1, 2]


def test_containers():
    first, second = (x[::-1] for x in _images())
    dictionary, pair, items, texts = pickling.collate(
        [
            ({"image": first, "more": {"label": 1}}, Pair(first, 0.5), [first, 1], ["a", b"b"]),
            ({"image": second, "more": {"label": 2}}, Pair(second, 1.5), [second, 2], ["c", b"d"]),
        ]
    )
    for found in (dictionary["image"], pair.image, items[0]):
        _equal(found, [first, second])
    assert type(pair) is Pair
    assert type(items) is list
    assert pair.label.tolist() == [0.5, 1.5]
    assert dictionary["more"]["label"].tolist() == items[1].tolist() == [1, 2]
    assert texts == [("a", "c"), (b"b", b"d")]


def test_numbers():
    for items, dtype in (
        ([np.float32(1), np.float32(2)], torch.float32),
        ([np.float64(1), np.array(2.0)], torch.float64),
        ([np.array(1.0), np.float64(2)], torch.float64),
        ([np.array(1)[()], np.array(2)], torch.int64),
        ([np.bool_(True), np.bool_(False)], torch.bool),
        ([1, np.int64(2)], torch.int64),
        ([1.0, 2.0], torch.float64),
    ):
        found = pickling.collate(items)
        assert (found.dtype, found.tolist()) == (dtype, [float(x) for x in items])


def test_no_elements():
    assert pickling.collate([np.zeros((0, 3))] * 2).shape == (2, 0, 3)


def test_tensors_are_left_to_pytorch():
    for held in (lambda x: x, ab.from_dlpack):
        x = torch.ones(2, requires_grad=True)
        pickling.collate([held(x), held(x)]).sum().backward()
        assert x.grad.tolist() == [2, 2]


@pytest.mark.parametrize(
    ("items", "error", "words"),
    [
        ([np.zeros(3), np.zeros(4)], ValueError, "one shape and dtype"),
        ([np.zeros(3), np.zeros(3, "f4")], ValueError, "float32"),
        ([np.ma.array([1.0], mask=[1])] * 2, ab.ConversionError, "lose its mask"),
        ([np.array(["a"])] * 2, TypeError, "default_collate"),
        ([np.array([None])] * 2, TypeError, "default_collate"),
        ([np.zeros(1, "M8[s]")] * 2, ab.ConversionError, "x.view.'int64'"),
        ([np.zeros(1), 5], TypeError, "must not contain 5"),
        ([np.zeros(1), "a"], TypeError, "must not contain 'a'"),
        ([object()] * 2, TypeError, "default_collate"),
    ],
)
def test_what_is_no_batch(items, error, words):
    with pytest.raises(error, match=words):
        pickling.collate(items)
    with pytest.raises(error, match=words):
        pickling.collate([{"x": item} for item in items])


def test_gradients_are_not_cut():
    with pytest.raises(ab.ConversionError, match=r"x\.detach\(\)"):
        pickling.collate([np.ones(2, "f4"), torch.ones(2, requires_grad=True)])


@pytest.mark.heavy
@needs("pandas", "polars")
def test_columns_and_frames():
    import pandas as pd
    import polars as pl

    for make in (pd.Series, pd.Index, pl.Series):
        _equal(pickling.collate([make([1.0, 2.0]), make([3.0, 4.0])]), [[1, 2], [3, 4]])
    frame = pl.DataFrame({"a": [1.0], "b": [2.0]})
    assert pickling.collate([frame, frame.to_pandas()]).tolist() == [[[1, 2]], [[1, 2]]]


@pytest.mark.heavy
def test_workers(tmp_path):
    """By fork, and by spawn with arrays of JAX: in a process without other threads."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    python(f"import runpy; runpy.run_path({str(program)!r}, run_name='__main__')")


PROGRAM = """
import multiprocessing as mp
import numpy as np, torch
import arraybridge as ab
from arraybridge import pickling

class Items(torch.utils.data.Dataset):
    def __init__(self, jax):
        self.jax = jax
    def __len__(self):
        return 8
    def __getitem__(self, i):
        x = np.full((3, 500), i, np.float32)
        frozen = x.copy()
        frozen.flags.writeable = False
        item = {"flipped": ab.from_dlpack(x[:, ::-1]), "more": (frozen, [np.float32(i), i, "text"])}
        if self.jax:
            import jax
            item["jax"] = jax.numpy.asarray(x)
        return item

def main():
    if mp.parent_process() is not None:
        return
    cases = ((False, 0, None), (False, 2, "fork"), (True, 0, None), (True, 2, "spawn"))
    for jax, workers, method in cases:
        loader = torch.utils.data.DataLoader(Items(jax), batch_size=4, num_workers=workers,
            timeout=60 if workers else 0, collate_fn=pickling.collate,
            multiprocessing_context=method)
        seen = 0
        for batch in loader:
            frozen, (scalar, label, text) = batch["more"]
            for x in (batch["flipped"], frozen, *([batch["jax"]] if jax else [])):
                assert type(x) is torch.Tensor and x.shape == (4, 3, 500)
                assert x.is_shared() or not workers
                assert (x[:, 0, 0] == label).all()
            assert scalar.dtype == torch.float32 and list(text) == ["text"] * 4
            seen += 1
        assert seen == 2

if __name__ == "__main__":
    main()
"""
