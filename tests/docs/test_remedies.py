"""A message that names code to pass instead: the code runs as written, and its result converts."""

import re

import numpy as np
import pytest

import arraybridge as ab
from tests.support.optional import optional

jax, torch = optional("jax"), optional("torch")


def _text(dtype, shape):
    return np.full(shape, "1", dtype)


# Refused arrays, and the library that they are converted to.
ROWS = [
    *((lambda d=d, s=s: _text(d, s), "torch") for d in ("S3", "U2", "V3") for s in ((2, 3), ())),
    (lambda: np.array([5], "M8[s]"), "torch"),
    (lambda: np.array([5], ">M8[s]"), "torch"),
    (lambda: np.array([[5, 6]], "m8[s]").T, "torch"),
    (lambda: np.array([1, 2.5], object), "torch"),
    (lambda: np.ones(2, "longdouble"), "torch"),
    (lambda: np.zeros(2, [("a", "i4"), ("b", "f8")]), "torch"),
    (lambda: np.ma.array([1.0, 2.0], mask=[0, 1]), "torch"),
    (lambda: torch.ones(2, 3).to(torch.complex64).T, "pyarrow"),
    (lambda: torch.ones(2, 3).to(torch.bfloat16).T, "pyarrow"),
    (lambda: torch.ones(2).to(torch.complex32), "numpy"),
    (lambda: torch.ones(2, requires_grad=True), "numpy"),
    (lambda: torch._neg_view(torch.ones(2) > 0), "numpy"),
    (lambda: torch.eye(3).to_sparse(), "numpy"),
    (lambda: torch.eye(3).to_sparse_csr(), "numpy"),
    (lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8), "numpy"),
    (lambda: torch._efficientzerotensor((3, 4)), "numpy"),
    (lambda: jax.random.key(0), "numpy"),
]
#: Code in a message: a call with x in it, or an attribute of x.
CODE = re.compile(
    r"[A-Za-z_][\w.]*\(x\b[^()]*(?:\([^()]*\))?[^()]*\)(?:\[[^\]]*\])?(?:\.\w+\([^()]*\))*"
    r"|(?<![\w.'])x\.[a-z_]\w*(?:\.\w+|\([^()]*\))*|(?<![\w.'])x\[[^\]]*\]"
)


def refusal(x, to):
    """The error of a refused array, which `explain` gives as well."""
    try:
        why = ab.explain(x, to).why
    except (TypeError, ab.ConversionError) as error:
        why = str(error)
    with pytest.raises((TypeError, ab.ConversionError)) as caught:
        ab.convert(x, to)
    assert str(caught.value) == why
    return why


def carried_out(code, x, **names):
    return eval(code, {"x": x, "value": 0, "numpy": np, "torch": torch, "jax": jax,
                       "arraybridge": ab, **names})  # fmt: skip


@pytest.mark.filterwarnings(
    "ignore:torch.ao.quantization is deprecated",
    "ignore:.*quantiz",
    "ignore:Sparse CSR tensor support",
    "ignore:ComplexHalf support",
)
@pytest.mark.parametrize(("make", "to"), ROWS)
def test_the_remedy_works_as_it_is_written(make, to):
    x = make()
    for code in CODE.findall(refusal(x, to)):
        made = carried_out(code, x)
        for each in made if isinstance(made, tuple | list) else [made]:
            ab.convert(each, to)
            assert ab.convert(each, "numpy").dtype != object


@pytest.mark.heavy
def test_remedies_of_tensorflow():
    tf = pytest.importorskip("tensorflow")
    for x in (
        tf.ragged.constant([[1.0], [2.0, 3.0]]),
        tf.sparse.from_dense([0.0, 1.0]),
        tf.IndexedSlices(tf.ones((1, 2)), tf.constant([0]), tf.constant([3, 2])),
        tf.bitcast(tf.constant([1, 2], tf.int8), tf.qint8),
        tf.constant(["1", "2"]),
        tf.Variable(["1"]),
    ):
        for code in CODE.findall(refusal(x, "numpy")):
            ab.convert(carried_out(code, x, tf=tf), "torch")
