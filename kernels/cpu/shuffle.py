"""Vectors in LLVM IR: moves, interleaving, transposition, without loops or Numba.

Every function appends instructions with an ``llvmlite.ir.IRBuilder`` and takes addresses as 64-bit
integers. A vector has items of `width` bytes: integers, or for 16 bytes pairs of 64-bit integers,
as no instruction set shuffles 128-bit integers. Every access states an alignment of 1 byte unless
more is known: otherwise LLVM assumes the natural one and may emit vmovaps, which faults on other
addresses.

Each shuffle is one instruction on x86 and ARM: unpack (punpck, zip) within lanes of 16 bytes, moves
of whole lanes across them.
"""

from __future__ import annotations

from llvmlite import ir

INT = ir.IntType(64)
_LANE = 16  # bytes within which every x86 vector instruction shuffles


def constant(value: int) -> ir.Constant:
    """Return a 64-bit integer constant."""
    return ir.Constant(INT, value)


class Vectors:
    """Emits operations on vectors of `count` items, a power of two, of `width` bytes, 1 to 16."""

    def __init__(self, builder: ir.IRBuilder, width: int, count: int) -> None:
        self.builder = builder
        self.width = width
        self.count = count
        self.nbytes = width * count
        self.words = 2 if width == 16 else 1  # elements of the LLVM type per item
        self.type = ir.VectorType(ir.IntType(8 * width // self.words), count * self.words)

    def at(self, address: ir.Value, offset: int = 0) -> ir.Value:
        """Return the pointer to a vector `offset` bytes from an address."""
        if offset:
            address = self.builder.add(address, constant(offset))
        return self.builder.inttoptr(address, self.type.as_pointer())

    def load(self, address: ir.Value, offset: int = 0) -> ir.Value:
        return self.builder.load(self.at(address, offset), align=1)

    def store(self, value: ir.Value, address: ir.Value, offset: int = 0) -> None:
        self.builder.store(value, self.at(address, offset), align=1)

    def stream(self, value: ir.Value, address: ir.Value, offset: int = 0) -> None:
        """Store past the cache; the address is a multiple of the vector's size."""
        done = self.builder.store(value, self.at(address, offset), align=self.nbytes)
        flag = self.builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)])
        done.set_metadata("nontemporal", flag)

    def shuffle(self, low: ir.Value, high: ir.Value, items: list[int]) -> ir.Value:
        """Pick items by index: `low` has the first ``count`` indices, `high` the next."""
        picks = [item * self.words + word for item in items for word in range(self.words)]
        mask = ir.Constant(
            ir.VectorType(ir.IntType(32), len(picks)), [ir.IntType(32)(pick) for pick in picks]
        )
        return self.builder.shuffle_vector(low, high, mask)

    def reverse(self, value: ir.Value) -> ir.Value:
        return self.shuffle(value, value, list(range(self.count))[::-1])

    def transpose(self, rows: list[ir.Value]) -> list[ir.Value]:
        """Transpose ``count`` vectors: item j of vector i becomes item i of vector j."""
        near = min(self.count, max(1, _LANE // self.width))  # items per lane
        far = self.count // near  # lanes
        groups = [
            self._weave(rows[first : first + near], near, 1) for first in range(0, self.count, near)
        ]
        columns: list[ir.Value] = [None] * self.count
        for place in range(near):
            lanes = self._weave([group[place] for group in groups], self.count, near)
            for lane in range(far):
                columns[lane * near + place] = lanes[lane]
        return columns

    def _weave(self, vectors: list[ir.Value], within: int, unit: int) -> list[ir.Value]:
        """Transpose by perfect shuffles of units of `unit` items within groups of `within` items.

        Interleaving the first half of the vectors with the second, log2 of their number times, is a
        transposition; each step unpacks the low halves and the high halves.
        """
        half = len(vectors) // 2
        stage = len(vectors)
        while stage > 1:
            woven = []
            for low, high in zip(vectors[:half], vectors[half:], strict=True):
                for first in (0, within // 2):
                    picks: list[int] = []
                    for start in range(0, self.count, within):
                        for at in range(start + first, start + first + within // 2, unit):
                            picks += range(at, at + unit)
                            picks += range(at + self.count, at + self.count + unit)
                    woven.append(self.shuffle(low, high, picks))
            vectors = woven
            stage //= 2
        return vectors

    def split(self, vectors: list[ir.Value], shift: int, wanted: int) -> list[ir.Value]:
        """Split channels: output c has items c, c + n, c + 2n, ... of n consecutive vectors.

        `shift` is the position of output 0; only `wanted` outputs are made.
        """
        steps = range(0, len(vectors) * self.count, len(vectors))
        return [
            self._pick(vectors, [shift + part + step for step in steps]) for part in range(wanted)
        ]

    def merge(self, vectors: list[ir.Value]) -> list[ir.Value]:
        """Merge channels: the inverse of `split`."""
        parts, count = range(len(vectors)), self.count
        items = [part * count + item for item in range(count) for part in parts]
        return [self._pick(vectors, items[part * count :][:count]) for part in parts]

    def _pick(self, vectors: list[ir.Value], items: list[int]) -> ir.Value:
        """Pick items of any number of vectors, two vectors at a time."""
        first, *others = sorted({item // self.count for item in items})
        result, places = vectors[first], [item % self.count for item in items]
        for number in others or [first]:
            picks = [
                self.count + item % self.count if item // self.count == number else place
                for item, place in zip(items, places, strict=True)
            ]
            result, places = self.shuffle(result, vectors[number], picks), [*range(self.count)]
        return result
