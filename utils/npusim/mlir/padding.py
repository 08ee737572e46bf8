"""The value of padding: MLIR carries the 32-bit word that the hardware repeats, npusim the element."""

from __future__ import annotations

from npusim.errors import UnsupportedError
from npusim.types import MemRefType


def pad_word(value: int, type: MemRefType) -> int:
    """The word for an element: its bits repeated (``pack_pad_value`` of aie.helpers.util). No elements over 4 bytes."""
    width = _width(type)
    bits = value & ((1 << width) - 1)
    return sum(bits << shift for shift in range(0, 32, width))


def pad_element(word: int, type: MemRefType) -> int:
    """The element, as a signed number, that a word repeats; UnsupportedError if the word does not repeat one."""
    if word == 0:
        return 0
    width = _width(type)
    value = word & ((1 << width) - 1)
    if pad_word(value, type) != word & 0xFFFFFFFF:
        raise UnsupportedError(f"pad value {word:#010x}, which does not repeat one element of {type.element}")
    return value - (1 << width) if value >> (width - 1) else value


def _width(type: MemRefType) -> int:
    width = 8 * type.dtype.itemsize
    if width > 32:
        raise UnsupportedError(f"a pad value for elements of {width} bits (the register holds 32)")
    return width
