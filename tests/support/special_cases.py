"""The special cases that the array API standard 2025.12 lays down for elementwise functions.

One line a function: ``inputs: result`` separated by ``;``. A word stands for one value or several:

    nan inf -inf 0 -0 1 pi pi/2 ...   that value; of a result, 0 is +0
    ~x                                in a result: either sign
    x1 x2 |x1|                        in a result: the input itself, its magnitude
    fin pos neg any                   finite, not 0; positive; negative; every value
    fin0                              finite, 0 and -0 included
    zero infs                         0 and -0; both infinities

Complex numbers are written as their two parts. Each is valid for the conjugate as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

INF, NAN, PI = math.inf, math.nan, math.pi

POSITIVE = (0.5, 1.0, 2.0, 3.5, 5.0, 1e30)
NEGATIVE = tuple(-x for x in POSITIVE)
CLASSES: dict[str, tuple[float, ...]] = {
    "zero": (0.0, -0.0),
    "infs": (INF, -INF),
    "pos": POSITIVE,
    "neg": NEGATIVE,
    "fin": (*POSITIVE, *NEGATIVE),
    "fin0": (*POSITIVE, *NEGATIVE, 0.0, -0.0),
    "modest": (0.5, 1.0, 2.0, -0.5, -1.0, -2.0),  # whose cosine and sine are worth comparing
    "modest+": (0.5, 1.0, 2.0),
    "any": (*POSITIVE, *NEGATIVE, 0.0, -0.0, INF, -INF, NAN),
    "some": (*POSITIVE, *NEGATIVE, 0.0, -0.0, INF, -INF),  # any but NaN
    ">0": (*POSITIVE, INF),
    "<0": (*NEGATIVE, -INF),
    "!=0": (*POSITIVE, *NEGATIVE, INF, -INF),
    ">1": (1.5, 2.0, 1e30, INF),
    "<1": (0.5, 0.0, -1.0, -INF),
    "<-1": (-1.5, -2.0, -1e30, -INF),
    "odd": (1.0, 3.0, 5.0),
    "-odd": (-1.0, -3.0),
    "notodd": (0.5, 2.0, 2.5, 4.0, INF),
    "-notodd": (-0.5, -2.0, -4.0, -INF),
    "|>1|": (1.5, -1.5, 2.0, -3.0, INF, -INF),
    "|<1|": (0.5, -0.5, 0.0, -0.0),
    "|1|": (1.0, -1.0),
    "!=1": (0.5, -1.0, 2.0, 0.0, -0.0, INF, -INF),
    "fraction": (0.5, -0.5, 1.5),
    "whole": (1.0, -1.0, 2.0, -7.0, 1e30),
    "bit": (math.copysign(NAN, -1.0),),
}

# Results by word.
VALUES = {
    "pi": PI,
    "pi/2": PI / 2,
    "pi/4": PI / 4,
    "3pi/4": 3 * PI / 4,
    "-pi": -PI,
    "-pi/2": -PI / 2,
    "-pi/4": -PI / 4,
    "-3pi/4": -3 * PI / 4,
    "True": 1.0,
    "False": 0.0,
}

# Alike for several functions.
KEEPS = "nan: nan; zero: x1; inf: inf; -inf: -inf"
ROUNDS = KEEPS + "; whole: x1"
LOGARITHM = "nan: nan; <0: nan; zero: -inf; 1: 0; inf: inf"
NAN_OF_EITHER = "nan any: nan; any nan: nan"

REAL = {
    "abs": "nan: nan; -0: 0; -inf: inf",
    "acos": "nan: nan; >1: nan; <-1: nan; 1: 0",
    "acosh": "nan: nan; <1: nan; 1: 0; inf: inf",
    "asin": "nan: nan; >1: nan; <-1: nan; zero: x1",
    "asinh": KEEPS,
    "atan": "nan: nan; zero: x1; inf: pi/2; -inf: -pi/2",
    "atanh": "nan: nan; <-1: nan; >1: nan; -1: -inf; 1: inf; zero: x1",
    "ceil": ROUNDS,
    "cos": "nan: nan; zero: 1; infs: nan",
    "cosh": "nan: nan; zero: 1; infs: inf",
    "exp": "nan: nan; zero: 1; inf: inf; -inf: 0",
    "expm1": "nan: nan; zero: x1; inf: inf; -inf: -1",
    "floor": ROUNDS,
    "isfinite": "infs: False; nan: False; fin0: True",
    "isinf": "infs: True; nan: False; fin0: False",
    "isnan": "infs: False; nan: True; fin0: False",
    "log": LOGARITHM,
    "log1p": "nan: nan; <-1: nan; -1: -inf; zero: x1; inf: inf",
    "log2": LOGARITHM,
    "log10": LOGARITHM,
    "reciprocal": "nan: nan; 0: inf; -0: -inf; inf: 0; -inf: -0",
    "round": ROUNDS + "; 0.5: 0; -0.5: -0; 1.5: 2; 2.5: 2; -2.5: -2; 3.5: 4",
    "sign": "nan: nan; <0: -1; zero: 0; >0: 1",
    "signbit": "0: False; -0: True; inf: False; -inf: True; pos: False; neg: True; bit: True",
    "sin": "nan: nan; zero: x1; infs: nan",
    "sinh": KEEPS,
    "sqrt": "nan: nan; <0: nan; zero: x1; inf: inf",
    "square": "nan: nan; zero: 0; infs: inf",
    "tan": "nan: nan; zero: x1; infs: nan",
    "tanh": "nan: nan; zero: x1; inf: 1; -inf: -1",
    "trunc": ROUNDS,
}

QUOTIENT = (
    NAN_OF_EITHER + "; infs infs: nan; zero zero: nan; 0 >0: 0; -0 >0: -0; 0 <0: -0; -0 <0: 0; "
    "pos 0: inf; pos -0: -inf; neg 0: -inf; neg -0: inf; inf pos: inf; inf neg: -inf; "
    "-inf pos: -inf; -inf neg: inf; pos inf: 0; pos -inf: -0; neg inf: -0; neg -inf: 0"
)
BINARY = {
    "add": NAN_OF_EITHER + "; inf -inf: nan; -inf inf: nan; inf inf: inf; -inf -inf: -inf; "
    "inf fin0: inf; -inf fin0: -inf; fin0 inf: inf; fin0 -inf: -inf; -0 -0: -0; -0 0: 0; 0 -0: 0; "
    "0 0: 0; zero fin: x2; fin zero: x1; 2 -2: 0",
    "subtract": NAN_OF_EITHER + "; inf inf: nan; -inf -inf: nan; inf -inf: inf; -inf inf: -inf; "
    "inf fin0: inf; -inf fin0: -inf; fin0 inf: -inf; fin0 -inf: inf; -0 0: -0; -0 -0: 0; 0 0: 0; "
    "0 -0: 0; fin zero: x1; 2 2: 0",
    "atan2": NAN_OF_EITHER + "; pos zero: pi/2; 0 >0: 0; 0 0: 0; 0 -0: pi; 0 <0: pi; -0 >0: -0; "
    "-0 0: -0; -0 -0: -pi; -0 <0: -pi; neg zero: -pi/2; pos inf: 0; pos -inf: pi; neg inf: -0; "
    "neg -inf: -pi; inf fin0: pi/2; -inf fin0: -pi/2; inf inf: pi/4; inf -inf: 3pi/4; "
    "-inf inf: -pi/4; -inf -inf: -3pi/4",
    "copysign": "any <0: -|x1|; any -0: -|x1|; any 0: |x1|; any >0: |x1|; any bit: -|x1|",
    "divide": QUOTIENT,
    "equal": "nan any: False; any nan: False; inf inf: True; -inf -inf: True; zero zero: True; "
    "inf -inf: False; 2 2: True; 2 3: False",
    "floor_divide": QUOTIENT,
    "hypot": "infs any: inf; any infs: inf; zero some: |x2|; some zero: |x1|; fin0 nan: nan; "
    "nan fin0: nan; nan nan: nan",
    "logaddexp": NAN_OF_EITHER + "; inf some: inf; some inf: inf",
    "maximum": NAN_OF_EITHER + "; inf some: inf; -inf some: x2",
    "minimum": NAN_OF_EITHER + "; -inf some: -inf; inf some: x2",
    "multiply": NAN_OF_EITHER + "; infs zero: nan; zero infs: nan; inf >0: inf; inf <0: -inf; "
    "-inf >0: -inf; -inf <0: inf; >0 inf: inf; <0 inf: -inf; 0 pos: 0; 0 neg: -0; -0 neg: 0",
    "nextafter": NAN_OF_EITHER + "; -0 0: 0; 0 -0: -0",
    "not_equal": "nan any: True; any nan: True; inf -inf: True; -inf inf: True; 2 3: True; "
    "2 2: False; zero zero: False; inf inf: False",
    "pow": "!=1 nan: nan; any zero: 1; nan !=0: nan; |>1| inf: inf; |>1| -inf: 0; |1| infs: 1; "
    "1 some: 1; |<1| inf: 0; |<1| -inf: inf; inf >0: inf; inf <0: 0; -inf odd: -inf; "
    "-inf notodd: inf; -inf -odd: -0; -inf -notodd: 0; 0 >0: 0; 0 <0: inf; -0 odd: -0; "
    "-0 notodd: 0; -0 -odd: -inf; -0 -notodd: inf; neg fraction: nan",
    "remainder": NAN_OF_EITHER + "; infs infs: nan; zero zero: nan; zero pos: 0; zero neg: -0; "
    "fin zero: nan; infs fin: nan; pos inf: x1; pos -inf: x2; neg inf: x2; neg -inf: x1",
}

# Where the parts of the complex argument of the function, as in `REAL`.
COMPLEX = {
    "acos": "zero 0: pi/2 -0; zero nan: pi/2 nan; fin0 inf: pi/2 -inf; fin nan: nan nan; "
    "-inf pos: pi -inf; inf pos: 0 -inf; -inf inf: 3pi/4 -inf; inf inf: pi/4 -inf; "
    "infs nan: nan ~inf; nan fin0: nan nan; nan inf: nan -inf; nan nan: nan nan",
    "acosh": "zero 0: 0 pi/2; fin0 inf: inf pi/2; fin nan: nan nan; 0 nan: nan ~pi/2; "
    "-inf pos: inf pi; inf pos: inf 0; -inf inf: inf 3pi/4; inf inf: inf pi/4; infs nan: inf nan; "
    "nan fin0: nan nan; nan inf: inf nan; nan nan: nan nan",
    "asinh": "0 0: 0 0; pos inf: inf pi/2; fin0 nan: nan nan; inf pos: inf 0; inf inf: inf pi/4; "
    "nan 0: nan 0; nan fin: nan nan; nan inf: ~inf nan; nan nan: nan nan",
    "atanh": "0 0: 0 0; 0 nan: 0 nan; 1 0: inf 0; pos inf: 0 pi/2; fin nan: nan nan; "
    "inf pos: 0 pi/2; inf inf: 0 pi/2; inf nan: 0 nan; nan fin0: nan nan; nan inf: ~0 pi/2; "
    "nan nan: nan nan",
    "cosh": "0 0: 1 0; 0 inf: nan ~0; 0 nan: nan ~0; fin inf: nan nan; fin nan: nan nan; "
    "inf 0: inf 0; inf modest: inf*cis; inf inf: ~inf nan; inf nan: inf nan; nan zero: nan ~0; "
    "nan fin: nan nan; nan nan: nan nan",
    "exp": "zero 0: 1 0; fin0 inf: nan nan; fin0 nan: nan nan; inf 0: inf 0; -inf modest: 0*cis; "
    "inf modest: inf*cis; -inf inf: ~0 ~0; inf inf: ~inf nan; -inf nan: ~0 ~0; inf nan: ~inf nan; "
    "nan 0: nan 0; nan !=0: nan nan; nan nan: nan nan",
    "expm1": "zero 0: 0 0; fin0 inf: nan nan; fin0 nan: nan nan; inf 0: inf 0; "
    "inf modest: inf*cis; -inf inf: -1 ~0; inf inf: ~inf nan; -inf nan: -1 ~0; "
    "inf nan: ~inf nan; nan 0: nan 0; nan !=0: nan nan; nan nan: nan nan; -inf modest: 0*cis-1",
    "log": "-0 0: -inf pi; 0 0: -inf 0; fin0 inf: inf pi/2; fin0 nan: nan nan; -inf pos: inf pi; "
    "inf pos: inf 0; -inf inf: inf 3pi/4; inf inf: inf pi/4; infs nan: inf nan; nan fin0: nan nan; "
    "nan inf: inf nan; nan nan: nan nan",
    "log1p": "-1 0: -inf 0; fin0 inf: inf pi/2; fin0 nan: nan nan; -inf pos: inf pi; "
    "inf pos: inf 0; -inf inf: inf 3pi/4; inf inf: inf pi/4; infs nan: inf nan; nan fin0: nan nan; "
    "nan inf: inf nan; nan nan: nan nan",
    "sign": "zero zero: 0 0; nan any: nan nan; any nan: nan nan",
    "sinh": "0 0: 0 0; 0 inf: ~0 nan; 0 nan: ~0 nan; pos inf: nan nan; pos nan: nan nan; "
    "inf 0: inf 0; inf modest+: inf*cis; inf inf: ~inf nan; inf nan: ~inf nan; nan 0: nan 0; "
    "nan fin: nan nan; nan nan: nan nan",
    "sqrt": "zero 0: 0 0; any inf: inf inf; fin0 nan: nan nan; -inf pos: 0 inf; inf pos: inf 0; "
    "-inf nan: nan ~inf; inf nan: inf nan; nan fin0: nan nan; nan nan: nan nan",
    "tanh": "0 0: 0 0; fin inf: nan nan; 0 inf: 0 nan; fin nan: nan nan; 0 nan: 0 nan; "
    "inf pos: 1 0; inf inf: 1 ~0; inf nan: 1 ~0; nan 0: nan 0; nan fin: nan nan; nan nan: nan nan",
    "abs": "infs any: inf; any infs: inf; zero fin: |x2|; fin zero: |x1|; nan fin0: nan; "
    "fin0 nan: nan; nan nan: nan",
    "isfinite": "nan any: False; any nan: False; infs any: False; any infs: False; fin0 fin0: True",
    "isinf": "infs any: True; any infs: True; fin0 fin0: False; nan fin0: False; fin0 nan: False",
    "isnan": "nan any: True; any nan: True; fin0 fin0: False; infs fin0: False",
}

# f(conj(z)) is conj(f(z)) for these, and f(-z) is -f(z) or f(z) for those.
CONJUGATE = "acos acosh asinh atanh cosh exp expm1 log log1p sinh sqrt tanh".split()
ODD, EVEN = "asinh atanh sinh tanh".split(), ["cosh"]

# f(z) is -1j * g(1j * z), or g(1j * z), for these.
TURNED = {"asin": "asinh", "atan": "atanh", "sin": "sinh", "tan": "tanh"}
TURNED_IN = {"cos": "cosh"}


class Case(NamedTuple):
    """Arguments, parts of one complex number among them, and what each part of the result is.

    ``free`` says of which parts the sign is free.
    """

    inputs: tuple[float, ...]
    result: tuple[float, ...]
    free: tuple[bool, ...]


def cases(text: str) -> Iterator[Case]:
    """Every case of one function's line."""
    for clause in text.split(";"):
        inputs, result = clause.split(":")
        for values in product(*(_class(word) for word in inputs.split())):
            yield Case(values, *_result(result.strip(), values))


