"""Copies between pages that fault: `tests.guarded` for as long as a test may take."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import pytest

from arraybridge.kernels.cpu import copying
from tests.guarded import Finding, fuzz
from tests.support import guarded
from tests.support.processes import ROOT, run_python


def test_drawn_copies() -> None:
    assert fuzz(0, cases=120)["cases"] == 120


@pytest.mark.heavy
@pytest.mark.parametrize("first", [0, guarded.BLOCK])
def test_many_drawn_copies(first: int) -> None:
    """About a minute of both; with the kernels of an older version it is over in seconds."""
    done = fuzz("heavy", first=first, cases=2000)
    kinds = {kind.partition(",")[0] for kind in done["kinds"]}
    assert kinds >= {"runs", "items", "tile", "split", "merge", "reverse", "fill"}


class TestWhatIsFound:
    def case(self, start: int | None) -> guarded.Case:
        given = guarded.Layout((50, 30), (30, 1), (1, 50), 1)
        return guarded.Case(
            "matrix", given, start, start, guarded.HOST, "always", "", threads=1, slice=0
        )

    @pytest.mark.parametrize("start", [None, 0, 5])
    def test_nothing_where_all_is_well(self, start: int | None) -> None:
        guarded.run(self.case(start))

    @pytest.mark.parametrize(("start", "offset"), [(None, -1), (0, 1500), (5, -1), (5, 1500)])
    def test_a_byte_too_many(self, monkeypatch, start: int | None, offset: int) -> None:
        right = copying.copy_planned

        def wrong(dst, src, plan):
            done = right(dst, src, plan)
            ctypes.memset(dst + offset, 7, 1)
            return done

        monkeypatch.setattr(copying, "copy_planned", wrong)
        with pytest.raises(AssertionError, match=rf"1 bytes are wrong, the first of them {offset}"):
            guarded.run(self.case(start))

    @pytest.mark.parametrize(
        "does",
        [
            "ctypes.string_at(Pages(99, None).address + 99, 1)",
            "ctypes.memset(Pages(99, 0).address - 1, 7, 1)",
            "p = Pages(99, 9); p.lock(); ctypes.memset(p.address, 7, 1)",
        ],
    )
    def test_a_fault_is_told_with_its_case(self, does: str, tmp_path: Path) -> None:
        (tmp_path / "sitecustomize.py").write_text(
            f"""
import ctypes
from tests.support import guarded
from tests.support.pages import Pages
def run(case):
    {does}
guarded.run = run
"""
        )
        path = os.pathsep.join([str(tmp_path), str(ROOT)])
        with pytest.raises(Finding, match=r"SIG(SEGV|BUS) in seed 5, case 31: Case\("):
            fuzz(5, first=31, cases=1, env={"PYTHONPATH": path})


def test_the_command() -> None:
    command = "-m tests.guarded --seed 3 --case 8".split()
    done = run_python(*command, cwd=ROOT, check=True)
    assert done.stdout.startswith("no finding: seed 3, 1 cases in ")
