"""Attribute values of the generic form as Python values, each of which prints as MLIR prints it.

Strings, bools, dictionaries and arrays (tuples) stand for themselves, types are those of :mod:`npusim.types`; the rest is
here. ``plain`` forgets what only the printer needs (widths, kinds of arrays).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from npusim.types import Type, numpy_dtype


@dataclass(frozen=True, slots=True)
class Int:
    """An integer with its type: ``3 : i32``."""

    value: int
    type: str = "i64"

    def __str__(self) -> str:
        return f"{self.value} : {self.type}"


@dataclass(frozen=True, slots=True)
class Float:
    """A float with its type: ``1.000000e+00 : bf16``."""

    value: float
    type: str = "f64"

    def __str__(self) -> str:
        return f"{float_text(self.value, self.type)} : {self.type}"


@dataclass(frozen=True, slots=True)
class Symbol:
    """A reference ``@name`` (``@outer::@inner`` for a nested one)."""

    name: str

    def __str__(self) -> str:
        return "::".join(f"@{_key(part)}" for part in self.name.split("::"))


@dataclass(frozen=True, slots=True)
class DenseArray:
    """``array<i32: 1, 0>``."""

    element: str
    values: tuple[int | float | bool, ...] = ()

    def __str__(self) -> str:
        items = ", ".join(_number(v, self.element) for v in self.values)
        return f"array<{self.element}: {items}>" if items else f"array<{self.element}>"


@dataclass(frozen=True, eq=False)
class Elements:
    """``dense<...> : tensor<4xi32>``: the elements of a tensor or vector; equal if bits and type are."""

    array: np.ndarray[Any, Any]
    element: str
    container: str = "tensor"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Elements) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        dims = "".join(f"{n}x" for n in self.array.shape)
        return f"dense<{_elements(self.array, self.element)}> : {self.container}<{dims}{self.element}>"


@dataclass(frozen=True, slots=True)
class Pairs:
    """The dimensions or paddings of a buffer descriptor: ``#aie<bd_dim_layout_array[<size = 8, stride = 1>]>``."""

    kind: str  # bd_dim_layout_array or bd_pad_layout_array
    pairs: tuple[tuple[int, int], ...] = ()

    def __str__(self) -> str:
        return f"#aie<{self.kind}{_pairs(self.kind, self.pairs)}>"


@dataclass(frozen=True, slots=True)
class PairLists:
    """One list of dimensions for each consumer: ``#aie<bd_dim_layout_array_array[[...], []]>``."""

    lists: tuple[tuple[tuple[int, int], ...], ...] = ()

    def __str__(self) -> str:
        inner = ", ".join(_pairs("bd_dim_layout_array", pairs) for pairs in self.lists)
        return f"#aie<bd_dim_layout_array_array[{inner}]>"


@dataclass(frozen=True, slots=True)
class Raw:
    """An attribute kept as text: affine maps, aliases, attributes of other dialects."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class FunctionType:
    """``(memref<16xi32>, i32) -> ()``."""

    inputs: tuple[Type, ...]
    results: tuple[Type, ...]

    def __str__(self) -> str:
        results = ", ".join(map(str, self.results))
        bare = len(self.results) == 1 and not results.startswith("(")
        return f"({', '.join(map(str, self.inputs))}) -> {results if bare else f'({results})'}"


@dataclass(frozen=True, slots=True)
class TypeValue:
    """A type as the value of an attribute."""

    type: Type | FunctionType

    def __str__(self) -> str:
        return str(self.type)


@dataclass(frozen=True, slots=True)
class Unit:
    """An attribute that only has a name."""

    def __str__(self) -> str:
        return "unit"


UNIT = Unit()
Attribute: TypeAlias = (
    "Int | Float | Symbol | DenseArray | Elements | Pairs | PairLists | Raw | TypeValue | Unit | bool | str"
    " | tuple[Attribute, ...] | dict[str, Attribute]"
)

_BARE = re.compile(r"[A-Za-z_][\w$.]*", re.ASCII)
PAIR_FIELDS = {
    "bd_dim_layout_array": ("size", "stride"),
    "bd_pad_layout_array": ("const_pad_before", "const_pad_after"),
}


def text(value: Attribute, nested: bool = False) -> str:
    """The attribute as MLIR prints it; inside an array (``nested``) the default types i64 and f64 are left out."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, tuple):
        return f"[{', '.join(text(item, nested=True) for item in value)}]"
    if isinstance(value, dict):
        return f"{{{entries(value)}}}"
    if nested and isinstance(value, (Int, Float)) and value.type in ("i64", "f64"):
        return str(value).partition(" : ")[0]
    return str(value)


