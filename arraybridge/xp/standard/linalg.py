"""The ``linalg`` extension of the array API standard 2025.12.

Matrices are in the last two axes, ``(..., M, N)``. The axes before them are stacks, which broadcast
if there are two arguments. Elements are floating-point numbers. If a function needs a regular or a
symmetric matrix, its result for other matrices is up to the library. ``.T`` means the conjugate
transpose of complex matrices.
"""
# pyright: reportReturnType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from .linear_algebra_functions import matmul, matrix_transpose, tensordot, vecdot

if TYPE_CHECKING:
    from ...array import Array
    from .data_types import Axes, DType

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv",
    "matmul", "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv",
    "qr", "slogdet", "solve", "svd", "svdvals", "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip


class EigResult(NamedTuple):
    """The result of :func:`eig`."""

    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    """The result of :func:`eigh`."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """The result of :func:`qr`."""

    Q: Array
    R: Array


class SlogdetResult(NamedTuple):
    """The result of :func:`slogdet`."""

    sign: Array
    logabsdet: Array


class SVDResult(NamedTuple):
    """The result of :func:`svd`."""

    U: Array
    S: Array
    Vh: Array


def cholesky(x: Array, /, *, upper: bool = False) -> Array:
    """Compute the Cholesky factor ``L``, ``x = L @ L.T``; ``upper``: ``U``, ``x = U.T @ U``."""


def cross(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """Compute cross products along ``axis``, a negative number, of 3 elements; others broadcast."""


def det(x: Array, /) -> Array:
    """Compute the determinants of square matrices."""


def diagonal(x: Array, /, *, offset: int = 0) -> Array:
    """Return the diagonals of matrices as the last axis; in some libraries a view."""


def eig(x: Array, /) -> EigResult:
    """Compute eigenvalues and eigenvectors of square matrices; they are complex.

    ``eigenvalues``: an array of shape ``(..., M)``, in no particular order. ``eigenvectors``: an
    array of shape ``(..., M, M)`` whose columns are the vectors, which are not unique.
    """


def eigh(x: Array, /) -> EighResult:
    """Compute eigenvalues and eigenvectors of symmetric (Hermitian) matrices.

    ``eigenvalues``: a real array of shape ``(..., M)``, in an order that is up to the library.
    ``eigenvectors``: an array of shape ``(..., M, M)`` whose columns are the vectors: orthonormal,
    but not unique.
    """


def eigvals(x: Array, /) -> Array:
    """Compute eigenvalues of square matrices, ``(..., M)``, complex and in no particular order."""


def eigvalsh(x: Array, /) -> Array:
    """Compute eigenvalues of symmetric (Hermitian) matrices, ``(..., M)``, real."""


def inv(x: Array, /) -> Array:
    """Compute the inverses of square matrices."""


def matrix_norm(
    x: Array, /, *, keepdims: bool = False, ord: float | Literal["fro", "nuc"] | None = "fro"
) -> Array:
    """Compute norms of matrices, which are real.

    ``ord``: ``"fro"`` is the Frobenius norm. ``"nuc"``: sum of singular values. 1: largest sum of
    magnitudes in a column; inf: in a row. 2: largest singular value. -1, -inf and -2: the smallest
    of each.
    """


def matrix_power(x: Array, n: int, /) -> Array:
    """Raise square matrices to an integer power: 0 gives the identity, negative powers invert."""


def matrix_rank(x: Array, /, *, rtol: Array | float | None = None) -> Array:
    """Compute the rank of matrices: the number of singular values that are not nearly zero.

    ``rtol``: singular values up to ``rtol`` times the largest count as zero. None: ``max(M, N) *
    eps``. An array broadcasts against the stack of matrices.
    """


def outer(x1: Array, x2: Array, /) -> Array:
    """Compute the outer product of vectors ``(N,)`` and ``(M,)``, of shape ``(N, M)``."""


def pinv(x: Array, /, *, rtol: Array | float | None = None) -> Array:
    """Compute Moore-Penrose inverses, ``(..., N, M)``; ``rtol`` is as in :func:`matrix_rank`."""


def qr(x: Array, /, *, mode: Literal["reduced", "complete"] = "reduced") -> QRResult:
    """Compute the QR decomposition ``x = Q @ R``: orthonormal columns and an upper triangle.

    ``mode``: ``"reduced"``: ``Q`` has shape ``(..., M, K)`` and ``R`` has ``(..., K, N)``, with K
    the smaller of M and N. ``"complete"``: ``(..., M, M)`` and ``(..., M, N)``.
    """


def slogdet(x: Array, /) -> SlogdetResult:
    """Compute sign and logarithm of the magnitude of determinants, without intermediate overflow.

    ``sign``: a number of magnitude 1, complex for a complex matrix; 0 if the determinant is 0.
    ``logabsdet``: a real number; -inf if the determinant is 0.
    """


def solve(x1: Array, x2: Array, /) -> Array:
    """Solve ``x1 @ X = x2`` for ``X``.

    ``x1``: square matrices of full rank. ``x2``: one vector ``(M,)`` for all matrices of the stack,
    or matrices ``(..., M, K)``.
    """


def svd(x: Array, /, *, full_matrices: bool = True) -> SVDResult:
    """Compute the singular value decomposition ``x = U @ diag(S) @ Vh``.

    ``full_matrices``: whether ``U`` has shape ``(..., M, M)`` and ``Vh`` has ``(..., N, N)``; else
    ``(..., M, K)`` and ``(..., K, N)``, with K the smaller of M and N. ``U``: orthonormal columns.
    ``S``: the singular values, of shape ``(..., K)``, real and in descending order. ``Vh``:
    orthonormal rows: the conjugate transpose of V.
    """


def svdvals(x: Array, /) -> Array:
    """Compute singular values, ``(..., min(M, N))``, real and in descending order."""


def trace(x: Array, /, *, offset: int = 0, dtype: DType = None) -> Array:
    """Compute the sums of the diagonals of matrices.

    ``dtype``: the dtype of the result, to which ``x`` is cast first. By default that of ``x``, but
    integers narrower than the default integer are widened to its number of bits.
    """


def vector_norm(
    x: Array, /, *, axis: Axes | None = None, keepdims: bool = False, ord: float = 2
) -> Array:
    """Compute norms of vectors along one or more axes, which are real.

    Several axes form one vector; without ``axis`` the whole array is one. ``ord``:
    ``sum(abs(x)**ord)**(1/ord)``. inf: the largest magnitude; -inf: the smallest; 0: the number of
    nonzero elements.
    """
