"""Signatures of generalized ufuncs, such as ``"(i,j),(j)->(i)"``: the axes that a call sees whole.

NumPy's notation, without its fixed sizes and optional axes, which Dask's ``apply_gufunc`` lacks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

_AXES = r"\((?:\w+(?:,\w+)*)?\)"
_ARRAYS = rf"{_AXES}(?:,{_AXES})*"
_SIGNATURE = re.compile(rf"({_ARRAYS})->({_ARRAYS})")


class Signature:
    """The names of the last axes of each argument (`inputs`) and each result (`outputs`).

    TypeError or ValueError for a text that is no signature.
    """

    __slots__ = ("inputs", "outputs", "text")

    def __init__(self, text: Any) -> None:
        example = 'such as "(i),(i,j)->(j)": the names of the last axes of each argument and result'
        if not isinstance(text, str):
            raise TypeError(f"signature is text {example}; got {text!r}")
        found = _SIGNATURE.fullmatch(re.sub(r"\s", "", text))
        self.text = text
        self.inputs = _axes(found[1] if found else "")
        self.outputs = _axes(found[2] if found else "")
        names = [name for axes in (*self.inputs, *self.outputs) for name in axes]
        if found is None or not all(map(str.isidentifier, names)):
            raise ValueError(f"signature is {text!r}, not one {example}")

    def check_arguments(
        self, function: str, shapes: Sequence[tuple[int, ...] | None], sizes: Mapping[str, int]
    ) -> None:
        """Check the arguments of a call; ValueError if they do not fit the signature.

        Extents may be NaN, which are not known yet. Of a shape that is None the axes of the
        signature are not the last ones, and nothing is known of them. `sizes` are those of axes
        that only results have.
        """
        if len(shapes) != len(self.inputs):
            raise self._misfit(
                function, f"positional arguments are {len(self.inputs)}, and {len(shapes)} came"
            )
        known: dict[str, int] = {}
        for number, (shape, axes) in enumerate(zip(shapes, self.inputs, strict=True)):
            if shape is None:
                known |= dict.fromkeys(axes, -1)
                continue
            if len(shape) < len(axes):
                problem = f"argument {number} has {len(shape)} dimensions, and its axes are "
                raise self._misfit(function, f"{problem}({', '.join(axes)})")
            for name, extent in zip(axes, shape[len(shape) - len(axes) :], strict=True):
                if known.setdefault(name, extent) != extent and extent == extent:
                    problem = f"the axis {name} has {known[name]} elements, and {extent} in"
                    raise self._misfit(function, f"{problem} argument {number}")
        for name in (name for axes in self.outputs for name in axes):
            if name not in known and name not in sizes:
                size = f'blockwise={{"output_sizes": {{"{name}": 3}}}}'
                problem = f"no argument has the axis {name}, so pass its size, {size}"
                raise self._misfit(function, problem)

    def check_results(self, function: str, result: Any) -> None:
        """Check what a call returned: an array, or as many as the signature says."""
        count = len(result) if isinstance(result, tuple | list) else None
        wanted = len(self.outputs)
        if count != (None if wanted == 1 else wanted):
            gave = "one" if count is None else f"a {type(result).__name__} of {count}"
            expected = "an array" if wanted == 1 else f"a tuple of {wanted} arrays"
            raise self._misfit(function, f"it returned {gave}, where {expected} was expected")

    def _misfit(self, function: str, problem: str) -> ValueError:
        return ValueError(f"{function} is adapted with signature={self.text!r}: {problem}")


def _axes(arrays: str) -> tuple[tuple[str, ...], ...]:
    each = re.findall(_AXES, arrays)
    return tuple([tuple(re.findall(r"\w+", axes)) for axes in each])
