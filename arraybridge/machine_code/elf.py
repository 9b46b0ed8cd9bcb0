"""Object code of this machine becomes functions without a linker: x86-64, Linux.

What LLVM makes of a kernel is one piece of code, its constants, and the addresses of a few C
functions, each of them eight bytes to fill in. To import llvmlite for that takes 40 ms, to start
LLVM's linker in it as much again. Whatever else an object file may hold is left to that linker.

That one believes what it reads, and ends the process where an object file is cut short: `is_whole`
says whether all that the headers name lies within the file.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from struct import Struct, error

from arraybridge.machine_code import memory

__all__ = ["is_whole", "linked"]

# The ELF standard's Elf64_Ehdr, Elf64_Shdr, Elf64_Sym and Elf64_Rela.
_HEADER = Struct("<16sHHIQQQIHHHHHH")
_SECTION = Struct("<IIQQQQIIQQ")
_SYMBOL = Struct("<IBBHQQ")
_RELOCATION = Struct("<QQq")
_WORD = Struct("<Q")

_X86_64, _RELOCATABLE = 62, 1
_SYMTAB, _STRTAB, _RELA, _NOBITS = 2, 3, 4, 8
_ALLOCATED, _WRITABLE = 2, 1
_UNDEFINED, _RESERVED = 0, 0xFF00
_PAGE = 1 << 16  # the largest alignment of a section that a linker has to know
_R_X86_64_64 = 1


class _Unknown(Exception):
    """Something that is left to LLVM's linker."""


def is_whole(code: bytes) -> bool:
    """Whether an ELF file has all that its headers say that it has.

    Of a system whose object files have another format, True.
    """
    if sys.platform in ("darwin", "win32"):
        return True
    try:
        ident, kind, *_, at, _, _, _, _, size, count, naming = _HEADER.unpack_from(code)
        if ident[:6] != b"\x7fELF\2\1" or size != _SECTION.size or naming >= count:
            return False
        sections = [_SECTION.unpack_from(code, at + size * index) for index in range(count)]
    except (error, OverflowError):
        return False
    return all(
        align <= _PAGE and (section == _NOBITS or at + size <= len(code))
        for _, section, _, _, at, size, _, _, align, _ in sections
    ) and (kind != _RELOCATABLE or all(_is_sound(code, each, sections) for each in sections))


def _is_sound(code: bytes, section: tuple[int, ...], sections: list[tuple[int, ...]]) -> bool:
    """Whether what the entries of a section of an object file refer to is there."""
    _, kind, _, _, at, size, link, info, _, entry = section
    if kind == _STRTAB:
        return not size or code[at + size - 1] == 0
    if kind not in (_SYMTAB, _RELA):
        return True
    form = _SYMBOL if kind == _SYMTAB else _RELOCATION
    if entry != form.size or size % entry or max(link, info * (kind == _RELA)) >= len(sections):
        return False
    entries, linked_to = form.iter_unpack(code[at : at + size]), sections[link][5]
    if kind == _RELA:
        target = sections[info][5]
        return all(
            to + 4 <= target and (what >> 32) * _SYMBOL.size < linked_to for to, what, _ in entries
        )
    return all(
        name < linked_to
        and (within >= _RESERVED or (within < len(sections) and value <= sections[within][5]))
        for name, _, _, within, value, _ in entries
    )


def linked(code: bytes, names: tuple[str, ...], calls: frozenset[str]) -> list[int] | None:
    """Link an object file.

    Parameters
    ----------
    code : bytes
        Of the ELF format.
    names : tuple of str
        The functions to find.
    calls : frozenset of str
        The functions of the C library that the code may call.

    Returns
    -------
    list of int or None
        Their addresses; None where the code, or the machine, is none that is known here.
    """
    if sys.platform != "linux" or platform.machine() != "x86_64" or code[:4] != b"\x7fELF":
        return None
    try:
        return _linked(code, names, calls)
    except (_Unknown, error, LookupError, AttributeError, ValueError, OverflowError):
        return None


def _linked(code: bytes, names: tuple[str, ...], calls: frozenset[str]) -> list[int] | None:
    _, kind, machine, *_, at, _, _, _, _, size, count, naming = _HEADER.unpack_from(code)
    if (kind, machine, size) != (_RELOCATABLE, _X86_64, _SECTION.size):
        raise _Unknown
    sections = [_SECTION.unpack_from(code, at + size * index) for index in range(count)]
    image, places = _laid_out(code, sections, naming)
    (table,) = (section for section in sections if section[1] == _SYMTAB)
    symbols = [
        _SYMBOL.unpack_from(code, place)
        for place in range(table[4], table[4] + table[5], _SYMBOL.size)
    ]
    strings = sections[table[6]][4]

    def offset(number: int) -> int:
        """Return where in the image a symbol is."""
        _, _, _, section, value, _ = symbols[number]
        return places[section] + int(value)

    fills = []  # where in the image; address, or offset in the image
    for section in sections:
        if section[1] == _RELA and section[7] in places:
            base = places[section[7]]
            for place in range(section[4], section[4] + section[5], _RELOCATION.size):
                to, info, addend = _RELOCATION.unpack_from(code, place)
                if info & 0xFFFFFFFF != _R_X86_64_64:
                    raise _Unknown
                name, _, _, within, _, _ = symbols[info >> 32]
                if within == _UNDEFINED:
                    fills.append((base + to, _of_c(_text(code, strings + name), calls), False))
                else:
                    fills.append((base + to, offset(info >> 32) + addend, True))
    found = {
        _text(code, strings + symbol[0]): offset(number)
        for number, symbol in enumerate(symbols)
        if symbol[3] in places and symbol[0]
    }
    offsets = [found[name] for name in names]
    start = memory.reserve(len(image))
    if start is None:
        return None
    for to, value, inside in fills:
        _WORD.pack_into(image, to, value + start if inside else value)
    if not memory.fill(start, bytes(image)):
        return None
    return [start + at for at in offsets]


def _laid_out(
    code: bytes, sections: list[tuple[int, ...]], naming: int
) -> tuple[bytearray, dict[int, int]]:
    """Put code and constants one behind the other; return where each section begins."""
    image, places = bytearray(), {}
    for number, (name, kind, flags, _, at, size, _, _, align, _) in enumerate(sections):
        if not flags & _ALLOCATED or _text(code, sections[naming][4] + name) == ".eh_frame":
            continue  # no exception passes through a kernel
        if flags & _WRITABLE or kind == _NOBITS:
            raise _Unknown
        image += bytes(-len(image) % max(align, 1))
        places[number] = len(image)
        image += code[at : at + size]
    return image, places


def _text(code: bytes, at: int) -> str:
    return code[at : code.index(b"\0", at)].decode()


def _of_c(name: str, calls: frozenset[str]) -> int:
    if name not in calls:
        raise _Unknown
    return ctypes.cast(getattr(ctypes.CDLL(None), name), ctypes.c_void_p).value or 0
