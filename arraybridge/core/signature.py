"""Signatures: what of an array decides its route, as small hashable keys.

A library has two. The *exact* one is all that :meth:`Library.describe` says of an array but its
address, of which the alignment is kept; every library has it. The *coarse* one is optional and
cheap: a tuple that :meth:`Library.signature` reads off an array, and :meth:`Library.decode` makes a
:class:`Signature` of. The planner sees the decoded key and nothing else, so a remembered route
cannot depend on anything that is not part of its key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..dlpack import CPU, DataType
from ..layout import c_strides
from .records import TensorInfo

#: Of an array that is not made yet: aligned as any is.
ADDRESS = 1 << 12

USUAL_ALIGNMENT = 16  # bytes, at least, of any allocator's memory
_MOST_ALIGNED = 64  # bytes; `exact_key` tells no larger alignments apart, unless it is asked to


class Finer(Exception):
    """The planner asked for something that a coarse signature does not say: read the exact one."""


if TYPE_CHECKING:
    _Described = TensorInfo
else:
    _Described = object


class Signature(_Described):
    """What a coarse key says of an array, under the names of :class:`TensorInfo`.

    To read anything else raises :class:`Finer`.
    """

    _exact = False

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)

    @classmethod
    def on_host(cls, **fields: Any) -> Signature:
        """Return that of arrays in the CPU's memory that nothing keeps from being converted."""
        return cls(**{"device": CPU, "data": 1, "pending": (), "refused": None, **fields})

    def __getattr__(self, name: str) -> Any:
        raise Finer(name)

    def knows(self, name: str) -> bool:
        """Whether a field is part of the signature."""
        return name in self.__dict__

    def aligned(self, nbytes: int) -> Signature:
        """Return that of arrays at a multiple of so many bytes."""
        return Signature(**{**self.__dict__, "alignment": nbytes})

    @property
    def dtype_name(self) -> str:
        name: str = self.dtype.name
        return name

    def aligned_to(self, nbytes: int) -> bool:
        """Whether the first element is at a multiple of so many bytes."""
        if nbytes > self.alignment:  # at least that; the exact signature has more
            raise Finer("alignment")
        return True


def exact_key(info: TensorInfo, most: int = _MOST_ALIGNED) -> tuple[Any, ...]:
    """Return all of a description that may decide: the alignment stands for the address."""
    pointer = info.data + info.byte_offset
    aligned = pointer & -pointer
    return aligned if aligned < most else most, info[3:]


def of_exact_key(library: str, key: tuple[Any, ...]) -> TensorInfo:
    """Return the description that a key was made of, at the least address of its alignment."""
    return TensorInfo(library, key[0], 0, *key[1])


def strides_in(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides, in elements, of a dense array whose axes have an order in memory."""
    dense = c_strides(tuple(shape[axis] for axis in axes))
    steps = dict(zip(axes, dense, strict=True))
    return tuple(steps[axis] for axis in range(len(shape)))


def dense_like(
    s: TensorInfo, dtype: DataType | None = None, axes: tuple[int, ...] | None = None
) -> TensorInfo:
    """Return the signature of a new dense array with the axes of another.

    They are in C order, or in that of `axes`, the outermost first; the dtype is the other's by
    default.
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
