"""Data types: ``DLDataType`` (code, bits, lanes) with names, item sizes and the legal widths.

Source: ``DLDataTypeCode`` and ``DLDataType`` in ``dlpack.h`` 1.3; names are those of NumPy
and ml_dtypes.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from ..suggest import closest


class DataTypeCode(IntEnum):
    """The codes ``DLDataTypeCode`` of ``dlpack.h`` 1.3.

    Examples
    --------
    >>> from arraybridge import dlpack
    >>> dlpack.DataType("bfloat16").code == dlpack.DataTypeCode.BFLOAT
    True
    >>> dlpack.DataType(dlpack.DataTypeCode.FLOAT, 64)
    DataType('float64')
    """

    INT = 0
    UINT = 1
    FLOAT = 2
    OPAQUE_HANDLE = 3
    BFLOAT = 4
    COMPLEX = 5
    BOOL = 6
    FLOAT8_E3M4 = 7
    FLOAT8_E4M3 = 8
    FLOAT8_E4M3B11FNUZ = 9
    FLOAT8_E4M3FN = 10
    FLOAT8_E4M3FNUZ = 11
    FLOAT8_E5M2 = 12
    FLOAT8_E5M2FNUZ = 13
    FLOAT8_E8M0FNU = 14
    FLOAT6_E2M3FN = 15
    FLOAT6_E3M2FN = 16
    FLOAT4_E2M1FN = 17


# The widths in bits that each code may have. The header fixes fp4, fp6, fp8 and bool; the others
# are those that some library has (1 and 4: packed integers; 128: quad floats; 32: complex halves).
LEGAL_BITS: dict[int, tuple[int, ...]] = {
    DataTypeCode.INT: (1, 2, 4, 8, 16, 32, 64, 128),
    DataTypeCode.UINT: (1, 2, 4, 8, 16, 32, 64, 128),
    DataTypeCode.FLOAT: (16, 32, 64, 128),
    DataTypeCode.OPAQUE_HANDLE: (8, 16, 32, 64, 128),
    DataTypeCode.BFLOAT: (16,),
    DataTypeCode.COMPLEX: (32, 64, 128),  # 256 does not fit `bits`, a uint8
    DataTypeCode.BOOL: (8,),
    **dict.fromkeys(range(DataTypeCode.FLOAT8_E3M4, DataTypeCode.FLOAT8_E8M0FNU + 1), (8,)),
    DataTypeCode.FLOAT6_E2M3FN: (6,),
    DataTypeCode.FLOAT6_E3M2FN: (6,),
    DataTypeCode.FLOAT4_E2M1FN: (4,),
}

_BASES: dict[int, str] = {code: code.name.lower() for code in DataTypeCode}
_BASES[DataTypeCode.OPAQUE_HANDLE] = "handle"

_NAMES: dict[DataType, str] = {}  # planning needs the names of a few types again and again


class _Fields(NamedTuple):
    code: int
    bits: int
    lanes: int


class DataType(_Fields):
    """A DLPack data type, equal to the triple ``(code, bits, lanes)``.

    Pass a name, or the numbers ``code``, ``bits`` and, optionally, ``lanes``.

    Examples
    --------
    >>> from arraybridge import DataType
    >>> DataType("bfloat16") == (4, 16, 1)
    True
    >>> vector = DataType(2, 32, 4)
    >>> vector.name, vector.itemsize
    ('float32x4', 16)
    >>> packed = DataType.named("int4")
    >>> packed.subbyte, packed.nbytes(5), packed.nbytes(5, padded=True)
    (True, 3, 5)
    >>> DataType("float33")
    Traceback (most recent call last):
        ...
    ValueError: DLPack has no data type named 'float33'; it has bfloat16, ...
    """

    __slots__ = ()

    def __new__(cls, code: int | str, bits: int | None = None, lanes: int = 1) -> DataType:
        if isinstance(code, str) and bits is None:
            return cls.named(code)
        if isinstance(code, str) or bits is None:
            raise TypeError(f"DataType takes (code, bits, lanes=1) or a name, got {code!r}")
        return super().__new__(cls, code, bits, lanes)

    @classmethod
    def named(cls, name: str) -> DataType:
        """Return the data type of a name such as ``"float32"``, ``"bfloat16"`` or ``"float32x4"``.

        Raises
        ------
        ValueError
            If DLPack 1.3 has no such data type.
        """
        found = BY_NAME.get(name)
        if found is not None:
            return found
        base, _, lanes = name.rpartition("x")
        found = BY_NAME.get(base)
        if found is not None and lanes.isdecimal() and 1 < int(lanes) <= 0xFFFF:
            return cls(found.code, found.bits, int(lanes))
        guess = closest(name, BY_NAME)
        raise ValueError(
            f"DLPack has no data type named {name!r}; it has {', '.join(sorted(BY_NAME))}"
            + (f": did you mean {guess!r}?" if guess else "")
        )

    @property
    def name(self) -> str:
        """The name in NumPy or ml_dtypes; ``x4`` is appended for 4 lanes."""
        return _NAMES.get(self) or _NAMES.setdefault(self, self._spell())

    def _spell(self) -> str:
        base = _BASES.get(self.code, f"code{self.code}_")
        if not DataTypeCode.BOOL <= self.code <= DataTypeCode.FLOAT4_E2M1FN:  # codes with one width
            base += str(self.bits)
        return base if self.lanes == 1 else f"{base}x{self.lanes}"

    @property
    def itemsize(self) -> int:
        """The number of bytes of a single element: ``(bits * lanes + 7) // 8``."""
        return (self.bits * self.lanes + 7) // 8

    @property
    def subbyte(self) -> bool:
        """Whether elements of less than a byte are packed, unless a tensor is flagged as padded."""
        return self.bits * self.lanes % 8 != 0

    def nbytes(self, size: int, padded: bool = False) -> int:
        """Return the number of bytes of ``size`` compact elements.

        Sub-byte elements are packed unless ``padded`` is True.
        """
        if self.subbyte and not padded:
            return (size * self.bits * self.lanes + 7) // 8
        return size * self.itemsize

    def __dlpack_data_type__(self) -> tuple[int, int, int]:
        """Return ``(code, bits, lanes)`` as ints, by which libraries read others' dtypes.

        Source: data-apis/array-api#972, which TVM-FFI and Paddle follow.
        """
        return int(self.code), self.bits, self.lanes

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        known = (self.code, self.bits, 1) in KNOWN_DTYPES
        return f"DataType({self.name!r})" if known else f"DataType{tuple(self)}"


BY_NAME = {
    dtype.name: dtype
    for code, widths in LEGAL_BITS.items()
    for dtype in (DataType(int(code), bits) for bits in widths)
}
# The plain triple finds them too.
KNOWN_DTYPES: dict[tuple[int, int, int], DataType] = {d: d for d in BY_NAME.values()}
