"""The libraries' own functions under an audit: copies are seen, and everything is restored."""

from __future__ import annotations

import pickle
import threading
from pathlib import Path

import numpy as np
import pytest

import arraybridge as ab
from arraybridge.auditing import CopyForbiddenError, CopyWarning, functions
from arraybridge.cli import main
from tests.support.audits import check_off
from tests.support.optional import needs, optional
from tests.support.processes import run_python

torch, jax = optional("torch"), optional("jax")


@pytest.fixture(autouse=True)
def off():
    own = np.asarray
    yield
    assert np.asarray is own
    check_off()


def x() -> np.ndarray:
    return np.arange(12, dtype="f4").reshape(3, 4)


def t():
    return torch.arange(12.0).reshape(3, 4)


def j():
    return jax.numpy.arange(12.0).reshape(3, 4)


# What is called, by what name it is logged, from where to where and of what kind, what is said.
TORCH = [
    (lambda: np.array(x()), "numpy.array", "numpy numpy kernel", "whatever it is given"),
    (lambda: np.asarray(x()), "numpy.asarray", "numpy numpy view", ""),
    (lambda: np.asarray(x(), "f8"), "numpy.asarray", "numpy numpy kernel", "becomes float64"),
    (
        lambda: np.ascontiguousarray(x().T),
        "numpy.ascontiguousarray",
        "numpy numpy kernel",
        "fortran",
    ),
    (lambda: np.from_dlpack(t()), "numpy.from_dlpack", "torch numpy view", ""),
    (lambda: np.asarray(t()), "numpy.asarray", "torch numpy view", ""),
    (lambda: np.linalg.norm(t()), "torch.Tensor.__array__", "torch numpy view", ""),
    (lambda: torch.tensor(data=x()), "torch.tensor", "numpy torch kernel", "would be a view"),
    (lambda: np.array([t(), t()]), "numpy.array", "torch numpy kernel", "2 arrays become"),
    (lambda: torch.from_numpy(x()), "torch.from_numpy", "numpy torch view", ""),
    (lambda: torch.as_tensor(x()), "torch.as_tensor", "numpy torch view", ""),
    (lambda: torch.tensor(x()), "torch.tensor", "numpy torch kernel", "would be a view"),
    (lambda: t().cpu(), "torch.Tensor.cpu", "torch torch view", ""),
    (lambda: t().T.numpy(), "torch.Tensor.numpy", "torch numpy view", ""),
    (lambda: t().contiguous(), "torch.Tensor.contiguous", "torch torch view", ""),
    (lambda: t().T.contiguous(), "torch.Tensor.contiguous", "torch torch kernel", "is fortran"),
    (lambda: t().to(torch.float64), "torch.Tensor.to", "torch torch kernel", "becomes float64"),
    (lambda: torch.Tensor.to(t(), "cpu"), "torch.Tensor.to", "torch torch view", ""),
]
JAX = [
    (lambda: jax.numpy.asarray(x()), "jax.numpy.asarray", "numpy jax kernel", "never change"),
    (lambda: jax.device_get(j()), "jax.device_get", "jax numpy view", ""),
    (lambda: np.asarray(j()), "numpy.asarray", "jax numpy view", ""),
    (lambda: np.array(j()), "numpy.array", "jax numpy kernel", "would be a view"),
]
CASES = [pytest.param(*case, marks=needs("torch"), id=f"torch{n}") for n, case in enumerate(TORCH)]
CASES += [pytest.param(*case, marks=needs("jax"), id=f"jax{n}") for n, case in enumerate(JAX)]


@pytest.mark.parametrize(("function", "call", "route", "why"), CASES)
def test_doors(function, call, route, why) -> None:
    before = function()
    with ab.audit(libraries=True) as logged:
        after = function()
    assert type(after) is type(before)
    assert np.array_equal(np.asarray(after), np.asarray(before))
    record = logged.records[-1]  # making the array may be one, too
    assert (record.call, f"{record.source} {record.target} {record.kind}") == (call, route)
    assert why in record.why
    assert record.file == __file__
    size = np.asarray(after).nbytes
    assert record.nbytes == (size if record.kind == "kernel" else 0)
    if record.kind == "kernel":
        with ab.audit(libraries=True, copies="forbid"), pytest.raises(CopyForbiddenError):
            function()
        with ab.audit(libraries=True, copies="warn"), pytest.warns(CopyWarning) as told:
            function()
        assert told[-1].filename == __file__


