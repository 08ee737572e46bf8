"""Operations and values as the bindings show them: an operation with one result can stand for that result.

``AddIOp(a, b)`` is a traced scalar and has ``.result``, ``.operation`` and ``.attributes`` as well; ``AllocOp(type, [], [])``
is a traced memref in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from npusim import ir
from npusim.errors import DesignError
from npusim.frontends import operators as ops
from npusim.frontends import tracing
from npusim.frontends.air.attributes import AttributeMap
from npusim.frontends.air.types import Type, shown
from npusim.frontends.finder import NoSuchNameError
from npusim.frontends.tracing import DesignTypeError
from npusim.frontends.values import MemRefValue, ScalarValue, TracedValue


class OpView:
    """An operation that was written down."""

    op: ir.Op

    @property
    def operation(self) -> Any:
        return self

    @property
    def attributes(self) -> Any:
        return AttributeMap(self.op)

    @property
    def name(self) -> str:
        return self.op.name

    @property
    def results(self) -> list[Any]:
        return [wrap(v) for v in self.op.results]

    @property
    def regions(self) -> list[Any]:
        return list(self.op.regions)

    def __getattr__(self, name: str) -> Any:
        raise NoSuchNameError(
            f"{type(self).__name__}.{name} is not served by the simulated 'air' of npusim; the real package may have it"
        )


class Typed(TracedValue):
    """A traced value whose ``type`` is a type object of the bindings."""

    @property
    def type(self) -> Any:
        return shown(self.value.type)

    @property
    def result(self) -> Any:
        return self


class Scalar(Typed, ScalarValue):
    """A run-time scalar (or vector)."""

    __hash__ = object.__hash__

    def __bool__(self) -> Any:
        raise DesignError(
            f"a run-time {self.value.type}: Python's if, while, and, or, not needs its truth while tracing, when it has none; "
            "use scf.IfOp or affine.AffineIfOp"
        )


class MemRef(Typed, MemRefValue):
    """A memref; ``x[i]`` is not served, as the bindings have none: use load and store."""

    __hash__ = object.__hash__


class ScalarOp(Scalar, OpView):
    """An operation that gives one scalar."""

    def __init__(self, op: ir.Op) -> None:
        super().__init__(op.result)
        self.op = op


class MemRefOp(MemRef, OpView):
    """An operation that gives one memref."""

    def __init__(self, op: ir.Op) -> None:
        super().__init__(op.result)
        self.op = op


def wrap(value: ir.Value) -> Any:
    """The object that a design gets for a value."""
    return Scalar(value) if isinstance(value.type, str) else MemRef(value)


def value_of(x: Any, what: str) -> ir.Value:
    """The value behind an operand: a traced value, or an operation with one result."""
    if isinstance(x, TracedValue):
        return x.value
    if isinstance(x, OpView) and len(x.op.results) == 1:
        return x.op.result
    raise DesignTypeError(f"{what} needs a value, got {x!r}")


def memref_of(x: Any, what: str) -> ir.Value:
    """The value of a memref operand."""
    value = value_of(x, what)
    if isinstance(value.type, str):
        raise DesignTypeError(f"{what} needs a memref, got a {value.type}")
    return value


def index_of(x: Any, what: str) -> ir.Value:
    """An index operand; a Python int becomes a constant."""
    if isinstance(x, int) and not isinstance(x, bool):
        return ops.constant(x, "index").value
    value = value_of(x, what)
    if value.type != "index":
        raise DesignTypeError(f"{what} needs an index, got a {value.type}: convert it with arith.IndexCastOp")
    return value


def plain_type(type: Any, what: str) -> Any:
    """The type in npusim's IR."""
    if not isinstance(type, Type):
        raise DesignTypeError(f"{what} needs a type such as T.i32(), got {type!r}")
    return type.plain


def emit(name: str, operands: Sequence[ir.Value] = (), results: Sequence[Any] = (), **more: Any) -> ir.Op:
    """Write an operation down at the insertion point. DesignError outside of a function."""
    if tracing.current() is None:
        raise DesignError(
            f"what becomes {name} belongs into a function: decorate one with @FuncOp.from_py_func(...) inside a "
            "@module_builder function"
        )
    return tracing.emit(name, operands, results, **more)
