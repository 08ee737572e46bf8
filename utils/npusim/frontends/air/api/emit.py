"""Elementwise assignments written out: a loop nest over the tile, its innermost axis in vectors where they fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from npusim.air.affine import AffineDimExpr, AffineMap
from npusim.errors import DesignError, UnsupportedError
from npusim.frontends.air.api.index import IndexExpr
from npusim.frontends.air.api.types import DType, require_signless
from npusim.frontends.air.api.values import Buffer, BufferExpr
from npusim.frontends.air.dialect_arith import NAMES as ARITH
from npusim.frontends.air.dialect_memref import load, store
from npusim.frontends.air.dialect_scf import for_, yield_
from npusim.frontends.air.types import VectorType
from npusim.frontends.air.values import emit, index_of, value_of, wrap

_FLOAT = {"add": "AddFOp", "sub": "SubFOp", "mul": "MulFOp", "div": "DivFOp", "max": "MaximumFOp", "min": "MinimumFOp"}
_INT = {"add": "AddIOp", "sub": "SubIOp", "mul": "MulIOp", "div": "DivSIOp", "max": "MaxSIOp", "min": "MinSIOp"}


def emit_elementwise(dst: Buffer, expr: BufferExpr) -> None:
    """Write ``dst[:] = expr``. DesignError for tiles of another shape or element type."""
    for leaf in expr.leaves():
        if leaf.dtype is not dst.dtype:
            raise DesignError(
                f"the element types of an assignment differ: the destination is {dst.dtype}, an operand {leaf.dtype} (dtype "
                "mismatch); elementwise arithmetic does not convert"
            )
        if leaf.shape != dst.shape:
            raise DesignError(
                f"the shapes of an assignment differ: the destination is {dst.shape}, an operand {leaf.shape}"
            )
    if expr.kind != "buffer":
        require_signless(dst.dtype, "arithmetic on a tile")
    width = dst.vector_width
    if not dst.dtype.is_unsigned and dst.shape and width > 0 and dst.shape[-1] % width == 0:
        _vectors(dst, expr, width)
    else:
        _nest([(n, 1) for n in dst.shape], lambda at: store(_scalar(expr, at, dst.dtype), dst.value, at))


def _nest(bounds: list[tuple[int, int]], body: Callable[[list[Any]], object], at: tuple[Any, ...] = ()) -> None:
    """Loops over (size, step) pairs around a body that takes their variables."""
    if len(at) == len(bounds):
        body(list(at))
        return
    size, step = bounds[len(at)]
    for i in for_(0, size, step):
        _nest(bounds, body, (*at, i))
        yield_([])


def _vectors(dst: Buffer, expr: BufferExpr, width: int) -> None:
    rank, element = len(dst.shape), dst.dtype.mlir()
    kind = VectorType.get([width], element)
    innermost = AffineMap.get(rank, 0, [AffineDimExpr.get(rank - 1)])
    zero = ARITH["ConstantOp"](element, 0.0 if dst.dtype.is_float else 0)

    def read(buffer: Buffer, at: list[Any]) -> Any:
        where = [index_of(i, "an index") for i in at]
        operands = (value_of(buffer.value, "a tile"), *where, value_of(zero, "the padding"))
        return wrap(
            emit(
                "vector.transfer_read",
                operands,
                (str(kind),),
                permutation_map=innermost,
                in_bounds=(True,),
                segments=(1, rank, 1, 0),
            ).result
        )

    def value(node: BufferExpr, at: list[Any]) -> Any:
        if node.kind == "buffer":
            return read(node.buffer, at)
        if node.kind == "scalar":
            number = _number(node.scalar, dst.dtype)
            return wrap(emit("vector.broadcast", (value_of(number, "a number"),), (str(kind),)).result)
        return _operation(node, dst.dtype)(*(value(arg, at) for arg in node.args))

    def body(at: list[Any]) -> None:
        result = value_of(value(expr, at), "the result")
        where = [index_of(i, "an index") for i in at]
        operands = (result, value_of(dst.value, "a tile"), *where)
        emit("vector.transfer_write", operands, permutation_map=innermost, in_bounds=(True,), segments=(1, 1, rank, 0))

    _nest([*((n, 1) for n in dst.shape[:-1]), (dst.shape[-1], width)], body)


def _scalar(node: BufferExpr, at: list[Any], dtype: DType) -> Any:
    if node.kind == "buffer":
        return load(node.buffer.value, at)
    if node.kind == "scalar":
        return _number(node.scalar, dtype)
    return _operation(node, dtype)(*(_scalar(arg, at, dtype) for arg in node.args))


def _operation(node: BufferExpr, dtype: DType) -> Any:
    table = _FLOAT if dtype.is_float else _INT
    if node.kind != "binary" or node.op not in table:
        raise UnsupportedError(f"the operation {node.op!r} on tiles of {dtype} is not served")
    return ARITH[table[node.op]]


def _number(number: Any, dtype: DType) -> Any:
    """A number (or coordinate) of an expression as a scalar of the tile's element type."""
    if isinstance(number, IndexExpr):
        made = number.materialize()
        if not isinstance(made, int):
            if dtype.is_float:
                raise UnsupportedError("a coordinate in arithmetic on tiles of floats is not served")
            return ARITH["index_cast"](dtype.mlir(), made)
        number = made
    if dtype.is_float:
        return ARITH["ConstantOp"](dtype.mlir(), float(number))
    if number != int(number):
        raise DesignError(f"{number} in arithmetic on tiles of {dtype} would be truncated")
    return ARITH["ConstantOp"](dtype.mlir(), int(number))