def test_numbers_are_made_and_not_copied() -> None:
    with ab.audit(libraries=True, copies="forbid") as logged:
        np.array([1, 2, 3])
        np.asarray(1.5)
        np.array([[1, 2], [3, 4]])
        np.array(np.float64(1))
        np.array([])
    assert not len(logged)


@needs("torch")
def test_what_the_bridge_does_is_noted_once() -> None:
    array = ab.from_dlpack(t().T)
    with ab.audit(libraries=True) as logged:
        np.asarray(array)
        ab.convert(x(), "torch", copy=True)
        ab.contiguous(t().T)
        torch.from_dlpack(array)
    calls = ["numpy.asarray", "convert", "contiguous", "torch.from_dlpack"]
    assert [record.call for record in logged] == calls


@needs("torch")
def test_what_libraries_do_for_themselves_is_not_noted() -> None:
    with ab.audit(libraries=True) as logged:
        torch.nn.Linear(4, 2)(t())
        torch.nn.Linear(4, 2).to(torch.float64)
        np.testing.assert_array_equal(x(), x())
    assert not len(logged)


@needs("torch")
def test_other_threads() -> None:
    with ab.audit(libraries=True) as logged:
        thread = threading.Thread(target=lambda: t().T.contiguous(), name="another")
        thread.start()
        thread.join()
    assert [record.thread for record in logged] == ["another"]


def test_a_stand_in_equals_what_it_stands_for() -> None:
    own = np.asarray
    with ab.audit(libraries=True):
        stand_in = np.asarray
        assert stand_in is not own
        assert stand_in == own
        assert hash(stand_in) == hash(own)
        assert stand_in.__name__ == "asarray"
        assert (stand_in.__doc__, stand_in.__module__) == (own.__doc__, own.__module__)
        assert repr(stand_in) == repr(own)
        assert pickle.loads(pickle.dumps(stand_in)) is stand_in
        kept = pickle.dumps(stand_in)
    assert pickle.loads(kept) is own
    given = x()
    assert stand_in(given) is given  # of one that somebody kept


@needs("torch")
def test_methods_are_where_they_were() -> None:
    before = {name: vars(torch.Tensor).get(name) for name in ("cpu", "contiguous", "__array__")}
    with ab.audit(libraries=True):
        with ab.audit(libraries=True):
            assert torch.Tensor.cpu is not before["cpu"]
        assert isinstance(vars(torch.Tensor)["cpu"], functions._Watched)
    assert {name: vars(torch.Tensor).get(name) for name in before} == before


@needs("torch")
def test_subclasses_and_modes_see_the_functions_that_they_know() -> None:
    seen = []

    class Own(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func in {torch.Tensor.contiguous: 1})
            return super().__torch_function__(func, types, args, kwargs or {})

    own = t().as_subclass(Own)
    with ab.audit(libraries=True):
        own.contiguous()
    assert seen[0]
    result = torch.func.vmap(lambda v: v.contiguous() * 2)
    grad = torch.func.grad(lambda v: v.to(torch.float64).sum())
    before = result(t().T), grad(t())
    with ab.audit(libraries=True) as logged:
        after = result(t().T), grad(t())
        torch.empty(2, 3, device="meta").T.contiguous()
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))
    assert logged.unchecked >= 1
    assert "could not be checked" in str(logged)


@needs("numba")
def test_numbas_compiler_knows_them() -> None:
    import numba

    with ab.audit(libraries=True):

        @numba.njit
        def function(x):
            return np.ascontiguousarray(x.T)[0, 1] + np.asarray(x).sum() + np.array([1.0]).sum()

        assert function(np.ones((2, 3))) == 8.0


@needs("jax")
def test_while_jax_traces() -> None:
    with ab.audit(libraries=True):
        made = jax.jit(lambda v: jax.numpy.asarray(v) + 1)(x())
    assert np.array_equal(made, x() + 1)