def entries(attributes: dict[str, Attribute]) -> str:
    """The inside of an attribute dictionary, names sorted as MLIR sorts them."""
    items = sorted(attributes.items())
    return ", ".join(_key(k) if v is UNIT else f"{_key(k)} = {text(v)}" for k, v in items)


def plain(value: Attribute) -> Any:
    """The value without widths and kinds: ints, floats, bools, strings (symbols without ``@``), tuples, numpy arrays."""
    if isinstance(value, (Int, Float)):
        return value.value
    if isinstance(value, Symbol):
        return value.name
    if isinstance(value, DenseArray):
        return value.values
    if isinstance(value, Elements):
        return value.array
    if isinstance(value, Pairs):
        return value.pairs
    if isinstance(value, PairLists):
        return value.lists
    if isinstance(value, tuple):
        return tuple(plain(item) for item in value)
    if isinstance(value, TypeValue):
        return value.type
    if value is UNIT:
        return True
    return value.text if isinstance(value, Raw) else value


def quoted(string: str) -> str:
    """A string literal: control characters, quotes, backslashes and what is not ASCII as two hex digits a byte."""
    out = []
    for byte in string.encode():
        char = chr(byte)
        out.append(char if 32 <= byte < 127 and char not in '"\\' else "\\\\" if char == "\\" else f"\\{byte:02X}")
    return f'"{"".join(out)}"'


def float_text(value: Any, element: str) -> str:
    """A float as MLIR prints it: six decimals if they say it exactly, else enough digits, else its bits."""
    exact = np.asarray(value, numpy_dtype(element))
    number = float(exact)
    if math.isfinite(number):
        for shown in (f"{number:.6e}", _all_digits(number, element)):
            if "." in shown and np.array(float(shown)).astype(exact.dtype) == exact:
                return shown
    return "0x" + exact.tobytes()[::-1].hex().upper()


def _all_digits(value: float, element: str) -> str:
    """As many digits as tell all values of the type apart, like LLVM's APFloat: plain unless zeros would pad it."""
    mantissa = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53}[element]
    head, _, exponent = f"{value:.{1 + mantissa * 59 // 196}e}".partition("e")
    sign, digits = ("-" if value < 0 else ""), head.strip("-").replace(".", "").rstrip("0")
    power = int(exponent)
    if not -3 <= power < len(digits) + 3:
        return f"{sign}{digits[0]}.{digits[1:] or '0'}E{power:+d}"
    if power < 0:
        return f"{sign}0.{'0' * (-power - 1)}{digits}"
    return f"{sign}{digits[: power + 1].ljust(power + 1, '0')}" + (
        f".{digits[power + 1 :]}" if power + 1 < len(digits) else ""
    )


def _key(name: str) -> str:
    """A name as it may stand without quotes, or else quoted."""
    return name if _BARE.fullmatch(name) else quoted(name)


def _number(value: Any, element: str) -> str:
    if element == "i1":
        return "true" if value else "false"
    return float_text(value, element) if "f" in element else str(int(value))


def _elements(array: np.ndarray[Any, Any], element: str) -> str:
    raw = np.ascontiguousarray(array)
    width = raw.dtype.itemsize
    data = raw.tobytes()
    if raw.size and data == data[:width] * raw.size:
        return _number(raw.reshape(-1)[0], element)
    if raw.size > 100:  # MLIR's limit for printing bytes instead of numbers
        return f'"0x{data.hex().upper()}"'
    return _nested(raw, element)


def _nested(array: np.ndarray[Any, Any], element: str) -> str:
    if array.ndim == 0:
        return _number(array[()], element)
    return f"[{', '.join(_nested(part, element) for part in array)}]"


def _pairs(kind: str, pairs: tuple[tuple[int, int], ...]) -> str:
    first, second = PAIR_FIELDS[kind]
    return f"[{', '.join(f'<{first} = {a}, {second} = {b}>' for a, b in pairs)}]"
