"""Reading attribute values and types from a cursor."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any

import numpy as np

from npusim.errors import NpuError
from npusim.mlir.attributes import (
    PAIR_FIELDS,
    UNIT,
    Attribute,
    DenseArray,
    Elements,
    Float,
    FunctionType,
    Int,
    PairLists,
    Pairs,
    Raw,
    Symbol,
    TypeValue,
)
from npusim.mlir.text import Cursor
from npusim.types import MemRefType, SubviewType, Type, numpy_dtype

_KEY = re.compile(r'[A-Za-z_][\w.$]*|"(?:[^"\\\n]|\\.)*"')
_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_ESCAPE = re.compile(r'\\(?:([0-9A-Fa-f]{2})|([nt\\"]))')
_NUMBER = re.compile(r"-?(?:0x[0-9A-Fa-f]+|\d+(?:\.\d*(?:[eE][+-]?\d+)?)?)")
_SYMBOL = re.compile(r'@([\w.$-]+|"(?:[^"\\\n]|\\.)*")((?:::@[\w.$-]+)*)')
_WORD = re.compile(r"[A-Za-z_]\w*")
_BITS = re.compile(r"0x[0-9A-Fa-f]+")
_HASH = re.compile(r"#[\w.$]+")
_ARRAY = re.compile(r"array<(\w+)(?::\s*([^<>]*))?>")
_SHAPED = re.compile(r"(tensor|vector)<((?:\d+x)*)([\w.]+)>")
_TYPE = re.compile(r"!?[A-Za-z_][\w.]*")
_MEMREF = re.compile(
    r"memref<((?:\d+x)*)(\w+|![\w.]+<[^<>]*>|vector<[^<>]*>)"
    r"(?:, strided<\[(-?\d+(?:, -?\d+)*)?\](?:, offset: (\?|-?\d+))?>)?"
    r"(?:, (\d+)(?: : i\d+)?)?>"
)
_SUBVIEW = re.compile(r"!aie\.objectfifosubview<(memref<.*>)>")
_SCALAR = re.compile(r"[a-z]+\d+|index")
# The everyday entries of a dictionary in one match: name = 3 : i32, name = true, name = "x", name = @x.
_ENTRY = re.compile(
    r'\s*([A-Za-z_][\w.$]*) = (?:(-?\d+) : (u?i\d+|index)|(true|false)|"([^"\\\n]*)"|@(\w+))(?=, |\}|$)'
)
_PAIR = {kind: re.compile(rf"<{a} = (\d+), {b} = (\d+)>") for kind, (a, b) in PAIR_FIELDS.items()}
_LAYOUTS = re.compile(r"#aie<(bd_dim_layout_array|bd_pad_layout_array|bd_dim_layout_array_array)(\[.*\])>$")


@lru_cache(maxsize=4096)
def make_type(text: str) -> Type:
    """The type of that spelling; what npusim has no notion of (tensors, tokens, dynamic shapes) stays text."""
    if match := _MEMREF.fullmatch(text):
        dims, element, strides, offset, space = match.groups()
        return MemRefType(
            tuple(int(n) for n in dims.split("x")[:-1]),
            element,
            0 if offset in (None, "?") else int(offset),
            None if "strided" not in text else tuple(int(n) for n in (strides or "").split(",") if n),
            offset == "?",
            int(space or 0),
        )
    if match := _SUBVIEW.fullmatch(text):
        inner = make_type(match.group(1))
        return SubviewType(inner) if isinstance(inner, MemRefType) else text
    return text


def type_at(cursor: Cursor) -> Type:
    """Read a type other than a function type."""
    head = cursor.need(_TYPE, "a type").group()
    return make_type(head + (cursor.balanced() if cursor.text.startswith("<", cursor.pos) else ""))


def function_type_at(cursor: Cursor) -> FunctionType:
    """Read ``(types) -> type`` or ``(types) -> (types)``."""
    inputs = _types(cursor)
    cursor.expect("->")
    results = _types(cursor) if cursor.peek() == "(" else (type_at(cursor),)
    return FunctionType(inputs, results)


def _types(cursor: Cursor) -> tuple[Type, ...]:
    cursor.expect("(")
    types: list[Type] = []
    while not cursor.take(")"):
        if types:
            cursor.expect(",")
        types.append(type_at(cursor))
    return tuple(types)


def dictionary_at(cursor: Cursor) -> dict[str, Attribute]:
    """Read attributes up to and with the closing ``}``; the opening one has been read."""
    entries: dict[str, Attribute] = {}
    while not cursor.take("}"):
        if entries:
            cursor.expect(",")
        found = _ENTRY.match(cursor.text, cursor.pos)
        if found:
            name, value = found.group(1), _everyday(found)
            cursor.pos = found.end()
        else:
            name = unquoted(cursor.need(_KEY, "the name of an attribute").group())
            value = attribute_at(cursor) if cursor.take("=") else UNIT
        if name in entries:
            cursor.fail(f"attribute {name!r} only once")
        entries[name] = value
    return entries


def _everyday(found: re.Match[str]) -> Attribute:
    _, number, width, boolean, string, symbol = found.groups()
    if number is not None:
        return Int(int(number), width)
    if boolean is not None:
        return boolean == "true"
    return string if string is not None else Symbol(symbol)


def attribute_at(cursor: Cursor) -> Attribute:
    """Read one attribute value."""
    first = cursor.peek()
    if first.isdigit() or first == "-":
        return _number_at(cursor)
    if first == '"':
        return unquoted(cursor.need(_STRING, "a string").group())
    if first == "[":
        return _array_at(cursor)
    if first == "{":
        cursor.expect("{")
        return dictionary_at(cursor)
    if first == "@":
        name, inner = cursor.need(_SYMBOL, "a symbol").groups()
        return Symbol(unquoted(name) + inner.replace("::@", "::"))
    if first == "#":
        return _hash_at(cursor)
    if first == "(":
        return TypeValue(function_type_at(cursor))
    return _word_at(cursor)


def _number_at(cursor: Cursor) -> Int | Float:
    digits = cursor.need(_NUMBER, "a number").group()
    kind = str(type_at(cursor)) if cursor.take(":") else "f64" if "." in digits else "i64"
    if not _SCALAR.fullmatch(kind):
        cursor.fail("a number's type before this")
    if "f" in kind:
        return Float(_float(digits, kind), kind)
    if "." in digits:
        cursor.fail(f"a whole number of type {kind} before this")
    return Int(int(digits, 0) if "0x" in digits else int(digits), kind)


def _array_at(cursor: Cursor) -> tuple[Attribute, ...]:
    cursor.expect("[")
    items: list[Attribute] = []
    while not cursor.take("]"):
        if items:
            cursor.expect(",")
        items.append(attribute_at(cursor))
    return tuple(items)


def _hash_at(cursor: Cursor) -> Attribute:
    name = cursor.need(_HASH, "an attribute").group()
    text = name + (cursor.balanced() if cursor.text.startswith("<", cursor.pos) else "")
    match = _LAYOUTS.match(text)
    if not match:
        return Raw(text)
    kind, inside = match.groups()
    if kind != "bd_dim_layout_array_array":
        return Pairs(kind, _pairs(kind, inside))
    lists = re.findall(r"\[([^\[\]]*)\]", inside[1:-1])
    return PairLists(tuple(_pairs("bd_dim_layout_array", part) for part in lists))


def _pairs(kind: str, text: str) -> tuple[tuple[int, int], ...]:
    return tuple((int(a), int(b)) for a, b in _PAIR[kind].findall(text))


def _word_at(cursor: Cursor) -> Attribute:
    begin = cursor.pos
    word = found.group() if (found := cursor.match(_WORD)) else ""
    if word in ("true", "false"):
        return word == "true"
    if word == "unit":
        return UNIT
    if word == "array":
        cursor.pos = begin
        element, items = cursor.need(_ARRAY, "array<type: values>").groups()
        return DenseArray(element, _dense_array(cursor, element, items or ""))
    if word == "dense":
        return _elements_at(cursor)
    if word in ("affine_map", "affine_set", "dense_resource", "sparse", "loc"):
        text = word + cursor.balanced()
        return Raw(f"{text} : {type_at(cursor)}" if cursor.take(":") else text)
    cursor.pos = begin
    return TypeValue(type_at(cursor))


def _dense_array(cursor: Cursor, element: str, items: str) -> tuple[int | float | bool, ...]:
    parts = [part.strip() for part in items.split(",") if part.strip()]
    try:
        if element == "i1":
            return tuple({"true": True, "false": False}[part] for part in parts)
        if "f" in element:
            return tuple(_float(part, element) for part in parts)
        return tuple(int(part) for part in parts)
    except (ValueError, KeyError):
        cursor.fail(f"values of type {element} in the array before this")


def _elements_at(cursor: Cursor) -> Elements | Raw:
    if cursor.peek() != "<":
        cursor.fail("'<'")
    begin = cursor.pos
    inside = cursor.balanced()[1:-1].strip()
    cursor.expect(":")
    match = cursor.match(_SHAPED)
    if not match:
        return Raw(f"dense{cursor.text[begin : cursor.pos]}{type_at(cursor)}")
    container, dims, element = match.groups()
    shape = tuple(int(n) for n in dims.split("x")[:-1])
    try:
        return Elements(_array(inside, shape, element), element, container)
    except NpuError:
        raise
    except ValueError:
        cursor.fail(f"elements that fit {match.group()} before this")


def _array(inside: str, shape: tuple[int, ...], element: str) -> np.ndarray[Any, Any]:
    dtype = numpy_dtype(element)
    if inside.startswith('"0x'):
        data = np.frombuffer(bytes.fromhex(inside[3:-1]), dtype)
        return np.full(shape, data[0]) if data.size == 1 else data.reshape(shape)
    if "f" in element:  # bits stand for what has no digits, infinities and NaNs: NaN first, then its bits
        bits = [int(digits, 16) for digits in _BITS.findall(inside)]
        array = np.array(json.loads(_BITS.sub("NaN", inside or "[]"))).astype(dtype)
        array[np.isnan(array)] = np.array(bits, f"u{dtype.itemsize}").view(dtype)
    else:
        array = np.array(json.loads(inside or "[]")).astype(dtype)
    if array.ndim == 0:
        return np.full(shape, array[()])
    if array.shape != shape:
        raise ValueError(shape)
    return array


def _float(digits: str, element: str) -> float:
    """A float from its decimals, or from its bits."""
    if not digits.startswith("0x"):
        return float(digits)
    dtype = numpy_dtype(element)
    return float(np.array(int(digits, 16), f"u{dtype.itemsize}").view(dtype))


def unquoted(text: str) -> str:
    """The string that a literal means; a name without quotes means itself."""
    if not text.startswith('"'):
        return text
    inside = text[1:-1]
    if "\\" not in inside:
        return inside
    data = _ESCAPE.sub(lambda m: chr(int(m[1], 16)) if m[1] else {"n": "\n", "t": "\t"}.get(m[2], m[2]), inside)
    try:
        return data.encode("latin-1").decode()
    except UnicodeError:
        return data
