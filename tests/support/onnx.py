"""ONNX models in a few bytes, without the package ``onnx``: Protocol Buffers by hand.

Source: onnx.proto3 of the ONNX standard, for the numbers of the fields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def _varint(number: int) -> bytes:
    result = bytearray()
    while number > 127:
        result.append(number & 127 | 128)
        number >>= 7
    return bytes([*result, number])


def _field(number: int, value: int | str | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    body = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(body)) + body


def _tensor(code: int) -> bytes:
    """A TypeProto: a tensor of an element type, of any shape."""
    return _field(1, _field(1, code))


def sequence(code: int) -> bytes:
    """The type of a sequence of tensors."""
    return _field(4, _field(1, _tensor(code)))


def _described(name: str, kind: int | bytes) -> bytes:
    """A ValueInfoProto."""
    return _field(1, name) + _field(2, kind if isinstance(kind, bytes) else _tensor(kind))


def _attribute(name: str, value: int) -> bytes:
    """An AttributeProto, of an integer."""
    return _field(1, name) + _field(3, value) + _field(20, 2)


def model(
    nodes: Sequence[tuple[str, str, str]],
    inputs: Mapping[str, int | bytes],
    outputs: Mapping[str, int | bytes],
    **attributes: int,
) -> bytes:
    """Serialize a model of nodes: operator, and the names of inputs and outputs between spaces.

    ``inputs`` and ``outputs`` have the code of each one's element type (1 for float32), or its
    type; the attributes are those of every node.
    """
    graph = _field(2, "graph")
    for operator, read, written in nodes:
        node = b"".join(_field(1, name) for name in read.split())
        node += b"".join(_field(2, name) for name in written.split()) + _field(4, operator)
        node += b"".join(_field(5, _attribute(*told)) for told in attributes.items())
        graph += _field(1, node)
    graph += b"".join(_field(11, _described(*told)) for told in inputs.items())
    graph += b"".join(_field(12, _described(*told)) for told in outputs.items())
    return _field(1, 10) + _field(7, graph) + _field(8, _field(1, "") + _field(2, 21))
