"""Signatures: the properties of an array that decide its route, as small hashable keys.

A library has two. The *exact* one is all that :meth:`Library.describe` returns, with the alignment
in place of the address; every library has it. The *coarse* one is optional and cheap: a tuple that
:meth:`Library.signature` reads off an array and :meth:`Library.decode` turns into a
:class:`Signature`. The planner sees only the decoded key, so a cached route cannot depend on
anything that is not part of its key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..dlpack import CPU, DataType
from ..layout import c_strides
from .records import TensorInfo

#: The address of an array that does not exist yet, with any alignment.
ADDRESS = 1 << 12

USUAL_ALIGNMENT = 16  # the least in bytes that every allocator guarantees
_MOST_ALIGNED = 64  # bytes; `exact_key` does not distinguish larger alignments by default


class Finer(Exception):
    """The planner needs a field that a coarse signature lacks: it must use the exact one."""


if TYPE_CHECKING:
    _Described = TensorInfo
else:
    _Described = object


class Signature(_Described):
    """The fields of a coarse key, with the names of :class:`TensorInfo`.

    Reading any other field raises :class:`Finer`.
    """

    _exact = False

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)

    @classmethod
    def on_host(cls, **fields: Any) -> Signature:
        """Return the signature of arrays in CPU memory that can be converted."""
        return cls(**{"device": CPU, "data": 1, "pending": (), "refused": None, **fields})

    def __getattr__(self, name: str) -> Any:
        raise Finer(name)

    def knows(self, name: str) -> bool:
        """Whether a field is part of the signature."""
        return name in self.__dict__

    def aligned(self, nbytes: int) -> Signature:
        """Return the same signature with an alignment."""
        return Signature(**{**self.__dict__, "alignment": nbytes})

    @property
    def dtype_name(self) -> str:
        name: str = self.dtype.name
        return name

    def aligned_to(self, nbytes: int) -> bool:
        """Whether the address of the first element is a multiple of a number of bytes."""
        if nbytes > self.alignment:  # the array may be aligned better: the exact signature knows
            raise Finer("alignment")
        return True


def exact_key(info: TensorInfo, most: int = _MOST_ALIGNED) -> tuple[Any, ...]:
    """Return the parts of a description that may decide, with the alignment for the address."""
    pointer = info.data + info.byte_offset
    aligned = pointer & -pointer
    return aligned if aligned < most else most, info[3:]


def of_exact_key(library: str, key: tuple[Any, ...]) -> TensorInfo:
    """Return the description of a key, at the lowest address with its alignment."""
    return TensorInfo(library, key[0], 0, *key[1])


def strides_in(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides, in elements, of a dense array whose axes have a given memory order."""
    dense = c_strides(tuple(shape[axis] for axis in axes))
    steps = dict(zip(axes, dense, strict=True))
    return tuple(steps[axis] for axis in range(len(shape)))


def dense_like(
    s: TensorInfo, dtype: DataType | None = None, axes: tuple[int, ...] | None = None
) -> TensorInfo:
    """Return the signature of a new dense array of another's shape.

    Its axes are in C order, or in that of `axes`, outermost first; the dtype defaults to the
    other's.
    """
    dtype = dtype or s.dtype
    if s._exact:
        here = s.device
        return s._replace(
            data=ADDRESS,
            byte_offset=0,
            strides=c_strides(s.shape) if axes is None else strides_in(s.shape, axes),
            dtype=dtype,
            readonly=False,
            version=None,
            device=CPU if here.host and here.type != CPU.type else here,
            padded=s.padded if dtype == s.dtype else dtype.subbyte,
            pending=(),
            refused=None,
            legacy=False,
            tracked=False,
        )
    assert isinstance(s, Signature)
    fields = {"empty": s.empty} if s.knows("empty") else {}
    if axes is None or axes == tuple(range(s.ndim)):
        fields["c_contiguous"] = True
    return Signature.on_host(
        dtype=dtype,
        ndim=s.ndim,
        readonly=False,
        compact=True,
        negative=False,
        repeated=False,
        alignment=ADDRESS,
        padded=dtype.subbyte,
        **fields,
    )
