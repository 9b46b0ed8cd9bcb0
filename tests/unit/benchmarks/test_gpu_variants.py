"""What the times of variants speak for: the table of tunings."""

from __future__ import annotations

import json

import pytest

from arraybridge.kernels.cuda import build
from arraybridge.kernels.cuda.tuning import CHOICES, DEFAULT
from benchmarks.gpu import kernels, report, variants
from benchmarks.gpu.record import Outcome, append
from benchmarks.gpu.variants import NOW, chosen, contenders, gains, tuned, tunings
from benchmarks.layouts import LAYOUTS

NAMES = {layout.name: layout for layout in LAYOUTS}


def row(spread=0.01, current=DEFAULT, failed=(), **seconds):
    """Seconds a copy by variant, "box=cp.async" spelled box_cp_async; of the kernel in use, 1."""
    spelled = {who: who for who in tunings(current)} | {"box": "box=cp.async"}
    times = {NOW: 1.0} | {spelled[who]: took for who, took in seconds.items()}
    return {
        "plan": "a kernel", "capability": "9.0", "current": current._asdict(), "seconds": times,
        "spread": dict.fromkeys(times, spread), "failed": dict.fromkeys(failed, "why"),
    }  # fmt: skip


def test_tunings_differ_in_one_choice():
    for current in (DEFAULT, DEFAULT._replace(box="cp.async", tile=8192)):
        found = tunings(current)
        assert found.pop(NOW) == current
        assert len(found) == sum(len(choices) - 1 for choices in CHOICES.values())
        for made in found.values():
            assert sum(a != b for a, b in zip(made, current, strict=True)) == 1


def test_every_choice_is_another_kernel_of_some_layout():
    found = {who for layout in LAYOUTS for who in contenders(layout, DEFAULT, (9, 0))}
    assert found == set(tunings(DEFAULT))


def test_contenders_run_on_the_device():
    (box,) = (one for one in LAYOUTS if one.name == "first two axes swapped")
    assert set(contenders(box, DEFAULT, (9, 0))) == {NOW, "box=cp.async"}
    assert set(contenders(box, DEFAULT, (7, 5))) == {NOW}
    for layout in LAYOUTS:
        for made in contenders(layout, DEFAULT, (7, 5)).values():
            assert all(build.capability(plan) == (7, 5) for plan in made)


def test_variants_are_compiled_ahead():
    ahead = {plan[:2] for plan in kernels.plans((9, 0))}
    for layout in LAYOUTS:
        for made in contenders(layout, DEFAULT, (9, 0)).values():
            assert {plan[:2] for plan in made} - {("memcpy", ())} <= ahead


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        ([row(box=0.95), row(box=0.94)], {"box": "cp.async"}),
        ([row(box=0.98), row(box=0.98)], {}),  # less than 3 %
        ([row(box=0.85), row(box=1.10)], {"box": "cp.async"}),  # 3.4 % in the mean
        ([row(box=0.85), row(box=1.20)], {}),
        ([row(box=0.95, spread=0.03)], {}),  # less than the spread of both
        ([row(box=0.5), row(failed=["box=cp.async"])], {}),
        ([row(box=0.5), row()], {"box": "cp.async"}),  # a layout that it is not for
        ([], {}),
    ],
)
def test_what_is_chosen(found, wanted):
    assert chosen(found) == wanted


def test_the_mean_is_geometric():
    (gain, noise, count) = gains([row(box=0.5), row(box=2.0)])["box=cp.async"]
    assert (gain, noise, count) == (pytest.approx(0), pytest.approx(0.02), 2)


def test_the_table_keeps_what_it_has():
    before = {"8.0": {"box": "cp.async"}, "9.0": {"merge": 2}}
    current = DEFAULT._replace(merge=2)
    assert tuned(before, [row(current=current, box=0.9)]) == {
        "8.0": {"box": "cp.async"}, "9.0": {"box": "cp.async", "merge": 2}
    }  # fmt: skip
    assert tuned(before, [row(current=current, box=1.1)]) == before


def test_a_default_is_not_in_the_table():
    """The choice of an earlier run is taken back."""
    current = DEFAULT._replace(box="cp.async")
    found = [row(current=current, **{"box=registers": 0.9})]
    assert tuned({"9.0": {"box": "cp.async"}}, found) == {}


def test_it_is_written_where_that_is_asked_for(tmp_path, monkeypatch, capsys):
    rows, table = tmp_path / "rows.jsonl", tmp_path / "tuning.json"
    monkeypatch.setattr(variants, "TABLE", table)
    table.write_text("{}\n")
    monkeypatch.setattr("sys.argv", ["variants", str(rows)])
    assert variants.main() == 1
    append(rows, part="variants", name="a layout", values=row(box=0.9))
    assert variants.main() == 0
    assert "box=cp.async: +11.1% on 1 layouts" in capsys.readouterr().out
    assert table.read_text() == "{}\n"
    monkeypatch.setattr("sys.argv", ["variants", str(rows), "--write-tuning"])
    assert variants.main() == 0
    assert json.loads(table.read_text()) == {"9.0": {"box": "cp.async"}}


def test_the_report_says_it():
    rows = [{"name": "a layout", "values": row(box=0.8, failed=["tile=8192"])}]
    text = "\n".join(report.variants({"variants": Outcome(rows)}))
    assert "| a layout | a kernel | box=cp.async | 1000000.0 | 800000.0 | +25.0% | 2.0% |" in text
    assert "- a layout, tile=8192: why" in text
    assert "Tunings to change: box=cp.async." in text
    assert report.variants({"variants": Outcome([])}) == []