@needs("torch")
def test_a_library_that_is_imported_inside() -> None:
    program = """
import arraybridge as ab, sys
assert "torch" not in sys.modules
with ab.audit(libraries=True) as log:
    finders = [*sys.meta_path]
    import numpy as np, torch
    assert finders == sys.meta_path
    torch.tensor(np.ones(3))
    t = ab.convert(np.ones((3, 4))[:, ::-1], "torch")
    a = ab.from_dlpack(t)
    torch.from_dlpack(a)
    import arraybridge.xp.torch as xp
    xp.asarray(a, copy=True)
    ab.namespace(t).asarray(t, copy=True)
print(*(record.call for record in log))
assert not hasattr(torch.tensor, "__wrapped__")
torch.tensor(np.ones(3)), xp.asarray(a, copy=True), ab.convert(t, "numpy")
assert torch.from_dlpack(a).data_ptr() == t.data_ptr()
assert len(log) == 6
from tests.support.audits import check_off
check_off()
"""
    done = run_python("-c", program)
    assert done.returncode == 0, done.stderr


# -- python -m arraybridge audit

PROGRAM = """
import atexit, pickle, sys, threading
import numpy as np
import arraybridge as ab
from concurrent.futures import ThreadPoolExecutor
class Mine:
    pass
x = np.ones((3, 4))[:, ::-1]
def late():
    import time
    time.sleep(0.2)
    np.array(x)
def main():
    ab.contiguous(x)
    threading.Thread(target=late).start()
    assert type(pickle.loads(pickle.dumps(Mine()))) is Mine
    print(__name__, __file__, sys.argv, sys.path[0])
    if "raise" in sys.argv:
        raise ValueError("wrong")
    if "status" in sys.argv:
        sys.exit(7)
    if "text" in sys.argv:
        sys.exit("the end")
pool = ThreadPoolExecutor(1)
pool.submit(int)
atexit.register(np.array, x[0])
if __name__ == "__main__":
    main()
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def run(program: Path, *args: str, audited: bool = True):
    command = ["-m", "arraybridge", "audit"] if audited else []
    done = run_python(*command, *args, cwd=program.parent)
    out, _, report = done.stderr.partition("\ncopies in ")
    return done.returncode, done.stdout, out, report


@pytest.mark.parametrize(("how", "module"), [("raise", False), ("text", False), ("status", True)])
def test_a_program_runs_as_it_does_without(program: Path, how: str, module: bool) -> None:
    args = ["-m", "program"] if module else ["program.py"]
    args += ["--json", "no option of ours", how]
    *plain, _ = run(program, *args, audited=False)
    *audited, report = run(program, *args)
    assert audited == plain
    assert "the layout is negative" in report
    assert "not including methods of NumPy arrays, such as x.copy()" in " ".join(report.split())
    assert "3 routes, 3 copies of 224 bytes" in report  # of the thread, and at exit
    assert report.count("program.py:") == 2
    assert report.count("<python>:0") == 1


def test_json_and_the_bridge_alone(program: Path) -> None:
    import json

    status, _, err, report = run(program, "--json", "copies.json", "--bridge-only", "program.py")
    assert (status, report) == (0, "")
    assert err == "1 route, 1 copy of 96 bytes\n"
    told = json.loads((program.parent / "copies.json").read_text())
    assert [record["call"] for record in told["records"]] == ["contiguous"]
    assert told["records"][0]["function"] == "main"


def test_the_file_is_where_it_was_asked_for(program: Path) -> None:
    (program.parent / "elsewhere").mkdir()
    program.write_text("import os; os.chdir('elsewhere')")
    assert run(program, "--json", "copies.json", "program.py")[0] == 0
    assert (program.parent / "copies.json").read_text()
    status, out, err, _ = run(program, "--json", "nowhere/copies.json", "program.py")
    assert (status, out) == (2, "")  # before the program runs
    assert "cannot write 'nowhere/copies.json': No such file" in " ".join(err.split())


def test_forbidden_and_warned(program: Path) -> None:
    status, _, err, report = run(program, "--copies", "forbid", "program.py")
    assert status == 1
    assert "CopyForbiddenError: contiguous copies 96 bytes" in err
    status, _, err, report = run(program, "--copies", "warn", "program.py")
    assert status == 0
    assert "program.py:14: CopyWarning: contiguous copies" in err
    assert report


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "name a program to run"),
        (["nothing.py"], "cannot open 'nothing.py'"),
        (["--most", "-1", "program.py"], "--most must be 0 or more"),
        (["--copies", "no", "program.py"], "invalid choice"),
    ],
)
def test_wrong_command_lines(program, monkeypatch, capsys, args, message) -> None:
    monkeypatch.chdir(program.parent)
    with pytest.raises(SystemExit, match="2"):
        main(["audit", *args])
    assert message in capsys.readouterr().err
