"""Every remedy in a message is run as it is written, and works."""

import re

import jax
import numpy as np
import pyarrow as pa
import pytest

import arraybridge as ab
from tests.support.optional import optional

torch = optional("torch")


def _strings(dtype, shape=(2, 3)):
    return np.full(shape, "1", dtype).T[::2] if shape else np.full(shape, "1", dtype)


# Refused arrays, and the library that they are converted to.
ROWS = [
    # NumPy
    *(
        (lambda s=shape, d=dtype: _strings(d, s), "torch")
        for dtype in ("S3", "U2", "V3")
        for shape in ((2, 3), (3,), (), (0, 3))
    ),
    (lambda: np.array([5], "M8[s]"), "torch"),
    (lambda: np.array([5], ">M8[s]"), "torch"),
    (lambda: np.array([[5, 6]], "m8[s]").T, "torch"),
    (lambda: np.array([1, 2.5], object), "torch"),
    (lambda: np.ones(2, "longdouble"), "torch"),
    (lambda: np.ones(2, "clongdouble"), "torch"),
    (lambda: np.zeros(2, [("a", "i4"), ("b", "f8")]), "torch"),
    (lambda: np.ma.array([1.0, 2.0], mask=[0, 1]), "torch"),
    # Arrow as a source; every type of array is below
    (lambda: pa.SparseCOOTensor.from_dense_numpy(np.eye(2)), "numpy"),
    # Arrow as a target
    (lambda: torch.ones(2, 3).T > 0, "pyarrow"),
    *(
        (lambda d=dtype: torch.ones(2, 3).to(getattr(torch, d)).T, "pyarrow")
        for dtype in ("complex64", "complex128", "bfloat16", "float8_e5m2")
    ),
    *((lambda: torch.ones(2).to(torch.complex32), to) for to in ("numpy", "pyarrow")),
    # PyTorch
    (lambda: torch.ones(2, requires_grad=True), "numpy"),
    (lambda: torch._neg_view(torch.ones(2) > 0), "numpy"),
    (lambda: torch.eye(3).to_sparse(), "numpy"),
    (lambda: torch.eye(3).to_sparse_csr(), "numpy"),
    (lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8), "numpy"),
    (
        lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged),
        "numpy",
    ),
    (torch.nn.UninitializedParameter, "numpy"),
    # JAX
    (lambda: jax.random.key(0), "numpy"),
]
# The beginnings of code in a message.
START = re.compile(
    r"(?<![\w.'])(?:(?:numpy|pandas|polars|pyarrow|torch|jax|tf|arraybridge)\.[\w.]+\(x\b"
    r"|x(?=[.\[]))"
)
# Messages without code: only other data can be converted.
HOPELESS = ("make numbers of its",)


def codes(message):
    """The calls in a message: from their beginning as far as they go, with balanced parentheses."""
    found, at = [], 0
    while match := START.search(message, at):
        end, depth = match.end(), match.group().count("(")
        while end < len(message):
            char = message[end]
            if depth or char in "([":
                depth += (char in "([") - (char in ")]")
            elif not (char.isalnum() or char == "_" or re.match(r"\.[a-z_]", message[end:])):
                break
            end += 1
        found.append(message[match.start() : end])
        at = end
    return found


def carried_out(code, x, **names):
    names = {
        "x": x,
        "value": 0,
        "shape": (2, 3),
        "width": 2,
        "numpy": np,
        "arraybridge": ab,
    } | names
    return eval(code, {**names, "torch": torch, "pyarrow": pa, "jax": jax})


def refusal(x, to="numpy"):
    """The error of a refused array, which `explain` gives as well; None if it is converted."""
    try:
        route = ab.explain(x, to)
    except (TypeError, ab.ConversionError) as error:
        with pytest.raises(type(error), match=re.escape(str(error))):
            ab.convert(x, to)
        return str(error)
    if route.kind != "refuse":
        return None
    with pytest.raises(ab.ConversionError) as caught:
        ab.convert(x, to)
    assert str(caught.value) == route.why
    return route.why


def check(x, to="numpy", expected=None, **names):
    """Convert, or run each remedy of the error: its result can be converted."""
    message = refusal(x, to)
    if message is None:
        found = ab.convert(x, to)
        assert expected is None or found.tolist() == expected
        return []
    assert codes(message) or any(text in message for text in HOPELESS), message
    for code in codes(message):
        with np.errstate(all="ignore"):
            made = carried_out(code, x, **names)
        for each in (
            made if isinstance(made, tuple | list) else [x.detach() if made is None else made]
        ):
            ab.convert(each, to)
            assert ab.convert(each, "numpy").dtype != object, message
    counted = re.search(r"(\d+) of (\d+) elements", message)
    assert counted is None or 0 < int(counted[1]) <= int(counted[2])
    return codes(message)


