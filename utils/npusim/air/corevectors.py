"""Vectors in the cores of AIR designs: what ``air.api`` writes for arithmetic on tiles.

A vector is a numpy array. One operation on it costs what it does on a scalar: both go through the vector unit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from npusim.air.affine import AffineDimExpr, AffineMap
from npusim.air.machine import AirCore
from npusim.engine import arith
from npusim.engine.core.scalars import scalar
from npusim.engine.core.writer import Writer, serves
from npusim.errors import UnsupportedError
from npusim.ir import Op, Value
from npusim.types import MemRefType, numpy_dtype


def _is_vector(value: Value) -> bool:
    return str(value.type).startswith("vector")


def _parts(kind: str) -> tuple[int, str]:
    """Lanes and element type of ``vector<16xbf16>``. UnsupportedError for more than one dimension."""
    sizes, _, element = kind[len("vector<") : -1].rpartition("x")
    if not sizes.isdecimal():
        raise UnsupportedError(f"a {kind} is not served; vectors have one dimension here")
    return int(sizes), element


def _lanes(w: Writer, op: Op, memref: Value, vector: Value) -> int:
    """How many elements a transfer reads or writes along the innermost axis."""
    if not isinstance(w.core, AirCore):
        raise UnsupportedError(f"operation {op.name} in core {w.core.name!r} at {op.loc} is not served")
    assert isinstance(memref.type, MemRefType)
    rank = len(memref.type.shape)
    if str(op.attrs["permutation_map"]) != str(AffineMap.get(rank, 0, [AffineDimExpr.get(rank - 1)])):
        raise UnsupportedError(f"{op.name} at {op.loc} is served along the innermost axis only")
    return _parts(str(vector.type))[0]


def _place(w: Writer, memref: Value, indices: tuple[Value, ...], lanes: int, depth: int) -> str:
    """The elements as a subscript; outside is an error."""
    assert isinstance(memref.type, MemRefType)
    names = [w.name(v) for v in indices]
    for name, value, size, span in zip(names, indices, memref.type.shape, [1] * (len(names) - 1) + [lanes]):
        if value not in w.starts or w.starts[value] < 0:
            w.line(depth, f"if {name} < 0: raise IndexError(f'index {{{name}}} is outside of 0 to {size - span}')")
    last, most = names[-1], memref.type.shape[-1] - lanes
    w.line(depth, f"if {last} > {most}: raise IndexError(f'index {{{last}}} is outside of 0 to {most}')")
    return f"{w.name(memref)}[{', '.join([*names[:-1], f'{last}:{last} + {lanes}'])}]"


@serves("vector.transfer_read")
def read(w: Writer, op: Op, depth: int) -> None:
    """A vector from a tile."""
    memref, *indices = op.operands[: op.attrs["segments"][0] + op.attrs["segments"][1]]
    lanes = _lanes(w, op, memref, op.result)
    if w.around.data:
        w.line(depth, f"{w.new(op.result)} = {_place(w, memref, tuple(indices), lanes, depth)}.copy()")
    w.charge("load")


@serves("vector.transfer_write")
def write(w: Writer, op: Op, depth: int) -> None:
    """A vector to a tile."""
    vector, memref, *indices = op.operands
    lanes = _lanes(w, op, memref, vector)
    if w.around.data:
        where = _place(w, memref, tuple(indices), lanes, depth)
        w.line(depth, f"{where} = {w.name(vector)}")
    w.charge("store")


@serves("vector.broadcast")
def broadcast(w: Writer, op: Op, depth: int) -> None:
    """A scalar in every lane."""
    lanes, element = _parts(str(op.result.type))
    if w.around.data:
        fill = w.bind("F", np.full)
        w.line(
            depth,
            f"{w.new(op.result)} = {fill}({lanes}, {w.name(op.operands[0])}, np.dtype('{numpy_dtype(element).name}'))",
        )
    w.charge("int")


@serves(*arith.SERVED)
def arithmetic(w: Writer, op: Op, depth: int) -> None:
    """Arithmetic on scalars, as in any core, or on vectors."""
    if not _is_vector(op.result):
        scalar(w, op, depth)
        return
    if op.name not in _VECTORS:
        raise UnsupportedError(f"operation {op.name} on a {op.result.type} at {op.loc} is not served")
    if w.around.data:
        names = [w.name(v) for v in op.operands]
        w.line(depth, f"{w.new(op.result)} = {_VECTORS[op.name].format(*names, div=w.bind('D', _divide))}")
    w.charge(arith.cost_class(op))


def _divide(a: Any, b: Any) -> Any:
    """Signed division towards zero, lane by lane."""
    if not b.all():
        raise ZeroDivisionError("division by zero in a lane of a vector")
    wide = np.abs(a.astype(np.int64)) // np.abs(b.astype(np.int64))
    return np.where((a < 0) == (b < 0), wide, -wide).astype(a.dtype)


_VECTORS = {
    "arith.addi": "{0} + {1}",
    "arith.subi": "{0} - {1}",
    "arith.muli": "{0} * {1}",
    "arith.divsi": "{div}({0}, {1})",
    "arith.maxsi": "np.maximum({0}, {1})",
    "arith.minsi": "np.minimum({0}, {1})",
    "arith.addf": "{0} + {1}",
    "arith.subf": "{0} - {1}",
    "arith.mulf": "{0} * {1}",
    "arith.divf": "{0} / {1}",
    "arith.maximumf": "np.maximum({0}, {1})",
    "arith.minimumf": "np.minimum({0}, {1})",
}
