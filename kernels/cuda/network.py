"""Bytes chosen from words, by instructions that choose four bytes of eight.

Plain Python: used by the intrinsic that emits PRMT and by the tests' interpreter.
"""

from __future__ import annotations

from typing import NamedTuple


class Permute(NamedTuple):
    """One PRMT: byte n of the result is the byte of ``b:a`` that nibble n of `selector` names."""

    a: int  # the word of the source that gives bytes 0 to 3; -1 for the result so far
    b: int  # the word of the source that gives bytes 4 to 7
    selector: int


def network(table: tuple[int, ...]) -> tuple[tuple[Permute, ...], ...]:
    """Return the instructions that gather bytes, a tuple of them for each word of the result.

    ``table[i]`` is the byte of the source that byte i of the result is; a multiple of 4 of them.
    The first instruction of each tuple takes two words of the source (the same word twice where one
    is enough), each further one puts another word's bytes into what there is.
    """
    result = []
    for start in range(0, len(table), 4):
        chosen = table[start : start + 4]
        words = list(dict.fromkeys(byte // 4 for byte in chosen))
        first, second = words[0], words[min(1, len(words) - 1)]
        steps = [Permute(first, second, _selector([_nibble(b, first, second) for b in chosen]))]
        for word in words[2:]:
            nibbles = [4 + b % 4 if b // 4 == word else place for place, b in enumerate(chosen)]
            steps.append(Permute(-1, word, _selector(nibbles)))
        result.append(tuple(steps))
    return tuple(result)


def _nibble(byte: int, first: int, second: int) -> int:
    """Where a byte of the source lies in the two words; 0 for one of neither, which comes later."""
    if byte // 4 == first:
        return byte % 4
    return 4 + byte % 4 if byte // 4 == second else 0


def _selector(nibbles: list[int]) -> int:
    return sum(nibble << 4 * place for place, nibble in enumerate(nibbles))


def split_table(width: int, channels: int, kept: tuple[int, ...]) -> tuple[int, ...]:
    """Return the bytes that take interleaved channels apart, a vector of 16 bytes each.

    Channels of items of `width` bytes lie interleaved in as many vectors of 16 bytes; `kept` are
    those that are wanted, in this order.
    """
    return tuple(
        (byte // width * channels + channel) * width + byte % width
        for channel in kept
        for byte in range(16)
    )


def join_table(width: int, channels: int) -> tuple[int, ...]:
    """Return the bytes that interleave channels, each a vector of 16 bytes, `width` an item."""
    apart = split_table(width, channels, tuple(range(channels)))
    together = [0] * len(apart)
    for place, byte in enumerate(apart):
        together[byte] = place
    return tuple(together)
