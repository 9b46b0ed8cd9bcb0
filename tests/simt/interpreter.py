"""Kernels run from their syntax trees, all threads in lockstep.

Each node becomes a closure ``(names, mask) -> value`` once per function; see `values` for what
these are. A condition that is an array runs both branches, each under a mask. Statements give the
mask of the threads that have not returned, or `GONE` where all have.
"""

from __future__ import annotations

import ast
import contextlib
import linecache
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import numpy as np

from .values import BINARY, BUILTINS, COMPARED, UNARY, Fault, Op, constant, merged, number, parted

__all__ = ["call", "device"]

#: What the statements after a ``return`` of every thread are given for a mask.
GONE: Any = object()
RESULT = "return"  # no name that a function could have


class Prepared(NamedTuple):
    """A function's parameters, the names that it takes from outside, and its body."""

    parameters: tuple[str, ...]
    free: tuple[str, ...]
    body: Callable[[dict[str, Any], Any], Any]


def device(function: FunctionType) -> Op:
    """A function that kernels call: interpreted as they are, under the caller's mask."""

    def apply(mask: Any, where: str, *values: Any) -> Any:
        try:
            return call(function, values, mask)
        except Fault as fault:
            raise type(fault)(f"{fault}, called at {where}") from None

    return Op(function.__name__, apply)


def call(function: FunctionType, values: tuple[Any, ...], mask: Any) -> Any:
    """Run a function of a kernel for the threads of a mask."""
    made = prepared(function.__code__)
    names = _outer(function, made.free)
    names.update(zip(made.parameters, values, strict=True))
    made.body(names, mask)
    return names.get(RESULT)


def _outer(function: FunctionType, free: tuple[str, ...]) -> dict[str, Any]:
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    names = {}
    for name in free:
        if name in cells:
            with contextlib.suppress(ValueError):  # of a factory's branch that was not taken
                names[name] = cells[name].cell_contents
        elif name in function.__globals__:
            names[name] = function.__globals__[name]
        elif name in BUILTINS:
            names[name] = BUILTINS[name]
    return names


_prepared: dict[CodeType, Prepared] = {}
_trees: dict[str, dict[tuple[str, int], ast.FunctionDef]] = {}


def prepared(code: CodeType) -> Prepared:
    """Return the closures of a function, made once."""
    made = _prepared.get(code)
    if made is None:
        made = _prepared[code] = _Builder(code.co_filename).function(_tree(code))
    return made


def _tree(code: CodeType) -> ast.FunctionDef:
    found = _trees.get(code.co_filename)
    if found is None:
        module = ast.parse("".join(linecache.getlines(code.co_filename)))
        found = _trees[code.co_filename] = {
            (node.name, min([node.lineno, *(one.lineno for one in node.decorator_list)])): node
            for node in ast.walk(module)
            if isinstance(node, ast.FunctionDef)
        }
    return found[code.co_name, code.co_firstlineno]


