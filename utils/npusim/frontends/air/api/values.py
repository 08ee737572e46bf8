"""Arrays of the host, tiles in a core's memory, slices of both, and expressions on tiles."""

from __future__ import annotations

from typing import Any

from npusim.errors import DesignError, UnsupportedError
from npusim.frontends.air.api.index import IndexExpr, coerce_index
from npusim.frontends.air.api.types import DType
from npusim.frontends.tracing import DesignTypeError


class Token:
    """What a transfer returns; transfers are ordered by the data they touch."""

    def __init__(self, op: Any = None) -> None:
        self.op = op

    def __repr__(self) -> str:
        return "air.api.Token()"


class Scope:
    """Where a tile lives: what ``herd.private()`` gives."""

    def __init__(self, kind: str, owner: Any) -> None:
        self.kind, self.owner = kind, owner


def _strides(shape: tuple[int, ...]) -> list[int]:
    strides = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        strides[i] = strides[i + 1] * shape[i + 1]
    return strides


def _window(key: Any, shape: tuple[int, ...], what: str) -> tuple[list[IndexExpr], list[int]]:
    """Offsets and sizes of a subscript."""
    keys = key if isinstance(key, tuple) else (key,)
    if any(k is Ellipsis for k in keys):
        raise UnsupportedError(f"... in a subscript of a {what} is not served")
    if len(keys) != len(shape):
        raise DesignError(f"a {what} of rank {len(shape)} was given {len(keys)} subscripts")
    offsets, sizes = [], []
    for axis, (k, extent) in enumerate(zip(keys, shape, strict=True)):
        if not isinstance(k, slice):
            offsets.append(coerce_index(k))
            sizes.append(1)
            continue
        if k.step not in (None, 1):
            raise UnsupportedError(f"a step of {k.step} in a subscript of a {what} is not served")
        start, stop = (
            coerce_index(0 if k.start is None else k.start),
            coerce_index(extent if k.stop is None else k.stop),
        )
        size = (stop - start).as_const()
        if size is None or size <= 0:
            raise DesignError(f"the slice {start} to {stop} of axis {axis} has no fixed size above 0")
        offsets.append(start)
        sizes.append(size)
    return offsets, sizes


class Tensor:
    """An array of the host; an argument of the kernel."""

    def __init__(self, shape: Any, dtype: DType, name: str | None = None) -> None:
        self.shape, self.dtype, self.name = tuple(int(n) for n in shape), dtype, name
        self.strides = _strides(self.shape)
        self.value: Any = None
        self.is_output = False

    def __getitem__(self, key: Any) -> TensorSlice:
        return TensorSlice(self, *_window(key, self.shape, "tensor"), list(self.strides))

    def __setitem__(self, key: Any, value: Any) -> None:
        raise DesignTypeError("nothing can be assigned to a tensor: ops.store(buffer, tensor[...]) writes to one")

    def __repr__(self) -> str:
        return f"Tensor(shape={self.shape}, dtype={self.dtype})"


class _Slice:
    """A window: what is moved."""

    offsets: list[IndexExpr]

    def materialize_offsets(self) -> list[Any]:
        return [offset.materialize() for offset in self.offsets]


class TensorSlice(_Slice):
    """A window of a tensor."""

    def __init__(self, tensor: Tensor, offsets: list[IndexExpr], sizes: list[int], strides: list[int]) -> None:
        self.tensor, self.offsets, self.sizes, self.strides = tensor, offsets, sizes, strides

    @property
    def dtype(self) -> DType:
        return self.tensor.dtype


