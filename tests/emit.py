"""Write arraybridge/machine_code/stored.py from its IR: ``python -m tests.emit``.

Run it when the IR has changed; tests/test_machine_code.py tells where that was forgotten.
"""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import wrap

import llvmlite
import llvmlite.binding as llvm

from arraybridge.machine_code import arrow, blocks, front, launcher, offered, release, stored
from arraybridge.machine_code.tabled import Tabled

__all__ = ["SOURCES", "TRIPLES", "emitted", "text"]

#: The functions whose code is stored.
SOURCES = (release.CODE, launcher.CODE, blocks.CODE, front.CODE, offered.CODE, arrow.CODE)

#: What `platform.machine` says -> what LLVM is told.
TRIPLES = {"x86_64": "x86_64-unknown-linux-gnu", "aarch64": "aarch64-unknown-linux-gnu"}

_HEAD = '''"""Machine code of the IR in this folder, written by ``python -m tests.emit``."""

from __future__ import annotations

VERSION = "{version}"  # of llvmlite

CODE = {{
'''


def emitted(triple: str) -> dict[str, bytes]:
    """The machine code of each function: it is whole, and holds no address to fill in."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    code: dict[str, bytes] = {}
    for tabled in SOURCES:
        code |= _emitted(tabled, triple)
    return code


def _emitted(tabled: Tabled, triple: str) -> dict[str, bytes]:
    ir = tabled.source()
    for name in tabled.entries:  # a section each, so that each can be taken out alone
        ir = re.sub(rf"(define [^@]*@{name}\([^)]*\)) {{", rf'\1 nounwind section ".{name}" {{', ir)
    module = llvm.parse_assembly(ir)
    module.triple = triple
    module.verify()
    target = llvm.Target.from_triple(triple)
    machine = target.create_target_machine(opt=2, reloc="pic", codemodel="small")
    object_file = llvm.ObjectFileRef.from_data(machine.emit_object(module))
    sections = {}
    for section in object_file.sections():
        if section.size():
            sections[(section.name() or b"").decode()] = section.data()
    outside = {name for name in sections if name.startswith((".rel.", ".rela", ".data", ".rodata"))}
    assert not outside, f"code that is not whole without {outside}"
    return {name: sections[f".{name}"] for name in tabled.entries}


def text() -> str:
    """What stands in stored.py."""
    lines = [_HEAD.format(version=llvmlite.__version__)]
    for machine, triple in TRIPLES.items():
        lines.append(f'    "{machine}": {{\n')
        for name, code in emitted(triple).items():
            parts = [f'"{part}"' for part in wrap(code.hex(), 80)]
            if len(parts) == 1:
                lines.append(f'        "{name}": ({parts[0]}),\n')
                continue
            lines.append(f'        "{name}": (\n')
            lines += (f"            {part}\n" for part in parts)
            lines.append("        ),\n")
        lines.append("    },\n")
    return "".join([*lines, "}\n"])


if __name__ == "__main__":
    Path(stored.__file__).write_text(text())