class _Builder:
    """Makes the closures of the functions of one file; only of what kernels are made of."""

    def __init__(self, filename: str) -> None:
        self.file = Path(filename).name

    def where(self, node: Any) -> str:
        return f"{self.file}:{node.lineno}"

    def expression(self, node: ast.expr) -> Callable[[dict[str, Any], Any], Any]:
        return getattr(self, f"of_{type(node).__name__}")(node)

    def of_Constant(self, node: ast.Constant) -> Any:
        value = node.value
        return lambda names, mask: value

    def of_Name(self, node: ast.Name) -> Any:
        name, where = node.id, self.where(node)

        def get(names: dict[str, Any], mask: Any) -> Any:
            try:
                return names[name]
            except KeyError:
                raise Fault(f"{name} is nothing yet at {where}") from None

        return get

    def of_Tuple(self, node: ast.Tuple) -> Any:
        each = self.values(node.elts)
        return lambda names, mask: tuple(each(names, mask))

    def values(self, nodes: list[ast.expr]) -> Callable[[dict[str, Any], Any], list[Any]]:
        each = [self.expression(node) for node in nodes]
        return lambda names, mask: [one(names, mask) for one in each]

    def of_Attribute(self, node: ast.Attribute) -> Any:
        value, name = self.expression(node.value), node.attr
        return lambda names, mask: getattr(value(names, mask), name)

    def of_Subscript(self, node: ast.Subscript) -> Any:
        value, where = self.expression(node.value), self.where(node)
        index = self.expression(node.slice)

        def get(names: dict[str, Any], mask: Any) -> Any:
            at = index(names, mask)
            if not constant(at):
                raise Fault(f"the index of a tuple is no constant at {where}")
            return value(names, mask)[at]

        return get

    def of_BinOp(self, node: ast.BinOp) -> Any:
        left, right, where = (
            self.expression(node.left),
            self.expression(node.right),
            self.where(node),
        )
        function = BINARY[type(node.op)]
        return lambda names, mask: function(left(names, mask), right(names, mask), where)

    def of_UnaryOp(self, node: ast.UnaryOp) -> Any:
        value, function = self.expression(node.operand), UNARY[type(node.op)]
        return lambda names, mask: function(number(value(names, mask)))

    def of_Compare(self, node: ast.Compare) -> Any:
        left, right = map(self.expression, (node.left, *node.comparators))
        (function,) = (COMPARED[type(op)] for op in node.ops)
        return lambda names, mask: function(left(names, mask), right(names, mask))

    def of_IfExp(self, node: ast.IfExp) -> Any:
        test, body, other = map(self.expression, (node.test, node.body, node.orelse))
        where = self.where(node)

        def chosen(names: dict[str, Any], mask: Any) -> Any:
            held = test(names, mask)
            if not constant(held):
                raise Fault(f"the condition of an expression is no constant at {where}")
            return (body if held else other)(names, mask)

        return chosen

    def of_Call(self, node: ast.Call) -> Any:
        function, each = self.expression(node.func), self.values(node.args)
        where, text = self.where(node), ast.unparse(node.func)
        keywords = [(word.arg, self.expression(word.value)) for word in node.keywords]

        def called(names: dict[str, Any], mask: Any) -> Any:
            target = function(names, mask)
            if not isinstance(target, Op):
                raise Fault(f"{text}() at {where} is neither an operation nor a device function")
            values = each(names, mask)
            if keywords:
                given = {word: value(names, mask) for word, value in keywords}
                return target.apply(mask, where, *values, **given)
            return target.apply(mask, where, *values)

        return called

    # -- statements

    def function(self, node: ast.FunctionDef) -> Prepared:
        given = node.args
        parameters = tuple(argument.arg for argument in given.args)
        named = [n for part in node.body for n in ast.walk(part) if isinstance(n, ast.Name)]
        local = {n.id for n in named if isinstance(n.ctx, ast.Store)}
        free = {n.id for n in named} - local - set(parameters)
        return Prepared(parameters, tuple(sorted(free)), self.block(node.body))

    def block(self, body: list[ast.stmt]) -> Callable[[dict[str, Any], Any], Any]:
        steps = [self.statement(node) for node in body]

        def run(names: dict[str, Any], mask: Any) -> Any:
            for step in steps:
                mask = step(names, mask)
                if mask is GONE:
                    break
            return mask

        return run

    def statement(self, node: ast.stmt) -> Callable[[dict[str, Any], Any], Any]:
        return getattr(self, f"do_{type(node).__name__}")(node)

    def do_Expr(self, node: ast.Expr) -> Any:
        value = self.expression(node.value)

        def run(names: dict[str, Any], mask: Any) -> Any:
            value(names, mask)
            return mask

        return run

    def do_Assign(self, node: ast.Assign) -> Any:
        (target,) = node.targets
        value, put = self.expression(node.value), self.target(target)

        def run(names: dict[str, Any], mask: Any) -> Any:
            put(names, mask, value(names, mask))
            return mask

        return run

    def do_AugAssign(self, node: ast.AugAssign) -> Any:
        put, where = self.target(node.target), self.where(node)
        value, function = self.expression(node.value), BINARY[type(node.op)]
        old = self.expression(node.target)

        def run(names: dict[str, Any], mask: Any) -> Any:
            put(names, mask, function(old(names, mask), value(names, mask), where))
            return mask

        return run

    def target(self, node: Any) -> Callable[[dict[str, Any], Any, Any], None]:
        if isinstance(node, ast.Tuple):
            each = [self.target(part) for part in node.elts]

            def spread(names: dict[str, Any], mask: Any, value: Any) -> None:
                for put, part in zip(each, value, strict=True):
                    put(names, mask, part)

            return spread
        name = node.id

        def put(names: dict[str, Any], mask: Any, value: Any) -> None:
            if mask is not None and name in names:
                value = merged(mask, value, names[name])
            names[name] = value

        return put

    def do_Return(self, node: ast.Return) -> Any:
        value = self.expression(node.value or ast.Constant(None))

        def run(names: dict[str, Any], mask: Any) -> Any:
            result = value(names, mask)
            if mask is not None and RESULT in names:
                result = merged(mask, result, names[RESULT])
            names[RESULT] = result
            return GONE

        return run

    def do_If(self, node: ast.If) -> Any:
        test, body, other = (
            self.expression(node.test),
            self.block(node.body),
            self.block(node.orelse),
        )

        def run(names: dict[str, Any], mask: Any) -> Any:
            held = test(names, mask)
            if not isinstance(held, np.ndarray):
                return (body if held else other)(names, mask)
            yes, no = parted(held, mask)
            if yes is None:
                return other(names, mask)
            if no is None:
                return body(names, mask)
            after, after_other = body(names, yes), other(names, no)
            if after is yes and after_other is no:
                return mask
            if after is GONE:
                return after_other
            return after if after_other is GONE else after | after_other

        return run

    def do_While(self, node: ast.While) -> Any:
        assert not node.orelse
        test, body = self.expression(node.test), self.block(node.body)
        return _loop(
            lambda names, mask: None, lambda names, mask, _: (test(names, mask), None), body
        )

    def do_For(self, node: ast.For) -> Any:
        given: Any = node.iter
        assert not node.orelse
        assert ast.unparse(given.func) == "range"
        bounds = [self.expression(part) for part in given.args]
        put, body, where = self.target(node.target), self.block(node.body), self.where(node)

        def begin(names: dict[str, Any], mask: Any) -> Any:
            values = [bound(names, mask) for bound in bounds]
            start, stop, step = (0, *values, 1) if len(values) == 1 else (*values, 1)[:3]
            if isinstance(step, np.ndarray) or step == 0:
                raise Fault(f"steps of a range must be one number, not {step!r}, at {where}")
            # no constant any more: the compiler does not see it as one
            return np.int64(start) if constant(start) else start, stop, step

        def turn(names: dict[str, Any], mask: Any, state: Any) -> Any:
            at, stop, step = state
            return (at < stop if step > 0 else at > stop), (at + step, stop, step)

        return _loop(begin, turn, body, lambda names, mask, state: put(names, mask, state[0]))


def _loop(begin: Any, turn: Any, body: Any, put: Any = None) -> Any:
    """Make a loop: `turn` gives the condition of another round, and the state of the one after."""

    def run(names: dict[str, Any], mask: Any) -> Any:
        state = begin(names, mask)
        inside = mask
        left: list[Any] = []  # masks of the threads that ended the loop
        while True:
            held, after = turn(names, inside, state)
            if isinstance(held, np.ndarray):
                yes, no = parted(held, inside)
                if yes is None:
                    break
                if no is not None:
                    left.append(no)
                    inside = yes
            elif not held:
                break
            if put is not None:
                put(names, inside, state)
            inside = body(names, inside)
            if inside is GONE:
                break
            state = after
        if not left:
            return inside
        # Who left the loop goes on together with who is still inside when it ends.
        for one in left:
            inside = one if inside is GONE else inside | one
        before = inside.size if mask is None else np.count_nonzero(mask)
        return mask if np.count_nonzero(inside) == before else inside

    return run