class Buffer:
    """A tile in a core's memory. ``buf[:]`` is its contents, a smaller window is something to move."""

    def __init__(
        self,
        shape: Any,
        dtype: DType,
        scope: Scope | None = None,
        vector_width: int | None = None,
        value: Any = None,
        space: str = "L1",
        pack: Any = None,
    ) -> None:
        if pack is not None or space != "L1":
            raise UnsupportedError("packed tiles and tiles outside of L1 are not served in air.api")
        self.shape, self.dtype, self.scope, self.value = tuple(int(n) for n in shape), dtype, scope, value
        self.space, self.pack = space, pack
        self.vector_width = dtype.default_vector_width if vector_width is None else int(vector_width)
        self.strides = _strides(self.shape)
        self.released: Any = None

    @property
    def nbytes(self) -> int:
        n = self.dtype.itemsize
        for size in self.shape:
            n *= size
        return n

    def __getitem__(self, key: Any) -> Any:
        if _whole(key):
            return BufferExpr.leaf(self)
        return BufferSlice(self, *_window(key, self.shape, "buffer"), list(self.strides))

    def __setitem__(self, key: Any, value: Any) -> None:
        if not _whole(key):
            raise UnsupportedError("only a whole tile can be assigned (buf[:] = ...); ops.load(buf, ...) fills one")
        from npusim.frontends.air.api.emit import emit_elementwise

        emit_elementwise(self, BufferExpr.coerce(value))

    def __repr__(self) -> str:
        return f"Buffer(shape={self.shape}, dtype={self.dtype}, space={self.space})"


def _whole(key: Any) -> bool:
    keys = key if isinstance(key, tuple) else (key,)
    return all(isinstance(k, slice) and (k.start, k.stop, k.step) == (None, None, None) for k in keys)


class BufferSlice(_Slice):
    """A window of a tile."""

    def __init__(
        self, buffer: Buffer, offsets: list[IndexExpr], sizes: list[int], strides: list[int], logical_sizes: Any = None
    ) -> None:
        self.buffer, self.offsets, self.sizes, self.strides = buffer, offsets, sizes, strides
        self.logical_sizes = list(sizes if logical_sizes is None else logical_sizes)

    @property
    def dtype(self) -> DType:
        return self.buffer.dtype

    @property
    def value(self) -> Any:
        return self.buffer.value


class BufferExpr:
    """An expression on tiles, element by element; written out when it is assigned."""

    def __init__(
        self, kind: str, op: str | None = None, args: Any = (), buffer: Any = None, scalar: Any = None
    ) -> None:
        self.kind, self.op, self.args, self.buffer, self.scalar = kind, op, tuple(args), buffer, scalar

    @staticmethod
    def leaf(buffer: Buffer) -> BufferExpr:
        return BufferExpr("buffer", buffer=buffer)

    @staticmethod
    def coerce(value: Any) -> BufferExpr:
        """A tile or a number as an expression."""
        if isinstance(value, BufferExpr):
            return value
        if isinstance(value, Buffer):
            return BufferExpr.leaf(value)
        if isinstance(value, (int, float, IndexExpr)):
            return BufferExpr("scalar", scalar=value)
        raise DesignTypeError(
            f"{type(value).__name__} cannot be used in arithmetic: it takes whole tiles (buf[:]) and numbers; a smaller window "
            "can only be moved"
        )

    def _with(self, other: Any, op: str, swapped: bool = False) -> BufferExpr:
        two = BufferExpr.coerce(other)
        return BufferExpr("binary", op, (two, self) if swapped else (self, two))

    def __add__(self, o: Any) -> BufferExpr:
        return self._with(o, "add")

    def __radd__(self, o: Any) -> BufferExpr:
        return self._with(o, "add", swapped=True)

    def __sub__(self, o: Any) -> BufferExpr:
        return self._with(o, "sub")

    def __rsub__(self, o: Any) -> BufferExpr:
        return self._with(o, "sub", swapped=True)

    def __mul__(self, o: Any) -> BufferExpr:
        return self._with(o, "mul")

    def __rmul__(self, o: Any) -> BufferExpr:
        return self._with(o, "mul", swapped=True)

    def __truediv__(self, o: Any) -> BufferExpr:
        return self._with(o, "div")

    def __rtruediv__(self, o: Any) -> BufferExpr:
        return self._with(o, "div", swapped=True)

    def __neg__(self) -> BufferExpr:
        return BufferExpr("scalar", scalar=0) - self

    def leaves(self) -> list[Buffer]:
        """The tiles in it, from left to right."""
        return [self.buffer] if self.kind == "buffer" else [leaf for arg in self.args for leaf in arg.leaves()]
