"""``audit``: run a program as Python would, and print what it copied."""

from __future__ import annotations

import argparse
import atexit
import builtins
import io
import os
import runpy
import sys
import traceback
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, TracebackType

from ..auditing import Audit, AuditLog, audit
from . import screen
from .screen import Status

_HERE = {__file__, runpy.__file__, "<frozen runpy>"}  # frames outside the program


def show(args: argparse.Namespace) -> int:
    """Run the program and return its exit status; the report is printed at the process's end."""
    program = [*(args.module or []), *args.program]
    if not program:
        args.fail("name a program to run: audit [options] program.py [arguments], or -m module")
    if args.module is None and not Path(program[0]).exists():
        args.fail(f"cannot open {program[0]!r}: no such file")
    if args.most < 0:
        args.fail(f"--most must be 0 or more, got {args.most}")
    file = None
    if args.json:
        file = args.json.absolute()  # the program may change the working directory
        try:
            file.touch()  # fail before the program runs
        except OSError as error:
            args.fail(f"cannot write {str(args.json)!r}: {error.strerror}")
    watch = audit(copies=args.copies, libraries=not args.bridge_only, most=args.most)
    watch.__enter__()
    # Runs after the program's threads have ended, and after its own exit handlers.
    atexit.register(_report, watch, program, file, os.getpid())
    return _run(_script if args.module is None else _module, program)


def _report(watch: Audit, program: list[str], file: Path | None, process: int) -> None:
    if os.getpid() != process:  # a forked child
        return
    watch.__exit__()
    _flush()
    log = watch.log
    if file is None:
        unseen = "(not including methods of NumPy arrays, such as x.copy())"
        head = f"copies in {' '.join(program)} {unseen}"
        room = screen.room(sys.stderr)
        print(f"\n{screen.fold(head, room) if room else head}\n{_folded(log)}", file=sys.stderr)
        return
    file.write_text(log.to_json(indent=1) + "\n")
    print(log.summary(), file=sys.stderr)


def _folded(log: AuditLog) -> str:
    """Return the table, or two lines per row if the terminal is too narrow."""
    table, room = str(log), screen.room(sys.stderr)
    if room is None or max(map(len, table.splitlines())) <= room:
        return table
    rows, more = log.rows()
    lines = [
        screen.fold(text, room)
        for nbytes, copies, calls, route, call, why, where in rows
        for text in (
            f"{where}: {nbytes} bytes, copies: {copies}, calls: {calls}",
            f"  {call}, {route}: {why}",
        )
    ]
    return "\n".join([*lines, *more, log.summary()])


def _run(run: Callable[[str], None], program: list[str]) -> int:
    """Run a program to its end; return the exit status that Python would return."""
    sys.argv = program
    try:
        run(program[0])
    except SystemExit as ended:
        return _status(ended.code)
    except KeyboardInterrupt as error:
        _flush()
        print(f"\ninterrupted{_place(error)}", file=sys.stderr)
        return Status.INTERRUPTED
    except BaseException as error:
        _print_traceback(error)
        return 1
    return 0


def _script(path: str) -> None:
    """Run a file as ``python path`` does."""
    main, place = ModuleType("__main__"), os.path.abspath(path)
    main.__file__, vars(main)["__builtins__"] = place, builtins
    if Path(path).is_dir() or zipfile.is_zipfile(path):
        runpy.run_path(path, run_name="__main__")  # puts it on sys.path
        return
    if not sys.flags.safe_path:
        sys.path[0] = str(Path(path).resolve().parent)
    sys.modules["__main__"] = main
    with io.open_code(place) as file:
        code = compile(file.read(), place, "exec", dont_inherit=True)
    exec(code, vars(main))


def _module(name: str) -> None:
    """Run a module as ``python -m name`` does."""
    if not sys.flags.safe_path:
        sys.path[0] = os.getcwd()
    runpy.run_module(name, run_name="__main__", alter_sys=True)


def _status(code: object) -> int:
    """Return Python's exit status for ``SystemExit(code)``."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    _flush()
    print(code, file=sys.stderr)
    return 1


def _print_traceback(error: BaseException) -> None:
    """Print the traceback as Python would, with only the program's frames."""
    _flush()
    error.__traceback__ = frames = _own_frames(error)
    if sys.excepthook is sys.__excepthook__:
        traceback.print_exception(error)
    else:
        sys.excepthook(type(error), error, frames)


def _place(error: BaseException) -> str:
    """Return the last line of the program that was running, as text."""
    frames = traceback.extract_tb(_own_frames(error))
    return f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""


def _own_frames(error: BaseException) -> TracebackType | None:
    frames: TracebackType | None = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename in _HERE:
        frames = frames.tb_next
    return frames


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not stream.closed:
            stream.flush()
