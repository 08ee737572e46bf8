"""Run-time values while a body is traced: ``ScalarValue`` and ``MemRefValue``, with the operators that IRON's have.

An operator writes an operation down and gives its result; it never computes. What the real values refuse is refused
here with the same exception type, and what they accept silently though it cannot mean what was written (a Python ``if``,
an index out of range) is refused as well.
"""

from __future__ import annotations

from typing import Any, Never

from npusim.errors import DesignError
from npusim.frontends import operators as ops
from npusim.frontends.tracing import DesignTypeError, emit, here
from npusim.frontends.views import index_values, subview
from npusim.ir import Op, Value
from npusim.messages import explain
from npusim.types import MemRefType


def wrap(value: Value) -> Any:
    """The object that traced code gets for a value."""
    return MemRefValue(value) if isinstance(value.type, MemRefType) else ScalarValue(value)


class TracedValue:
    """Common to scalars and memrefs: one SSA value."""

    __array_ufunc__ = None  # so that `numpy_scalar + value` asks us, not numpy

    def __init__(self, value: Value) -> None:
        self.value = value

    @property
    def type(self) -> Any:
        """The MLIR type: a name for a scalar, a MemRefType for a memref."""
        return self.value.type

    @property
    def owner(self) -> Any:
        """The operation or block that defines the value."""
        return self.value.owner

    @property
    def result(self) -> TracedValue:
        return self

    def get_name(self) -> str:
        """A name to show; the printed module numbers its values itself."""
        return f"%{id(self.value) & 0xFFFF:x}"

    def __str__(self) -> str:
        return f"{type(self).__name__}({self.get_name()}, {self.value.type})"

    __repr__ = __str__