ignored = pytest.mark.filterwarnings(
    "ignore:torch.ao.quantization is deprecated",
    "ignore:.*quantiz",
    "ignore:Sparse CSR tensor support",
    "ignore:ComplexHalf support",
)


@ignored
@pytest.mark.parametrize(("make", "to"), ROWS)
def test_the_remedy_works_as_it_is_written(make, to):
    assert check(make(), to)


def test_text_of_any_width_goes_on_as_text():
    x = np.array(["a", "bc"], np.dtypes.StringDType())
    code = "numpy.array(x.tolist())"
    with pytest.raises(ab.ConversionError, match=re.escape(code)):
        ab.convert(x, "torch")
    with pytest.raises(ab.ConversionError, match=r"numpy.frombuffer\(x.tobytes\(\), 'uint32'\)"):
        ab.convert(carried_out(code, x), "torch")


def _read_only():
    x = np.zeros(3)
    x.flags.writeable = False
    return x


UNWRITABLE = {  # a destination that `copyto` cannot write to, part of its error, the source
    "read-only": (_read_only, "it is read-only", np.ones(3)),
    "jax": (lambda: jax.numpy.zeros(3), "it is read-only", np.ones(3, "f4")),
    "pyarrow": (lambda: pa.array([0.0] * 3), "it is read-only", np.ones(3)),
    "chunks": (lambda: pa.chunked_array([[0.0], [1.0]]), "it is read-only", np.ones(2)),
    "bits": (lambda: pa.array([False, True]), "it is read-only", np.ones(2, bool)),
    "memory": (lambda: ab.from_dlpack(ab.dlpack.acquire(_read_only())), "read-only", np.ones(3)),
    "byteorder": (lambda: np.zeros(3, ">f8"), "byte order is not native", np.ones(3)),
    "conj": (lambda: torch.zeros(3, dtype=torch.cfloat).conj(), "conjugate bit", np.ones(3, "F")),
    "neg": (
        lambda: torch.zeros(3, dtype=torch.cfloat).conj().imag,
        "negative bit",
        np.ones(3, "f4"),
    ),
    "fraction": (
        lambda: np.zeros(3, [("a", "f8"), ("b", "i1")])["a"],
        "not multiples of its item size",
        torch.ones(3, dtype=torch.float64),
    ),
    "gradients": (lambda: torch.zeros(3, requires_grad=True), "gradients are", np.ones(3, "f4")),
    "gradients of an Array": (
        lambda: ab.from_dlpack(torch.zeros(3, requires_grad=True)),
        "gradients are",
        np.ones(3, "f4"),
    ),
    "one cell": (
        lambda: np.lib.stride_tricks.as_strided(np.zeros(1), (3,), (0,)),
        "share memory",
        np.ones(3),
    ),
    "sparse": (lambda: torch.zeros(3).to_sparse(), "is not dense memory", np.ones(3, "f4")),
}


@pytest.mark.parametrize("name", ["dst", "out"])
@pytest.mark.parametrize(("make", "what", "src"), UNWRITABLE.values(), ids=UNWRITABLE)
def test_what_to_do_about_a_destination(make, what, src, name):
    dst, source = make(), "src" if name == "dst" else "x"
    with pytest.raises(ab.ConversionError, match=f"^{name} cannot be written: .*{what}") as caught:
        ab.copyto(dst, src) if name == "dst" else ab.contiguous(src, out=dst)
    text = str(caught.value)
    names = {name: dst, source: src, "arraybridge": ab}
    if "new array" in text:
        dst = eval(text.partition("instead, ")[2], names)
    elif ".detach()" in text:
        ab.copyto(eval(re.findall(r"pass (\S+) ", text)[0], names), src)
        dst = getattr(dst, "native", dst).detach()
    else:
        exec(text.partition("library, ")[2], names)
        dst = dst.resolve_conj().resolve_neg() if isinstance(dst, torch.Tensor) else dst
    assert (ab.convert(dst, "numpy") == 1).all()


@pytest.mark.heavy
def test_remedies_of_tensorflow():
    tf = pytest.importorskip("tensorflow")
    ab.convert(tf.constant([1.0]), "numpy")
    for x in (
        tf.ragged.constant([[1.0], [2.0, 3.0]]),
        tf.sparse.from_dense([0.0, 1.0]),
        tf.IndexedSlices(tf.ones((1, 2)), tf.constant([0]), tf.constant([3, 2])),
        tf.bitcast(tf.constant([1, 2], tf.int8), tf.qint8),
        tf.bitcast(tf.constant([1], tf.int32), tf.qint32),
        tf.constant(["1", "2"]),
        tf.Variable(["1"]),
    ):
        assert check(x, tf=tf)
        assert check(x, "torch", tf=tf)
    with pytest.raises(ab.ConversionError, match="read the values that they refer to"):
        ab.convert(tf.Variable([1.0]).handle, "numpy")
