"""adapt(signature=): invalid signatures, and arguments that do not fit, are clear errors."""

import numpy as np
import pytest

import arraybridge as ab

dask = pytest.importorskip("dask.array")
torch = pytest.importorskip("torch")

MALFORMED = [
    "", " ", "->", "i->i", "(i)", "(i)->", "->(i)", "(i)->(i)->(i)", "(i),->(i)", ",(i)->(i)",
    "(i)->(i),", "(i)(j)->(i)", "(i->(i)", "i)->(i)", "(i)->(i)x", "(i,)->(i)", "(,i)->(i)",
    "(i;j)->(i)", "(i?)->(i)", "(3)->(3)", "(1i)->(1i)", "(...)->()", "((i))->(i)", "(i)=>(i)",
    "(i)-(i)", "[i]->[i]", "(i-1)->(i)",
]  # fmt: skip


@pytest.mark.parametrize("signature", MALFORMED)
def test_malformed(signature):
    with pytest.raises(
        ValueError, match=r"signature is .*; expected one such as \"\(i\),\(i,j\)->\(j\)\""
    ):
        ab.adapt("torch", signature=signature)


@pytest.mark.parametrize("signature", [3, b"(i)->(i)", ["(i)->(i)"], (), True, dask])
def test_no_text(signature):
    with pytest.raises(TypeError, match="signature must be a string such as"):
        ab.adapt("torch", signature=signature)


def first(x, *others):
    return x


X = np.arange(12.0).reshape(4, 3)


def lazy(*shape, chunks=2):
    return dask.ones(shape or (4, 3), chunks=(chunks,) * (len(shape or (4, 3)) - 1) + (-1,))


MISFITS = {  # the signature, options, the function, the arguments, and what is said
    "too few": ("(i),(i)->(i)", {}, first, (lazy(),), "arguments: expected 2, got 1"),
    "too many": ("(i)->(i)", {}, first, (lazy(), lazy()), "arguments: expected 1, got 2"),
    "a new axis": ("(i)->(j)", {}, first, (lazy(),), "no argument has the axis j"),
    "another new axis": ("(i)->(i),(i,k)", {}, first, (lazy(),), "no argument has the axis k"),
    "a size of another": (
        "(i)->(j)", {"blockwise": {"output_sizes": {"k": 2}}}, first, (lazy(),), "has the axis j"
    ),
    "too few dimensions": ("(i,j,k)->(i)", {}, first, (lazy(),), "argument 0 has 2 dimensions"),
    "a number": ("(i),(i)->(i)", {}, first, (lazy(), 3.0), "argument 1 has 0 dimensions"),
    "different extents": (
        "(i),(i)->(i)", {}, first, (lazy(), lazy(4, 5)), "i has 3 elements, but 5 in argument 1"
    ),
    "a square": ("(i,i)->(i)", {}, first, (lazy(),), "axis i has 4 elements, but 3 in argument 0"),
    "several blocks": ("(i)->(i)", {}, first, (lazy().rechunk(2),), "split along .* x.rechunk"),
    "one result": ("(i)->(i),()", {}, first, (lazy(),), "one, expected a tuple of 2 arrays"),
    "two results": ("(i)->(i)", {}, lambda x: (x, x), (lazy(),), "a tuple of 2, expected an array"),
    "three results": (
        "(i)->(i),(i)", {}, lambda x: (x, x, x), (lazy(),), "a tuple of 3, expected a tuple of 2"
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("signature", "options", "function", "args", "match"), MISFITS.values(), ids=MISFITS
)
def test_what_does_not_fit(signature, options, function, args, match):
    call = ab.adapt("torch", signature=signature, **options)(function)
    with pytest.raises(ValueError, match=match) as error:
        call(*args)
    assert f"adapted with signature={signature!r}" in str(error.value)


def test_the_remedies():
    half = ab.adapt(
        "torch", signature="(i)->(j)", blockwise={"output_sizes": {"j": 2}}
    )(lambda x: x[..., :2])  # fmt: skip
    assert half(lazy()).compute().shape == (4, 2)
    total = ab.adapt("torch", signature="(i)->()", blockwise={"allow_rechunk": True})(
        lambda x: x.sum(-1)
    )
    np.testing.assert_array_equal(total(lazy().rechunk(2)).compute(), [3] * 4)
    plain = ab.adapt("torch", signature="(i)->()")(lambda x: x.sum(-1))
    np.testing.assert_array_equal(plain(lazy().rechunk(2).rechunk({-1: -1})).compute(), [3] * 4)


def test_what_fits():
    product = ab.adapt("torch", signature=" (i, j), (j) -> (i) ")(lambda a, b: a @ b)
    a, b = dask.from_array(X, chunks=-1), dask.ones(3)
    np.testing.assert_array_equal(product(a, b).compute(), X.sum(1))
    both = ab.adapt("torch", signature="(i)->(i),()")(lambda x: (x * 2, x.sum(-1)))
    doubled, sums = both(lazy())
    assert doubled.compute().shape == (4, 3)
    np.testing.assert_array_equal(sums.compute(), [3] * 4)
    scaled = ab.adapt("torch", signature="(i),()->(i)")(lambda x, by: x * by)
    np.testing.assert_array_equal(scaled(lazy(), 3.0).compute(), np.full((4, 3), 3.0))
    first_axis = ab.adapt("torch", signature="(i)->()", blockwise={"axes": [(0,), ()]})
    assert first_axis(lambda x: x.sum(-1))(dask.ones((4, 3), chunks=(-1, 1))).compute().shape == (
        3,
    )
    in_memory = ab.adapt("torch", signature="(i)->(j)")(lambda x: x[..., :2])
    assert in_memory(X).shape == (4, 2)
