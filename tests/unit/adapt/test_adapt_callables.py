"""adapt: each kind of callable stays what it is."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import inspect
import math
import typing
import weakref

import jax
import numpy as np
import pytest
import scipy.special

import arraybridge as ab
from tests.support.optional import optional
from tests.unit.adapt.test_adapt import Pair, fill

torch = optional("torch")


@pytest.fixture(params=["", "a"], ids=["generator", "asynchronous"])
def step(request):
    """Call a method of a generator, or that of an asynchronous one and wait for it."""

    async def awaited(method, args):
        return await method(*args)

    with asyncio.Runner() as runner:

        def step(generator, name, *args):
            method = getattr(generator, request.param + name)
            return runner.run(awaited(method, args)) if request.param else method(*args)

        step.asynchronous = bool(request.param)
        yield step


class TestKinds:
    """Each kind of function stays what it is."""

    def test_names(self):
        @ab.adapt("numpy")
        def function(x: np.ndarray, *, axis: int = 0) -> np.ndarray:
            """Its own words."""
            return x.sum(axis=axis)

        plain = function.__wrapped__
        assert function.__name__ == "function"
        assert function.__doc__ == "Its own words."
        assert function.__qualname__.endswith("test_names.<locals>.function")
        assert function.__module__ == __name__
        assert inspect.signature(function) == inspect.signature(plain)
        assert typing.get_type_hints(function) == typing.get_type_hints(plain)
        plain.mark = 1
        assert ab.adapt("numpy")(plain).mark == 1

    @pytest.mark.parametrize("decorate", [ab.adapt, ab.adapt(), ab.adapt(np), ab.adapt("numpy")])
    def test_with_and_without_call(self, decorate):
        @decorate
        def function(x):
            return type(x), x + 1

        seen, result = function(torch.ones(2))
        assert seen is np.ndarray
        assert result.tolist() == [2, 2]

    def test_other_callables(self):
        t = torch.ones(3)
        assert ab.adapt(functools.partial(np.add, 1))(t).tolist() == [2, 2, 2]
        assert ab.adapt(functools.partial(np.add, 1)).__name__ == "add"
        assert ab.adapt("numpy")(scipy.special.erf).__name__ == "erf"
        assert ab.adapt(fill).__name__ == "fill"
        assert ab.adapt(fill).__wrapped__ is fill

        class Callable:
            def __call__(self, x):
                return x + 1

            def method(self, x):
                return x + 2

        assert ab.adapt(Callable())(t).tolist() == [2, 2, 2]
        assert ab.adapt(Callable()).__name__ == "Callable"
        assert ab.adapt(Callable().method)(t).tolist() == [3, 3, 3]
        assert ab.adapt(np.ndarray.tolist)(t) == [1, 1, 1]
        assert ab.adapt("torch")(torch.nn.ReLU())(-np.ones(2)).tolist() == [0, 0]

    def test_methods(self):
        t = torch.ones(2)
        pair = Pair(t, t)
        result = pair.plus(t)
        assert pair.a is t
        assert pair.seen is torch.Tensor
        assert result.tolist() == [3, 3]
        assert pair.plus(Pair(t, t)).tolist() == [3, 3]
        assert pair.total.tolist() == [2, 2]

        class Child(Pair):
            pass

        child = Child(t, t)
        child.plus(t)
        assert child.seen is torch.Tensor

    def test_static_and_class_methods(self):
        t = torch.ones(2)
        for owner in (Pair, Pair(t, t)):
            assert owner.above(Pair(t, t))[0] is np.ndarray
            assert owner.below(t)[0] is np.ndarray
            for method in (owner.above_class, owner.below_class):
                cls, seen, result = method(t)
                assert (cls, seen) == (Pair, np.ndarray)
                assert result.tolist() == [2, 2]
        assert type(vars(Pair)["above"]) is staticmethod
        assert type(vars(Pair)["above_class"]) is classmethod

    def test_coroutine_functions(self):
        @ab.adapt("numpy")
        async def function(x):
            await asyncio.sleep(0)
            return type(x), x + 1

        class Callable:
            async def __call__(self, x):
                return x + 1

        assert inspect.iscoroutinefunction(function)
        seen, result = asyncio.run(function(torch.ones(2)))
        assert seen is np.ndarray
        assert result.tolist() == [2, 2]
        adapted = ab.adapt(Callable())
        assert inspect.iscoroutinefunction(adapted)
        assert type(asyncio.run(adapted(torch.ones(2)))) is torch.Tensor
        assert inspect.iscoroutinefunction(ab.adapt(functools.partial(function)))

    def test_generator_functions(self, step):
        closed = []

        @ab.adapt("numpy")
        def running(x):
            try:
                while x is not None:
                    assert type(x) is np.ndarray
                    try:
                        x = yield {"doubled": x * 2}
                    except KeyError as error:
                        x = yield str(error)
                return np.zeros(1)
            finally:
                closed.append(True)

        @ab.adapt("numpy")
        async def asynchronously(x):
            try:
                while x is not None:
                    assert type(x) is np.ndarray
                    await asyncio.sleep(0)
                    try:
                        x = yield {"doubled": x * 2}
                    except KeyError as error:
                        x = yield str(error)
            finally:
                closed.append(True)

        assert inspect.isgeneratorfunction(running)
        assert inspect.isasyncgenfunction(asynchronously)

        def started():
            generator = (asynchronously if step.asynchronous else running)(torch.ones(2))
            assert step(generator, "send", None)["doubled"].tolist() == [2, 2]
            return generator

        generator = started()
        assert (
            inspect.isasyncgen(generator) if step.asynchronous else inspect.isgenerator(generator)
        )
        sent = step(generator, "send", jax.numpy.full(2, 3.0))
        assert type(sent["doubled"]) is torch.Tensor
        assert sent["doubled"].tolist() == [6, 6]
        assert step(generator, "throw", KeyError("k")) == "'k'"
        with pytest.raises((StopIteration, StopAsyncIteration)) as stop:
            step(generator, "send", None)
        assert step.asynchronous or type(stop.value.value) is torch.Tensor
        assert closed == [True]
        step(started(), "close")
        assert len(closed) == 2
        with pytest.raises(OSError, match="passes"):
            step(started(), "throw", OSError("passes"))
        assert len(closed) == 3
        with pytest.raises(ab.ConversionError, match="detach"):
            step(started(), "send", torch.ones(2, requires_grad=True))
        assert len(closed) == 4

    def test_what_is_sent_comes_back_itself_and_is_not_kept(self):
        @ab.adapt("numpy")
        def echo(x):
            while True:
                x = yield x

        first = torch.ones(1)
        generator = echo(first)
        assert next(generator) is first
        for _ in range(3):
            sent = torch.ones(2)
            assert generator.send(sent) is sent
        assert len(generator.gi_frame.f_locals["call"].arguments) == 2

    @pytest.mark.parametrize("kind", ["generator", "asynchronous"])
    def test_what_was_thrown_leaves_no_cycle(self, kind):
        @ab.adapt("torch")
        def running(x):
            yield x

        @ab.adapt("torch")
        async def asynchronously(x):
            yield x

        async def main(generator):
            await anext(generator)
            with contextlib.suppress(OSError):
                await generator.athrow(OSError)

        x = np.ones(2)
        gone = weakref.ref(x)
        gc.disable()
        try:
            if kind == "generator":
                generator = running(x)
                next(generator)
                with contextlib.suppress(OSError):
                    generator.throw(OSError)
                del generator
            else:
                asyncio.run(main(asynchronously(x)))
            del x
            assert gone() is None
        finally:
            gc.enable()

    def test_recursion_and_errors_pass(self):
        @ab.adapt
        def factorial(x, n):
            return x if n < 2 else n * factorial(x, n - 1)

        assert factorial(torch.ones(1), 5).item() == math.factorial(5)
        with pytest.raises(ZeroDivisionError):
            ab.adapt(lambda x: 1 / 0)(torch.ones(1))
