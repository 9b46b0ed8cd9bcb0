"""Bytes chosen from words, by instructions that choose four bytes of eight.

Plain Python: used by the intrinsic that emits PRMT and by the tests' interpreter.
"""

from __future__ import annotations


def network(table: tuple[int, ...]) -> list[tuple[int, list[tuple[int, int]]]]:
    """Return how bytes are gathered from words: for each word of the result, a word and PRMTs.

    ``table[i]`` is the byte of the source that byte i of the result is; a multiple of 4 of them. A
    word of the result begins as a word of the source; each ``(b, selector)`` makes of it, and of
    word b of the source, the bytes of the two that the selector's nibbles name.
    """
    result = []
    for start in range(0, len(table), 4):
        chosen = table[start : start + 4]
        first, *others = dict.fromkeys(byte // 4 for byte in chosen)
        there = [byte % 4 for byte in chosen]  # which bytes of the word so far they are
        steps = []
        for word in others or [first] * (there != [0, 1, 2, 3]):
            nibbles = [
                4 + byte % 4 if byte // 4 == word else place
                for byte, place in zip(chosen, there, strict=True)
            ]
            steps.append((word, sum(nibble << 4 * place for place, nibble in enumerate(nibbles))))
            there = [0, 1, 2, 3]
        result.append((first, steps))
    return result


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
    return tuple(sorted(range(len(apart)), key=apart.__getitem__))