def _class(word: str) -> tuple[float, ...]:
    return CLASSES[word] if word in CLASSES else (float(word),)


def _result(text: str, inputs: tuple[float, ...]) -> tuple[tuple[float, ...], tuple[bool, ...]]:
    if "*cis" in text:
        size, minus = (INF if text.startswith("inf") else 0.0), 1.0 if text.endswith("-1") else 0.0
        b = inputs[1]
        return (size * math.cos(b) - minus, size * math.sin(b)), (False, False)
    words = text.split()
    known = {"x1": inputs[0], "x2": inputs[-1], "|x1|": abs(inputs[0]), "|x2|": abs(inputs[-1])}
    known["-|x1|"] = math.copysign(inputs[0], -1.0)
    known |= VALUES
    plain = [word.lstrip("~") for word in words]
    parts = tuple(known[word] if word in known else float(word) for word in plain)
    return parts, tuple(word.startswith("~") for word in words)


def complex_cases(name: str) -> list[Case]:
    """Every complex case of a function, with those that its symmetries add."""
    if source := TURNED.get(name) or TURNED_IN.get(name):
        found = []
        for (a, b), result, free in complex_cases(source):
            # 1j * z is (-y, x), which is to be (a, b): z is (b, -a).
            if name in TURNED:  # -1j * (u, v) is (v, -u)
                result, free = (result[1], -result[0]), (free[1], free[0])
            found.append(Case((b, -a), result, free))
        return found
    found = list(cases(COMPLEX[name]))
    if name in CONJUGATE:
        found += [Case((a, -b), (r, -i), free) for (a, b), (r, i), free in found]
    if name in (*ODD, *EVEN):
        sign = -1 if name in ODD else 1
        found += [  # equality does not see the sign of 0
            Case((-a, -b), (sign * r, sign * i), (free[0] or r == 0, free[1] or i == 0))
            for (a, b), (r, i), free in found
        ]
    return found