class ScalarValue(TracedValue):
    """A run-time number: an element that was loaded, an induction variable, the result of an operator."""

    @property
    def dtype(self) -> Any:
        return self.value.type

    def is_constant(self) -> bool:
        """Whether the value is known while tracing."""
        return isinstance(self.value.owner, Op) and self.value.owner.name == "arith.constant"

    @property
    def literal_value(self) -> int | float | bool:
        """The number behind a constant; DesignError for any other value."""
        if not self.is_constant():
            raise DesignError(self._runtime("its value was asked for while tracing", "it is known only on the core"))
        return self.value.owner.attrs["value"]  # type: ignore[no-any-return]

    def __int__(self) -> int:
        return int(self.literal_value)

    def __float__(self) -> float:
        return float(self.literal_value)

    def _runtime(self, what: str, hint: str) -> str:
        made = f" (made at {self.value.owner.loc})" if isinstance(self.value.owner, Op) else ""
        kind = "condition" if self.value.type == "i1" else f"value of type {self.value.type}"
        return explain(f"a run-time {kind}{made}: {what}.", hint=hint if hint.endswith(".)") else f"{hint}.", loc=here())

    # Where Python would decide while tracing. The real tracer lets `if` pass and always takes the branch.

    def __bool__(self) -> Never:
        raise DesignError(
            self._runtime(
                "Python's if, while, and, or, not, max, min or assert asks whether it is true, but the design is only "
                "being traced: its "
                "value exists when the core runs",
                "write `with if_(cond):` and `else_` from aie.helpers.dialects.scf, & and | for conditions, and "
                "arith.select, "
                "maxsi or minsi for values. (The real tracer lets `if` pass silently and always takes the branch.)",
            )
        )

    def __index__(self) -> Never:
        raise DesignTypeError(
            self._runtime(
                "range() or a Python index needs it as a number while tracing",
                "loop with range_ from aie.iron.controlflow, and index memrefs, not lists, with it",
            )
        )

    def __iter__(self) -> Never:
        raise DesignTypeError(self._runtime("it cannot be iterated or unpacked", "it is one number"))

    __hash__ = object.__hash__

    def __add__(self, other: Any) -> Any:
        return ops.binary("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return ops.binary("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return ops.binary("sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return ops.binary("sub", other, self)

    def __mul__(self, other: Any) -> Any:
        return ops.binary("mul", self, other)

    def __rmul__(self, other: Any) -> Any:
        return ops.binary("mul", other, self)

    def __truediv__(self, other: Any) -> Any:
        return ops.binary("div", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return ops.binary("div", other, self)

    def __floordiv__(self, other: Any) -> Any:
        return ops.binary("floordiv", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return ops.binary("floordiv", other, self)

    def __mod__(self, other: Any) -> Any:
        return ops.binary("rem", self, other)

    def __rmod__(self, other: Any) -> Any:
        return ops.binary("rem", other, self)

    def __and__(self, other: Any) -> Any:
        return ops.binary("and", self, other)

    def __rand__(self, other: Any) -> Any:
        return ops.binary("and", other, self)

    def __or__(self, other: Any) -> Any:
        return ops.binary("or", self, other)

    def __ror__(self, other: Any) -> Any:
        return ops.binary("or", other, self)

    def __lt__(self, other: Any) -> Any:
        return ops.compare("lt", self, other)

    def __le__(self, other: Any) -> Any:
        return ops.compare("le", self, other)

    def __gt__(self, other: Any) -> Any:
        return ops.compare("gt", self, other)

    def __ge__(self, other: Any) -> Any:
        return ops.compare("ge", self, other)

    def __eq__(self, other: object) -> Any:
        return other is self if other is self or not ops.is_number(other) else ops.compare("eq", self, other)

    def __ne__(self, other: object) -> Any:
        return other is not self if other is self or not ops.is_number(other) else ops.compare("ne", self, other)

    # Operators that the real values do not have either.

    def __pow__(self, other: Any) -> Never:
        raise ops.missing("**", self, "multiply it out, or call a kernel")

    def __lshift__(self, other: Any) -> Never:
        raise ops.missing("<<", self, "multiply by a power of two, or use arith.shli")

    def __rshift__(self, other: Any) -> Never:
        raise ops.missing(">>", self, "divide with // by a power of two, or use arith.shrsi")

    def __xor__(self, other: Any) -> Never:
        raise ops.missing("^", self, "use arith.xori")

    def __neg__(self) -> Never:
        raise ops.missing("unary -", self, "write 0 - x")

    def __invert__(self) -> Never:
        raise ops.missing("~", self, "use arith.xori with -1; a comparison is inverted with == 0")

    def __abs__(self) -> Never:
        raise ops.missing("abs()", self, "use arith.maxsi(x, 0 - x), or call a kernel")

    def __matmul__(self, other: Any) -> Never:
        raise ops.missing("@", self, "call a matrix kernel on the buffers")

    __rpow__, __rlshift__, __rrshift__, __rxor__, __rmatmul__ = __pow__, __lshift__, __rshift__, __xor__, __matmul__


class MemRefValue(TracedValue):
    """An array in a tile's memory: an acquired object, a view of one, or a host array of the sequence."""

    __hash__ = object.__hash__

    @property
    def memref(self) -> MemRefType:
        assert isinstance(self.value.type, MemRefType)
        return self.value.type

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes in elements."""
        return self.memref.shape

    @property
    def dtype(self) -> str:
        """The MLIR name of the element type."""
        return self.memref.element

    @property
    def rank(self) -> int:
        return len(self.memref.shape)

    @property
    def n_elements(self) -> int:
        return self.memref.size

    def has_rank(self) -> bool:
        return True

    def has_static_shape(self) -> bool:
        return True

    def __iter__(self) -> Never:
        raise DesignTypeError(f"{self.memref} cannot be iterated or unpacked: loop over indices with range_")

    def __bool__(self) -> Never:
        raise DesignError(f"{self.memref} has no truth value: compare elements inside if_")

    def __getitem__(self, index: Any) -> Any:
        """An element (all indices given), else a view; ``x[i]`` of a matrix is a view of shape (1, N), as in IRON."""
        if index is Ellipsis or _is_full(index):
            return self
        given = index_values(self.memref, index)
        if len(given) == self.rank and not any(isinstance(i, slice) for i in given):
            where = [ops.as_index(i).value for i in given]
            return wrap(emit("memref.load", (self.value, *where), (self.memref.element,)).result)
        return wrap(subview(self.value, given))

    def __setitem__(self, index: Any, source: Any) -> None:
        """Store one element; the number or value must have the memref's element type (a Python number is converted)."""
        if isinstance(index, slice) or index is Ellipsis:
            raise DesignTypeError(f"a slice of {self.memref} cannot be assigned: store element by element in range_")
        given = index_values(self.memref, index)
        if any(isinstance(i, slice) for i in given):
            raise DesignTypeError(f"a slice of {self.memref} cannot be assigned: store element by element in range_")
        if len(given) != self.rank:
            raise DesignError(
                f"storing into {self.memref} needs {self.rank} indices, got {len(given)}: write x[i, j] = value"
            )
        where = [ops.as_index(i).value for i in given]
        stored = ops.element(source, self.memref)
        emit("memref.store", (stored.value, self.value, *where))


def _is_full(index: Any) -> bool:
    """Whether an index takes everything: ``x[:]``, ``x[:, :]``."""
    parts = index if isinstance(index, tuple) else (index,)
    return bool(parts) and all(isinstance(i, slice) and i == slice(None) for i in parts)
