"""The notebook examples/tour.ipynb: its cells run, and print the outputs that it stores.

``python -m tests.docs.test_tour`` runs it and stores the outputs.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
from typing import Any

from tests.support.optional import needs
from tests.support.processes import ROOT

NOTEBOOK = ROOT / "examples" / "tour.ipynb"
PAGE = ROOT / "docs" / "examples" / "tour.md"


def read() -> dict[str, Any]:
    return json.loads(NOTEBOOK.read_text())


def run(source: str, names: dict[str, object]) -> list[dict[str, object]]:
    """Run a cell as Jupyter does: what is printed, the value of its last line, or an error."""
    *body, last = ast.parse(source).body
    value, error, printed = None, None, io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            if isinstance(last, ast.Expr):
                exec(compile(ast.Module(body, []), "<cell>", "exec"), names)
                value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
            else:
                exec(compile(source, "<cell>", "exec"), names)
        except Exception as raised:
            error = raised
    outputs: list[dict[str, object]] = []
    if text := printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": lines(text)})
    if value is not None:
        data = {"text/plain": lines(repr(value))}
        outputs.append({"data": data, "metadata": {}, "output_type": "execute_result"})
    if error is not None:
        name, message = type(error).__name__, str(error)
        outputs.append({"ename": name, "evalue": message, "output_type": "error"})
        outputs[-1]["traceback"] = [f"{name}: {message}"]
    return outputs


def lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def ran() -> dict[str, Any]:
    """The notebook with the outputs of this run."""
    notebook, names, count = read(), {}, 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            count += 1
            cell["execution_count"] = count
            cell["outputs"] = run("".join(cell["source"]), names)
            for output in cell["outputs"]:
                if output["output_type"] == "execute_result":
                    output["execution_count"] = count
    return notebook


@needs("torch", "jax", "scipy")
def test_the_cells_print_the_stored_outputs() -> None:
    """Else: ``python -m tests.docs.test_tour``, and look at what changed."""
    for cell, now in zip(read()["cells"], ran()["cells"], strict=True):
        assert now == cell
        if cell["cell_type"] == "code":
            failed = any(output["output_type"] == "error" for output in cell["outputs"])
            assert failed == ("raises-exception" in cell["metadata"].get("tags", ())), cell["id"]


def test_the_page_has_every_cell() -> None:
    from docs.notebooks import markdown

    page = markdown(read())
    for cell in read()["cells"][1:]:
        for line in cell["source"]:
            if "](" not in line:
                assert line.strip() in page
    assert "ConversionError: gradients are tracked" in page
    assert "```{notebook} ../../examples/tour.ipynb\n```" in PAGE.read_text()


if __name__ == "__main__":
    NOTEBOOK.write_text(json.dumps(ran(), indent=1, ensure_ascii=False) + "\n")
