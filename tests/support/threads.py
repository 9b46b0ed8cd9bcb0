"""Work in several threads at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Thread
from typing import Any


def in_threads(work: Callable[[Any], object], things: Iterable[Any]) -> None:
    """Do the work on each thing in a thread of its own; an error there is the caller's."""
    errors: list[BaseException] = []

    def run(thing: Any) -> None:
        try:
            work(thing)
        except BaseException as error:
            errors.append(error)

    threads = [Thread(target=run, args=(thing,)) for thing in things]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
