"""The prose of pages, docstrings, comments and messages: turns of phrase that made readers stumble.

``python -m tests.docs.english FILE ...`` prints where a file has them, and what to write.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

from tests.support.processes import ROOT

#: What to write instead, by what was written.
TURNS = {
    r"unasked": "unless you ask for it",
    r"(shall|should) have": "gets, must have",
    r"(is|are) had": "a verb of its own",
    r"what is there already": "name it",
    r"without a word": "silently",
    r"tells?|told|telling": "report, state, show, distinguish",
    r"if need be": "if necessary",
    r"anew": "again",
    r"lest|thereof|wherefore": "so that ... not, of it",
    r"where (there (is|are)|nothing|none|no)": "if, unless, without",
    r"(is|are|was|were) of (?!(the same|type|a different|this|no|interest|order))": "has",
    r"nothing of": "no part of, none of",
    r"there is none": "name what is missing",
    r"doors?": "conversion function",
    r"the (kept|given|asked|shown|held|passed|moved|drawn|sent)"
    r"(?= ?[.,;:)]| (is|are|was|were|of|in|to|by)\b)": "a noun",
    r"(line|row|table|file|page|process|test|copy) an? (kernel|library|call|core|case)": "per",
    r"(ns|us|µs|ms|s|(micro|nano|milli)?seconds?|bytes?|MB|GB) an? "
    r"(call|kernel|process|core|element|leaf|array|conversion|row|launch|thread)": "per",
}
#: Programs, messages and pages show, state, raise or print; people say.
SAYING = {r"says?|said|saying": "show, state, raise, print, mean"}

PROSE = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "benchmarks/RESULTS.md")
READ = ("docs/*.md", "docs/*.rst", "examples/*.py", "arraybridge/*.py", "kernels/*.py")
SOURCES = ("arraybridge/*.c", "arraybridge/*.h", "benchmarks/*.py", "tests/*.py", "Makefile")


def tracked(*patterns: str) -> list[str]:
    """The files of the repository that match, without this one."""
    names = subprocess.run(
        ["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    return [name for name in names if name != "tests/docs/english.py"]


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a page; of a program its comments and what it holds as text."""
    text = path.read_text()
    if path.suffix != ".py":
        yield from enumerate(text.splitlines(), 1)
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield from enumerate(node.value.splitlines(), node.lineno)


def found(path: Path, turns: dict[str, str]) -> list[str]:
    """Each place with such a turn."""
    patterns = {re.compile(rf"\b(?:{turn})\b", re.IGNORECASE): turns[turn] for turn in turns}
    return [
        f"{path.relative_to(ROOT)}:{line}: {match.group()!r} ({remedy}): {text.strip()[:100]}"
        for line, text in prose(path)
        for pattern, remedy in patterns.items()
        for match in pattern.finditer(text)
    ]


if __name__ == "__main__":
    for name in sys.argv[1:] or tracked(*PROSE, *READ):
        for place in found(ROOT / name, TURNS | SAYING):
            sys.stdout.write(f"{place}\n")
