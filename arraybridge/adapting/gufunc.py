"""Signatures of generalized ufuncs, such as ``"(i,j),(j)->(i)"``: the axes that a call gets whole.

NumPy's notation, but for fixed sizes and optional axes, which Dask's ``apply_gufunc`` lacks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

_AXES = r"\((?:\w+(?:,\w+)*)?\)"
_ARRAYS = rf"{_AXES}(?:,{_AXES})*"
_SIGNATURE = re.compile(rf"({_ARRAYS})->({_ARRAYS})")


class Signature:
    """The names of the last axes of each argument (`inputs`) and each result (`outputs`)."""

    __slots__ = ("inputs", "outputs", "text")

    def __init__(self, text: Any) -> None:
        example = 'such as "(i),(i,j)->(j)": the names of the last axes of each argument and result'
        if not isinstance(text, str):
            raise TypeError(f"signature must be a string {example}; got {text!r}")
        found = _SIGNATURE.fullmatch(re.sub(r"\s", "", text))
        self.text = text
        self.inputs = _axes(found[1] if found else "")
        self.outputs = _axes(found[2] if found else "")
        names = [name for axes in (*self.inputs, *self.outputs) for name in axes]
        if found is None or not all(map(str.isidentifier, names)):
            raise ValueError(f"signature is {text!r}; expected one {example}")

    def check_arguments(
        self, function: str, shapes: Sequence[tuple[int, ...] | None], sizes: Mapping[str, int]
    ) -> None:
        """Check the arguments of a call; ValueError if they do not fit the signature.

        Unknown extents are NaN. A shape is None if the axes of the signature are not its last ones:
        its extents are not checked. `sizes` are those of axes that only results have.
        """
        if len(shapes) != len(self.inputs):
            raise self._misfit(
                function, f"positional arguments: expected {len(self.inputs)}, got {len(shapes)}"
            )
        known: dict[str, int] = {}
        for number, (shape, axes) in enumerate(zip(shapes, self.inputs, strict=True)):
            if shape is None:
                known |= dict.fromkeys(axes, -1)
                continue
            if len(shape) < len(axes):
                problem = f"argument {number} has {len(shape)} dimensions, expected the axes "
                raise self._misfit(function, f"{problem}({', '.join(axes)})")
            for name, extent in zip(axes, shape[len(shape) - len(axes) :], strict=True):
                if known.setdefault(name, extent) != extent and extent == extent:
                    problem = f"the axis {name} has {known[name]} elements, but {extent} in"
                    raise self._misfit(function, f"{problem} argument {number}")
        for name in (name for axes in self.outputs for name in axes):
            if name not in known and name not in sizes:
                size = f'blockwise={{"output_sizes": {{"{name}": 3}}}}'
                problem = f"no argument has the axis {name}: pass its size, {size}"
                raise self._misfit(function, problem)

    def check_results(self, function: str, result: Any) -> None:
        """Check the number of results."""
        count = len(result) if isinstance(result, tuple | list) else None
        wanted = len(self.outputs)
        if count != (None if wanted == 1 else wanted):
            gave = "one" if count is None else f"a {type(result).__name__} of {count}"
            expected = "an array" if wanted == 1 else f"a tuple of {wanted} arrays"
            raise self._misfit(function, f"it returned {gave}, expected {expected}")

    def _misfit(self, function: str, problem: str) -> ValueError:
        return ValueError(f"{function} is adapted with signature={self.text!r}: {problem}")


def _axes(arrays: str) -> tuple[tuple[str, ...], ...]:
    each = re.findall(_AXES, arrays)
    return tuple([tuple(re.findall(r"\w+", axes)) for axes in each])
