"""The ``linalg`` extension of the array API standard 2025.12.

Matrices lie in the last two axes, ``(..., M, N)``; the axes before them are stacks, and broadcast
where there are two arguments. Elements are floating-point. What a singular or non-symmetric matrix
does where none is allowed is the library's choice. "Transpose" is the conjugate one where a complex
matrix is factored.
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
    """What :func:`eig` returns."""

    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    """What :func:`eigh` returns."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """What :func:`qr` returns."""

    Q: Array
    R: Array


class SlogdetResult(NamedTuple):
    """What :func:`slogdet` returns."""

    sign: Array
    logabsdet: Array


class SVDResult(NamedTuple):
    """What :func:`svd` returns."""

    U: Array
    S: Array
    Vh: Array


def cholesky(x: Array, /, *, upper: bool = False) -> Array:
    """Factor of symmetric (Hermitian) positive-definite matrices: ``L`` with ``x = L @ L.T``.

    Parameters
    ----------
    upper
        ``U`` with ``x = U.T @ U`` instead.
    """


def cross(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """Cross product of the vectors of 3 numbers along one axis; the other axes broadcast.

    Parameters
    ----------
    axis
        Of both arrays, counted from the end (negative); another extent than 3 is an error.
    """


def det(x: Array, /) -> Array:
    """Determinants of square matrices."""


def diagonal(x: Array, /, *, offset: int = 0) -> Array:
    """Diagonals of matrices, as the last axis; a view in some libraries.

    Parameters
    ----------
    offset
        0 is the main diagonal; positive ones lie above it, negative ones below.
    """


def eig(x: Array, /) -> EigResult:
    """Eigenvalues and eigenvectors of square matrices, complex even of a real matrix.

    Returns
    -------
    eigenvalues
        ``(..., M)``, in no particular order.
    eigenvectors
        ``(..., M, M)``: columns. They are not unique.
    """


def eigh(x: Array, /) -> EighResult:
    """Eigenvalues and eigenvectors of symmetric (Hermitian) matrices.

    Returns
    -------
    eigenvalues
        ``(..., M)``, real; their order is the library's choice.
    eigenvectors
        ``(..., M, M)``: orthonormal columns. They are not unique.
    """


def eigvals(x: Array, /) -> Array:
    """Eigenvalues of square matrices, ``(..., M)``, complex and in no particular order."""


def eigvalsh(x: Array, /) -> Array:
    """Eigenvalues of symmetric (Hermitian) matrices, ``(..., M)``, real-valued."""


def inv(x: Array, /) -> Array:
    """Inverses of square matrices."""


def matrix_norm(
    x: Array, /, *, keepdims: bool = False, ord: float | Literal["fro", "nuc"] | None = "fro"
) -> Array:
    """Norms of matrices, real-valued.

    Parameters
    ----------
    keepdims
        Whether the last two axes stay, with extent 1.
    ord
        ``"fro"``: Frobenius; ``"nuc"``: sum of the singular values; 1: largest sum of a column's
        magnitudes; inf: of a row's; 2: largest singular value. The smallest of each for -1, -inf
        and -2, which are no norms.
    """


def matrix_power(x: Array, n: int, /) -> Array:
    """Square matrices raised to an integer power: 0 gives the identity, a negative one inverts."""


def matrix_rank(x: Array, /, *, rtol: Array | float | None = None) -> Array:
    """How many singular values of each matrix are not as good as zero.

    Parameters
    ----------
    rtol
        Singular values up to this part of the largest one are zero. None: ``max(M, N) * eps``.
        An array broadcasts against the stack.
    """


def outer(x1: Array, x2: Array, /) -> Array:
    """Outer product of two vectors, ``(N,)`` and ``(M,)``: ``(N, M)``. Nothing is conjugated."""


def pinv(x: Array, /, *, rtol: Array | float | None = None) -> Array:
    """Moore-Penrose pseudo-inverses of matrices: ``(..., N, M)``.

    Parameters
    ----------
    rtol
        Singular values up to this part of the largest one are zero. None: ``max(M, N) * eps``.
        An array broadcasts against the stack.
    """


def qr(x: Array, /, *, mode: Literal["reduced", "complete"] = "reduced") -> QRResult:
    """Factors of matrices: ``x = Q @ R``, with orthonormal columns and an upper triangle.

    Parameters
    ----------
    mode
        ``"reduced"``: ``Q`` is ``(..., M, K)`` and ``R`` is ``(..., K, N)``, K the smaller of M and
        N. ``"complete"``: ``(..., M, M)`` and ``(..., M, N)``.
    """


def slogdet(x: Array, /) -> SlogdetResult:
    """Sign and logarithm of the magnitude of determinants, without overflow on the way.

    Returns
    -------
    sign
        Of magnitude 1, complex of a complex matrix; 0 if the determinant is 0.
    logabsdet
        Real-valued; -inf if the determinant is 0.
    """


def solve(x1: Array, x2: Array, /) -> Array:
    """``X`` with ``x1 @ X = x2``.

    Parameters
    ----------
    x1
        Square matrices of full rank.
    x2
        ``(M,)``: one vector, for every matrix of the stack. Else ``(..., M, K)``: the columns of
        matrices.
    """


def svd(x: Array, /, *, full_matrices: bool = True) -> SVDResult:
    """Singular value decomposition: ``x = U @ diag(S) @ Vh``.

    Parameters
    ----------
    full_matrices
        Whether ``U`` is ``(..., M, M)`` and ``Vh`` is ``(..., N, N)``; else ``(..., M, K)`` and
        ``(..., K, N)``, K the smaller of M and N.

    Returns
    -------
    U
        Orthonormal columns.
    S
        ``(..., K)``: the singular values, real, descending.
    Vh
        Orthonormal rows: the conjugate transpose of V.
    """


def svdvals(x: Array, /) -> Array:
    """Singular values of matrices, ``(..., min(M, N))``, real-valued, descending."""


def trace(x: Array, /, *, offset: int = 0, dtype: DType | None = None) -> Array:
    """Sums of the diagonals of matrices.

    Parameters
    ----------
    offset
        0 is the main diagonal; positive ones lie above it, negative ones below.
    dtype
        Of the result; ``x`` is cast first. None: that of ``x``, but integers narrower than the
        default one are widened to that many bits.
    """


def vector_norm(
    x: Array, /, *, axis: Axes | None = None, keepdims: bool = False, ord: float = 2
) -> Array:
    """Norms of the vectors along one axis or several, real-valued.

    Parameters
    ----------
    axis
        Several axes are one vector together. None: the whole array is one.
    keepdims
        Whether these axes stay, with extent 1.
    ord
        ``sum(abs(x)**ord)**(1/ord)``; inf: the largest magnitude, -inf: the smallest; 0: how many
        are not zero. Below 1 they are no norms.
    """
