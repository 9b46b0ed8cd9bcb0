"""Expressions of a kernel as closures ``(names, mask) -> value``; see `values`."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .values import BINARY, COMPARED, Fault, Op, constant, known, merged, number, parted

__all__ = ["Expressions"]


class Expressions:
    """Makes the closures of the expressions of one file."""

    def __init__(self, filename: str) -> None:
        self.file = Path(filename).name

    def where(self, node: Any) -> str:
        return f"{self.file}:{node.lineno}"

    def unknown(self, node: Any) -> NotImplementedError:
        return NotImplementedError(f"{ast.unparse(node)} at {self.where(node)}: not interpreted")

    def expression(self, node: ast.expr) -> Callable[[dict[str, Any], Any], Any]:
        make = getattr(self, f"of_{type(node).__name__}", None)
        if make is None:
            raise self.unknown(node)
        return make(node)

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
        if not any(isinstance(node, ast.Starred) for node in nodes):
            each = [self.expression(node) for node in nodes]
            return lambda names, mask: [one(names, mask) for one in each]
        starred = [
            (self.expression(node.value), True)
            if isinstance(node, ast.Starred)
            else (self.expression(node), False)
            for node in nodes
        ]

        def several(names: dict[str, Any], mask: Any) -> list[Any]:
            result: list[Any] = []
            for one, many in starred:
                value = one(names, mask)
                result += value if many else [value]
            return result

        return several

    def of_Attribute(self, node: ast.Attribute) -> Any:
        value, name = self.expression(node.value), node.attr
        return lambda names, mask: getattr(value(names, mask), name)

    def of_Subscript(self, node: ast.Subscript) -> Any:
        value, where = self.expression(node.value), self.where(node)
        if isinstance(node.slice, ast.Slice):
            ends = [
                self.expression(end or ast.Constant(None))
                for end in (node.slice.lower, node.slice.upper, node.slice.step)
            ]
            return lambda names, mask: value(names, mask)[slice(*[e(names, mask) for e in ends])]
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
        function = BINARY.get(type(node.op))
        if function is None:
            raise self.unknown(node)
        return lambda names, mask: function(left(names, mask), right(names, mask), where)

    def of_UnaryOp(self, node: ast.UnaryOp) -> Any:
        value, where = self.expression(node.operand), self.where(node)
        if isinstance(node.op, ast.Not):
            return lambda names, mask: not known(value(names, mask), where)
        if isinstance(node.op, ast.USub):
            return lambda names, mask: -number(value(names, mask))
        if not isinstance(node.op, ast.Invert):
            raise self.unknown(node)

        def inverted(names: dict[str, Any], mask: Any) -> Any:
            return ~number(value(names, mask))  # of a bool -1 or -2, as in Python

        return inverted

    def of_Compare(self, node: ast.Compare) -> Any:
        if len(node.ops) != 1 or type(node.ops[0]) not in (*COMPARED, ast.In, ast.NotIn):
            raise self.unknown(node)
        left, right = self.expression(node.left), self.expression(node.comparators[0])
        where = self.where(node)
        if isinstance(node.ops[0], ast.In | ast.NotIn):
            wanted = isinstance(node.ops[0], ast.In)
            return lambda names, mask: (
                (known(left(names, mask), where) in known(right(names, mask), where)) is wanted
            )
        function = COMPARED[type(node.ops[0])]
        return lambda names, mask: function(left(names, mask), right(names, mask))

    def of_BoolOp(self, node: ast.BoolOp) -> Any:
        each = [self.expression(value) for value in node.values]
        stops, where = isinstance(node.op, ast.Or), self.where(node)

        def combined(names: dict[str, Any], mask: Any) -> Any:
            value = None
            for one in each:
                value = known(one(names, mask), where)
                if bool(value) is stops:
                    break
            return value

        return combined

    def of_IfExp(self, node: ast.IfExp) -> Any:
        test, body, other = map(self.expression, (node.test, node.body, node.orelse))

        def chosen(names: dict[str, Any], mask: Any) -> Any:
            held = test(names, mask)
            if not isinstance(held, np.ndarray):
                return (body if held else other)(names, mask)
            yes, no = parted(held, mask)
            if yes is None:
                return other(names, mask)
            if no is None:
                return body(names, mask)
            return merged(yes, body(names, yes), other(names, no))

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
