"""Classes that are made at run time are collected, whatever was done with their instances."""

from __future__ import annotations

import gc
import weakref
from dataclasses import dataclass

import numpy as np

import arraybridge as ab
from arraybridge.core.registry import TypeCache
from tests.support.exporters import Exported
from tests.support.optional import optional

torch = optional("torch")


def _used() -> list[weakref.ref]:
    """References to classes of each kind whose instances went everywhere."""

    class Array(np.ndarray):
        pass

    class Tensor(torch.Tensor):
        pass

    class Producer(Exported):
        def __dlpack__(self, *, stream=None):  # knows no max_version
            return super().__dlpack__()

    @dataclass
    class Tree:
        x: object

    class Pair(tuple):
        __slots__ = ()

    array = np.arange(6.0).view(Array)
    tensor = torch.ones(3).as_subclass(Tensor)
    producer = Producer(ab.dlpack.acquire(np.arange(6.0)))
    first = ab.adapt("numpy")(lambda tree: tree)
    for x in (array, producer, tensor):
        for _ in range(2):
            ab.convert(x, "torch")
            ab.convert(x, "numpy")
            ab.from_dlpack(x)
            ab.contiguous(x)
            first(Tree(x)), first(Pair((x,)))
    for x in (array, tensor):
        ab.namespace(x)
    ab.unify(array, tensor)
    return [weakref.ref(cls) for cls in (Array, Tensor, Producer, Tree, Pair)]


def test_classes_of_every_kind_are_collected():
    for _ in range(3):
        _used()
    left = [ref for _ in range(60) for ref in _used()]
    gc.collect()
    assert sum(ref() is not None for ref in left) == 0


def test_what_is_found_while_all_is_forgotten_is_not_kept():
    """A library that another thread registers meanwhile was not asked."""
    asked = []

    def find(cls):
        asked.append(cls)
        if len(asked) == 1:
            cache.clear()
        return len(asked)

    cache = TypeCache(find)
    assert [cache[int] for _ in range(3)] == [1, 2, 2]
    asked.clear()
    passing = type("Passing", (), {})
    assert [cache[passing] for _ in range(3)] == [1, 2, 2]
