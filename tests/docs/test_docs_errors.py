"""docs/start/errors.md has every message of arraybridge, as arraybridge words it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import arraybridge as ab
from tests.docs.test_docs import DOCS
from tests.docs.test_remedies import ARROW, ROWS, UNWRITABLE, refusal
from tests.support.optional import needs

PAGE = DOCS / "start" / "errors.md"
PACKAGE = Path(ab.__file__).parent
HEADINGS = re.findall(r"^### (.*)$", PAGE.read_text(), re.MULTILINE)
RARER = re.findall(r"^- ((?:`[^`]+`(?:, )?)+): ", PAGE.read_text(), re.MULTILINE)


def patterns(heading: str) -> list[re.Pattern[str]]:
    """What a heading stands for: one or more messages' beginnings, in which ... is any text."""
    return [
        re.compile(".+".join(map(re.escape, text.split("..."))), re.DOTALL)
        for text in re.findall(r"`(.+?)`(?=,|$)", heading)
    ]


KNOWN = [pattern for heading in [*HEADINGS, *RARER] for pattern in patterns(heading)]


def is_known(message: str) -> bool:
    return any(pattern.match(message) for pattern in KNOWN)


def sections() -> dict[str, str]:
    """The text below each heading of a message."""
    parts = re.split(r"^##+ (.*)$", PAGE.read_text(), flags=re.MULTILINE)
    return {
        name: text for name, text in zip(parts[1::2], parts[2::2], strict=True) if name in HEADINGS
    }


@pytest.mark.parametrize("heading", HEADINGS)
def test_each_message_is_shown(heading):
    """The block below a heading, which test_docs runs, ends in the message."""
    if "module 'arraybridge' has no attribute" in heading:
        return  # of another project
    text = sections()[heading]
    shown = re.findall(r"^(?:[\w.]+Error): (.*)$", text, re.MULTILINE)
    assert any(pattern.match(each) for pattern in patterns(heading) for each in shown)


@pytest.mark.filterwarnings("ignore")
@needs("torch")
def test_each_refusal_of_the_remedies_is_told_of():
    arrow = [(make, "numpy") for make in ARROW.values()]
    messages = [refusal(make(), to) for make, to in (*ROWS, *arrow)]
    for make, _, src in UNWRITABLE.values():
        with pytest.raises(ab.ConversionError) as caught:
            ab.copyto(make(), src)
        messages.append(str(caught.value))
    assert [message for message in messages if message and not is_known(message)] == []


def wording(node: ast.expr) -> str:
    """The text of a string's expression, with X for what is put into it."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(wording(part) for part in node.values)
    if isinstance(node, ast.BinOp):
        return wording(node.left) + wording(node.right)
    return "X"


def strings(of: Callable[[ast.AST], list[ast.expr]]) -> set[tuple[str, str]]:
    """(place, wording) of the strings that ``of`` finds in the package, node by node."""
    return {
        (f"{path.relative_to(PACKAGE)}:{text.lineno}", wording(text))
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for text in of(node)
    }


def raised(node: ast.AST) -> list[ast.expr]:
    """The text of a ConversionError, unless it is made elsewhere (X, or X and a remedy)."""
    if not (isinstance(node, ast.Call) and getattr(node.func, "id", "") == "ConversionError"):
        return []
    return [text for text in node.args[:1] if re.search(r"\w{4}", wording(text).partition(":")[0])]


def anywhere(node: ast.AST) -> list[ast.expr]:
    return [node] if isinstance(node, ast.JoinedStr | ast.Constant) else []


def test_each_refusal_of_the_source_is_told_of():
    found = strings(raised)
    assert len(found) > 60  # or the search itself is broken
    assert sorted((place, text) for place, text in found if not is_known(text)) == []


def test_no_rarer_message_is_of_the_past():
    found = [text for _, text in strings(anywhere)]
    past = [row for row in RARER if not any(p.match(t) for p in patterns(row) for t in found)]
    assert past == []
