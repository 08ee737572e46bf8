"""``air.api.ops``: transfers between the host's arrays and tiles, and functions for expressions on tiles."""

from __future__ import annotations

from typing import Any

from npusim.errors import DesignError, UnsupportedError
from npusim.frontends.air.api.types import DType
from npusim.frontends.air.api.values import Buffer, BufferExpr, BufferSlice, Tensor, TensorSlice, Token
from npusim.frontends.air.dialect_air import dma_memcpy_nd
from npusim.frontends.tracing import DesignTypeError


def load(dst: Any, src: Any, pad_before: Any = None, pad_after: Any = None, dependency: Any = None) -> Token:
    """Fill a tile from a window of a tensor."""
    if not isinstance(dst, Buffer):
        raise DesignTypeError(f"ops.load fills a tile of air.alloc, got {type(dst).__name__}")
    return _move("load", dst, src, pad_before, pad_after, dependency)


def store(src: Any, dst: Any, pad_before: Any = None, pad_after: Any = None, dependency: Any = None) -> Token:
    """Write a tile, or a window of it, to a window of a tensor, which so becomes an output."""
    if not isinstance(src, (Buffer, BufferSlice)):
        raise DesignTypeError(f"ops.store moves a tile of air.alloc or a window of one, got {type(src).__name__}")
    token = _move("store", dst, src, pad_before, pad_after, dependency)
    if isinstance(dst, (Tensor, TensorSlice)):
        (dst if isinstance(dst, Tensor) else dst.tensor).is_output = True
    return token


def _move(name: str, dst: Any, src: Any, pad_before: Any, pad_after: Any, dependency: Any) -> Token:
    if pad_before is not None or pad_after is not None:
        raise UnsupportedError(f"pad_before= and pad_after= of ops.{name} are not served")
    given = [] if dependency is None else dependency if isinstance(dependency, (list, tuple)) else [dependency]
    if not all(isinstance(token, Token) for token in given):
        raise DesignTypeError(f"dependency= of ops.{name} takes what transfers return")
    into, of = (_sizes(name, side) for side in (dst, src))
    if _squeezed(into) != _squeezed(of):
        raise DesignError(f"the shapes of ops.{name} differ: the destination is {into}, the source {of}")
    if _dtype(dst) is not _dtype(src):
        raise DesignError(
            f"the element types of ops.{name} differ: the destination is {_dtype(dst)}, the source {_dtype(src)}"
        )
    walks: dict[str, Any] = {}
    for end, side in (("dst", dst), ("src", src)):
        if isinstance(side, (TensorSlice, BufferSlice)):
            offsets = side.materialize_offsets()
            walks |= {f"{end}_offsets": offsets, f"{end}_sizes": side.sizes, f"{end}_strides": side.strides}
    return Token(dma_memcpy_nd(_memref(dst), _memref(src), **walks))


def _sizes(name: str, side: Any) -> tuple[int, ...]:
    if isinstance(side, (Buffer, Tensor)):
        return side.shape
    if isinstance(side, (BufferSlice, TensorSlice)):
        return tuple(side.sizes)
    raise DesignTypeError(
        f"ops.{name} moves tiles, tensors and windows of them (A[i : i + n]), got {type(side).__name__}"
    )


def _squeezed(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Without leading ones."""
    while len(sizes) > 1 and sizes[0] == 1:
        sizes = sizes[1:]
    return sizes


def _dtype(side: Any) -> DType:
    found: DType = side.dtype
    return found


def _memref(side: Any) -> Any:
    found = side.tensor.value if isinstance(side, TensorSlice) else side.value
    if found is None:
        raise DesignError("a tile or tensor is used outside of the body of its launch")
    return found


def _two(name: str, op: str, a: Any, b: Any) -> BufferExpr:
    one, two = BufferExpr.coerce(a), BufferExpr.coerce(b)
    if not one.leaves() and not two.leaves():
        raise DesignError(f"ops.{name} needs a tile among its arguments")
    return BufferExpr("binary", op, (one, two))


def maximum(a: Any, b: Any) -> BufferExpr:
    """The larger one, element by element."""
    return _two("maximum", "max", a, b)


def minimum(a: Any, b: Any) -> BufferExpr:
    """The smaller one, element by element."""
    return _two("minimum", "min", a, b)


def relu(x: Any) -> BufferExpr:
    """0 where an element is negative."""
    expr = BufferExpr.coerce(x)
    leaves = expr.leaves()
    return _two("relu", "max", expr, 0.0 if leaves and leaves[0].dtype.is_float else 0)


NAMES: dict[str, Any] = {"load": load, "store": store, "maximum": maximum, "minimum": minimum, "relu": relu}
