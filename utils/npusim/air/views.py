"""What each memref of a projection is a view of: a buffer or host array, an offset and strides in elements."""

from __future__ import annotations

from dataclasses import dataclass

from npusim.air.fold import Scalars
from npusim.air.graph import DYNAMIC
from npusim.errors import UnsupportedError
from npusim.frontends.views import strides_of
from npusim.ir import Op, Value
from npusim.types import MemRefType


@dataclass(frozen=True)
class View:
    """``root`` is the value of the buffer (or host array) in the projection."""

    root: Value
    offset: int | Value
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class Views:
    """The views known so far."""

    def __init__(self) -> None:
        self._views: dict[Value, View] = {}

    def whole(self, value: Value) -> None:
        """A buffer or host array itself."""
        assert isinstance(value.type, MemRefType)
        self._views[value] = View(value, 0, value.type.shape, strides_of(value.type))

    def same(self, alias: Value, value: Value) -> None:
        """Another name for a view, or for memory that this party does not see."""
        if value in self._views:
            self._views[alias] = self._views[value]
        else:
            self._views.pop(alias, None)

    def of(self, value: Value) -> View:
        """The view behind a memref; UnsupportedError if it comes from somewhere that is not followed."""
        if value not in self._views:
            where = f" (made at {value.owner.loc})" if isinstance(value.owner, Op) else ""
            raise UnsupportedError(f"a transfer of a {value.type}{where} whose memory cannot be told is not served")
        return self._views[value]

    def add(self, op: Op, scalars: Scalars) -> None:
        """A subview or a reshaping; of memory that this party does not see nothing is kept."""
        source, result = self._views.get(op.operands[0]), op.result.type
        assert isinstance(result, MemRefType)
        if source is None:
            self._views.pop(op.result, None)
            return
        offset = source.offset
        if op.name == "memref.subview":
            dynamic = iter(op.operands[1:])
            for entry, stride in zip(op.attrs["static_offsets"], source.strides, strict=True):
                first = scalars.index(next(dynamic)) if entry == DYNAMIC else int(entry)
                offset = scalars.add(offset, scalars.times(first, stride, op.loc), op.loc)
        self._views[op.result] = View(source.root, offset, result.shape, strides_of(result))
