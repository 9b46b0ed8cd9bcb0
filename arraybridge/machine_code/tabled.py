"""Functions in LLVM IR that find everything they call in a table, so that they work anywhere.

Every function gets the address of a table of 8-byte words as its last argument, calls and reads
what stands there, and refers to nothing else: its machine code works wherever it is put. On Linux
that code is part of the package (`stored`) and only has to be mapped: no compiler is loaded.
Elsewhere llvmlite compiles the IR on the first call, in 0.1 s.
"""

from __future__ import annotations

import ctypes
import platform
import re
import sys

from arraybridge.machine_code import linker
from arraybridge.machine_code.stored import CODE

from ..named import NamedTuple

__all__ = ["Tabled", "keep"]


def keep(*objects: object) -> None:
    """Keep what native code refers to until the process ends.

    Builtins outlive the module that made them: an object that dies late at shutdown may call one.
    """
    for x in objects:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(x))


class Tabled(NamedTuple):
    """Functions and their table.

    Attributes
    ----------
    text : str
        LLVM IR in which a line names a word of the table like a function or a global variable,
        ``@word``. Such a line begins with two spaces.
    words : tuple of str
        The names of the words of the table, in order.
    entries : tuple of str
        The functions; their last parameter is ``ptr %table``.
    """

    text: str
    words: tuple[str, ...]
    entries: tuple[str, ...]

    def source(self) -> str:
        """Return the LLVM IR, with the words of the table loaded where a line names them."""
        lines = []
        for number, line in enumerate(self.text.splitlines()):
            for name in re.findall(r"@(\w+)\b", line) if line.startswith("  ") else ():
                if name in self.words:
                    place, value = f"%place.{name}.{number}", f"%{name}.{number}"
                    word = self.words.index(name)
                    lines.append(f"  {place} = getelementptr i64, ptr %table, i64 {word}")
                    lines.append(f"  {value} = load ptr, ptr {place}")
                    line = re.sub(rf"@{name}\b", value, line)
            lines.append(line)
        return "\n".join(lines)

    def loaded(self, table: int) -> dict[str, int]:
        """Load the functions for the table at an address; return their addresses.

        Raises
        ------
        ImportError
            Where there is no stored code for this machine, and no llvmlite.
        """
        return self.mapped(table) or self._compiled(table)

    def mapped(self, table: int) -> dict[str, int] | None:
        """Map the stored code; None where there is none for this machine."""
        machine = platform.machine()
        if sys.platform != "linux" or machine not in CODE or sys.byteorder != "little":
            return None
        image, offsets = bytearray(), {}
        for name in self.entries:
            image += bytes(-len(image) % 16)
            offsets[name] = len(image)
            image += _BEFORE[machine][self._place(name)] + table.to_bytes(8, "little")
            image += bytes.fromhex(CODE[machine][name])
        start = linker.mapped(bytes(image))
        return None if start is None else {name: start + at for name, at in offsets.items()}

    def _compiled(self, table: int) -> dict[str, int]:
        """Compile the IR by llvmlite."""
        text = self.source().replace(", ptr %table)", ")")
        text = text.replace("%table", f"inttoptr (i64 {table} to ptr)")
        return dict(zip(self.entries, linker.compiled(text, *self.entries), strict=True))

    def _place(self, name: str) -> int:
        """Return which of a function's arguments is the table; the first is 0."""
        (parameters,) = re.findall(rf"^define [^@]*@{name}\(([^)]*)\)", self.text, re.MULTILINE)
        return str(parameters).count(",")


# Before a function's own code, an instruction that puts the 8 bytes behind it, the address of the
# table, into the register of an argument (System V and AAPCS64: all arguments are in registers).
_BEFORE = {
    "x86_64": {  # movabs register, table
        1: bytes.fromhex("48be"),  # rsi
        2: bytes.fromhex("48ba"),  # rdx
        3: bytes.fromhex("48b9"),  # rcx
        4: bytes.fromhex("49b8"),  # r8
    },
    "aarch64": {  # ldr x, table; b code; table: ...; code:
        place: bytes([0x40 + place]) + bytes.fromhex("00005803000014") for place in (1, 2, 3, 4)
    },
}
