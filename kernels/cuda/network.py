"""Selecting bytes from words, with PRMT instructions that select four bytes of eight.

Plain Python, for the intrinsic that emits PRMT and for the interpreter of the tests.
"""


def network(table: tuple[int, ...]) -> list[tuple[int, list[tuple[int, int]]]]:
    """Return the steps that gather bytes: for each word of the result, a first word and PRMTs.

    ``table[i]`` is the source byte of byte i of the result; its length is a multiple of 4. A word
    of the result begins as a word of the source; each ``(b, selector)`` replaces it by the bytes
    that the nibbles of the selector name, in it and in word b of the source.
    """
    result = []
    for start in range(0, len(table), 4):
        chosen = table[start : start + 4]
        first, *others = dict.fromkeys(byte // 4 for byte in chosen)
        there = [byte % 4 for byte in chosen]  # their positions in the word so far
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
    """Return the table that splits interleaved channels, one vector of 16 bytes each.

    Channels of items of `width` bytes are interleaved in as many vectors of 16 bytes; `kept` are
    the wanted ones, in order.
    """
    return tuple(
        (byte // width * channels + channel) * width + byte % width
        for channel in kept
        for byte in range(16)
    )


def join_table(width: int, channels: int) -> tuple[int, ...]:
    """Return the table that interleaves channels, one vector of 16 bytes each."""
    apart = split_table(width, channels, tuple(range(channels)))
    return tuple(sorted(range(len(apart)), key=apart.__getitem__))
