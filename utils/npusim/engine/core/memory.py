"""Loads, stores and views of memrefs. Every index is checked: outside is an error here, silence on the core."""

from __future__ import annotations

from collections.abc import Sequence

from npusim.engine.core.writer import Writer, serves
from npusim.engine.failure import failure
from npusim.ir import Op, Value, base_of
from npusim.types import MemRefType

_DYNAMIC = -(2**62)  # MLIR marks an entry that is an operand with the smallest 64-bit integer


@serves("memref.load")
def load(w: Writer, op: Op, depth: int) -> None:
    """One element of a memref."""
    if w.evaluates(op):
        w.in_turn(depth, op.operands[0])
        where = _element(w, op.operands[0], op.operands[1:], depth)
        w.line(depth, f"{w.new(op.result)} = {where}")
        buffer = w.core.buffers.get(base_of(op.operands[0]))
        if buffer is not None and buffer.host_written:
            w.line(depth, f"ME.read.add({w.bind('H', buffer)})")
    w.charge("load")


@serves("memref.store")
def store(w: Writer, op: Op, depth: int) -> None:
    """Set one element of a memref."""
    if w.evaluates(op):
        w.in_turn(depth, op.operands[1])
        where = _element(w, op.operands[1], op.operands[2:], depth)
        w.line(depth, f"{where} = {w.name(op.operands[0])}")
    w.charge("store")


def _element(w: Writer, memref: Value, indices: Sequence[Value], depth: int) -> str:
    assert isinstance(memref.type, MemRefType)
    for value, size in zip(indices, memref.type.shape, strict=True):
        _check(w, value, size, depth)
    subscript = ", ".join(w.name(v) for v in indices) or "()"
    return f"{w.name(memref)}[{subscript}]"


def _check(w: Writer, index: Value, size: int, depth: int) -> None:
    """numpy refuses an index that is too large; a negative one it would take from the end."""
    known = w.constant(index)
    if known is not None:
        if not 0 <= known < size:
            raise failure(w.core, w.loc, IndexError(f"index {known} is outside of 0 to {size - 1}"))
    elif w.starts.get(index, -1) < 0:
        name = w.name(index)
        w.line(depth, f"if {name} < 0: raise IndexError(f'index {{{name}}} is outside of 0 to {size - 1}')")


@serves("memref.subview", "memref.collapse_shape", "memref.expand_shape", "memref.cast", "memref.reinterpret_cast")
def view(w: Writer, op: Op, depth: int) -> None:
    """Another view of the same memory."""
    if not w.evaluates(op):
        return
    result = op.result.type
    assert isinstance(result, MemRefType)
    text = w.name(op.operands[0])
    if op.name == "memref.subview":
        text += f"[{_slices(w, op)}]"
    w.line(depth, f"{w.new(op.result)} = {text}.reshape({result.shape!r})")


def _slices(w: Writer, op: Op) -> str:
    """The numpy slices of a subview; dynamic entries take the operands in order."""
    entries = [op.attrs[f"static_{part}"] for part in ("offsets", "sizes", "strides")]
    rest = iter(op.operands[1:])
    named = [[w.name(next(rest)) if n < _DYNAMIC else str(n) for n in entry] for entry in entries]
    return ", ".join(f"{first}:{first} + {n} * {step}:{step}" for first, n, step in zip(*named, strict=True))
