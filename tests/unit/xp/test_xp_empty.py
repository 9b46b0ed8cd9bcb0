"""Functions along no axes, of arrays of no axes, and of matrices without elements: one answer."""

import math

import numpy as np
import pytest

from tests.support.namespaces import each_library, namespaces

pytestmark = pytest.mark.usefixtures("x64")

MATRICES = [(0, 0), (3, 0), (0, 3), (2, 3, 0), (2, 0, 3), (0, 3, 3), (0, 2, 3), (2, 0, 0)]
SQUARE = [shape for shape in MATRICES if shape[-1] == shape[-2]]
INF = math.inf
NOT_DPNP = "dpnp is not corrected for arrays without elements: no issue known, none of it looked at"


@each_library
def test_the_rank_of_a_matrix_without_elements(library):
    for namespace in namespaces(library):
        xp, one = namespace.xp, namespace.enter(np.ones((3, 3)))
        wanted = namespace.dtype_name(xp.linalg.matrix_rank(one))
        for shape in MATRICES:
            x = namespace.enter(np.ones(shape))
            for rtol in (None, 0.1, namespace.enter(np.asarray(0.1))):
                rank = xp.linalg.matrix_rank(x, rtol=rtol)
                assert rank.shape == shape[:-2]
                assert namespace.dtype_name(rank) == wanted
                assert not namespace.left(rank).any()
        rtol = namespace.enter(np.full(2, 0.1))
        assert xp.linalg.matrix_rank(namespace.enter(np.ones((2, 3, 0))), rtol=rtol).shape == (2,)
        assert int(xp.linalg.matrix_rank(one)) == 1


@each_library
def test_linear_algebra_of_matrices_without_elements(library):
    """The shapes of NumPy's results."""
    if library == "dpnp":
        pytest.skip(NOT_DPNP)
    wrapped, _ = namespaces(library)
    xp = wrapped.xp
    for shape in MATRICES:
        x, y = np.ones(shape), wrapped.enter(np.ones(shape))
        assert xp.linalg.svdvals(y).shape == np.linalg.svdvals(x).shape
        assert [p.shape for p in xp.linalg.svd(y)] == [p.shape for p in np.linalg.svd(x)]
        assert [p.shape for p in xp.linalg.qr(y)] == [p.shape for p in np.linalg.qr(x)]
        assert xp.linalg.pinv(y).shape == np.linalg.pinv(x).shape
        assert xp.linalg.matrix_norm(y).shape == np.linalg.matrix_norm(x).shape
    for shape in SQUARE:
        x, y = np.ones(shape), wrapped.enter(np.ones(shape))
        np.testing.assert_array_equal(wrapped.left(xp.linalg.det(y)), np.linalg.det(x))
        assert xp.linalg.inv(y).shape == xp.linalg.solve(y, y).shape == shape
        assert xp.linalg.eigvalsh(y).shape == shape[:-1]
        assert [p.shape for p in xp.linalg.slogdet(y)] == [shape[:-2]] * 2


@each_library
def test_along_no_axes_nothing_is_moved(library):
    if library == "dpnp":
        pytest.skip(NOT_DPNP)
    for namespace in namespaces(library):
        xp = namespace.xp
        for shape in ((), (0,), (3,), (2, 3), (0, 3)):
            x = np.arange(math.prod(shape), dtype="f8").reshape(shape)
            y = namespace.enter(x)
            moved = [xp.roll(y, shift, axis=()) for shift in (1, 0, -2, (), (1,))]
            moved += [xp.fft.fftshift(y, axes=()), xp.fft.ifftshift(y, axes=())]
            if not shape:
                moved += [xp.fft.fftshift(y), xp.fft.ifftshift(y), xp.roll(y, 1)]
            for each in moved:
                np.testing.assert_array_equal(namespace.left(each), x)
            if x.size and namespace is namespaces(library)[0]:
                moved[0][...] = 7  # of its own memory
                np.testing.assert_array_equal(namespace.left(y), x)


@each_library
def test_shifts_and_axes_broadcast(library):
    x = np.arange(24).reshape(2, 3, 4)
    for namespace in namespaces(library):
        y = namespace.enter(x)
        for shift, axis in (
            (1, (0, 2)), ((1,), (0, 2)), ((1, 2), (0, 2)), ((1, 2), (1, 1)), ((1, 2), 1),
            ((1, 2), None), (5, None), (-1, -1), ((), 0), ((3,), 0),
        ):  # fmt: skip
            if library == "dpnp" and () in (shift, axis):
                continue
            rolled = namespace.left(namespace.xp.roll(y, shift, axis=axis))
            np.testing.assert_array_equal(rolled, np.roll(x, shift, axis), str((shift, axis)))


@each_library
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_norms_of_vectors_of_one_element_and_of_none(library):
    if library == "dpnp":
        pytest.skip(NOT_DPNP)
    slow = library == "jax"  # it compiles for each
    for namespace in namespaces(library)[: 1 if slow else 2]:
        norm = namespace.xp.linalg.vector_norm
        for shape in ((), (3, 0)) if slow else ((), (2,), (0,), (2, 3), (3, 0)):
            x = np.arange(math.prod(shape), dtype="f8").reshape(shape) - 1
            y = namespace.enter(x)
            for order in (0, 1, 2, 3, -1, 0.5, INF, -INF):
                wanted = (x != 0).astype("f8") if order == 0 else abs(x)
                for keep in (False, True):
                    found = namespace.left(norm(y, axis=(), ord=order, keepdims=keep))
                    np.testing.assert_allclose(found, wanted, rtol=1e-6)
            if not x.size:
                for order in (0, 1, 2, 3, 0.5, INF, -1):
                    wanted = INF if order < 0 else 0
                    for axis in (None, 0 if shape == (0,) else 1, tuple(range(x.ndim))):
                        for keep in (False, True):
                            found = norm(y, axis=axis, ord=order, keepdims=keep)
                            still = np.sum(x, axis=axis, keepdims=keep)
                            assert found.shape == still.shape, (shape, order, axis, keep)
                            assert (namespace.left(found) == wanted).all(), (shape, order, axis)
        assert namespace.dtype_name(norm(namespace.enter(np.ones(0, "c8")), ord=INF)) == "float32"
