"""The ``memref`` dialect: buffers, their elements and views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from npusim import ir, types
from npusim.air.graph import DYNAMIC
from npusim.errors import DesignError, UnsupportedError
from npusim.frontends import tracing
from npusim.frontends.air.attributes import plain
from npusim.frontends.air.types import MemRefType
from npusim.frontends.air.values import MemRefOp, OpView, ScalarOp, emit, index_of, memref_of, value_of
from npusim.frontends.control import refuse_placement
from npusim.frontends.tracing import DesignTypeError
from npusim.frontends.views import contiguous, strides_of

_SPACE = {"sequence": 0, "launch": 0, "segment": 1, "herd": 2}


class AllocOp(MemRefOp):
    """``AllocOp(memref_type, [], [])``: L2 in a segment; L1 in a herd, or in a segment to be passed to a herd (then each core
    has its own)."""

    def __init__(
        self,
        memref: Any,
        dynamicSizes: Any,
        symbolOperands: Any,
        *,
        alignment: Any = None,
        loc: Any = None,
        ip: Any = None,
    ) -> None:
        refuse_placement(loc, ip)
        if dynamicSizes or symbolOperands:
            raise UnsupportedError("memrefs with sizes known only at run time are not served")
        if not isinstance(memref, MemRefType):
            raise DesignTypeError(f"AllocOp needs a memref type, got {memref!r}")
        _check_space(memref)
        super().__init__(emit("memref.alloc", (), (memref.plain,)))


def _check_space(of: MemRefType) -> None:
    scope = tracing.current()
    if scope is None:
        return
    innermost, space = _SPACE[scope.kind], of.memory_space or 0
    if space < innermost:
        where = (
            "a herd can only allocate L1 (memory space 2)"
            if innermost == 2
            else "a segment allocates L2 or L1 (1 or 2)"
        )
        raise DesignError(f"{of} is allocated in the {scope.what} at {tracing.here()}: {where}")
    if scope.kind in ("sequence", "launch"):
        raise UnsupportedError(f"memory allocated outside of a segment ({of} at {tracing.here()}) is not served")


class DeallocOp(OpView):
    """The end of a buffer's life."""

    def __init__(self, memref: Any, *, loc: Any = None, ip: Any = None) -> None:
        refuse_placement(loc, ip)
        self.op = emit("memref.dealloc", (memref_of(memref, "DeallocOp"),))


def _element(memref: Any, indices: Any, what: str) -> tuple[ir.Value, list[ir.Value]]:
    source = memref_of(memref, what)
    assert isinstance(source.type, types.MemRefType)
    given = [index_of(i, f"an index of {what}") for i in (indices if isinstance(indices, Sequence) else [indices])]
    if len(given) != len(source.type.shape):
        raise DesignError(f"{what} of {source.type} needs {len(source.type.shape)} indices, got {len(given)}")
    return source, given


def load(
    memref: Any,
    indices: Any,
    *,
    nontemporal: Any = None,
    alignment: Any = None,
    results: Any = None,
    loc: Any = None,
    ip: Any = None,
) -> Any:
    """One element."""
    refuse_placement(loc, ip)
    source, given = _element(memref, indices, "memref.load")
    assert isinstance(source.type, types.MemRefType)
    return ScalarOp(emit("memref.load", (source, *given), (source.type.element,)))


class StoreOp(OpView):
    """Set one element."""

    def __init__(
        self,
        value: Any,
        memref: Any,
        indices: Any,
        *,
        nontemporal: Any = None,
        alignment: Any = None,
        loc: Any = None,
        ip: Any = None,
    ) -> None:
        refuse_placement(loc, ip)
        into, given = _element(memref, indices, "memref.store")
        stored = value_of(value, "memref.store")
        assert isinstance(into.type, types.MemRefType)
        if stored.type != into.type.element:
            raise DesignError(f"a {stored.type} cannot be stored into {into.type} at {tracing.here()}")
        self.op = emit("memref.store", (stored, into, *given))


def store(
    value: Any,
    memref: Any,
    indices: Any,
    *,
    nontemporal: Any = None,
    alignment: Any = None,
    loc: Any = None,
    ip: Any = None,
) -> StoreOp:
    """Set one element."""
    return StoreOp(value, memref, indices, loc=loc, ip=ip)


def _reshape(name: str, result: Any, src: Any, reassociation: Any) -> ir.Op:
    source = memref_of(src, name)
    if not isinstance(result, MemRefType):
        raise DesignTypeError(f"{name} needs the memref type of its result first, got {result!r}")
    of, to = source.type, result.plain
    assert isinstance(of, types.MemRefType) and isinstance(to, types.MemRefType)
    if of.size != to.size or of.element != to.element or of.space != to.space:
        raise DesignError(f"{name} cannot make {to} of {of}: as many elements, the same type and memory space")
    return emit(f"memref.{name}", (source,), (to,), reassociation=plain(reassociation))


class CollapseShapeOp(MemRefOp):
    """The same memory with some dimensions joined: ``CollapseShapeOp(type, src, [[0, 1]])``."""

    def __init__(self, result: Any, src: Any, reassociation: Any, *, loc: Any = None, ip: Any = None) -> None:
        refuse_placement(loc, ip)
        super().__init__(_reshape("collapse_shape", result, src, reassociation))


class ExpandShapeOp(MemRefOp):
    """The same memory with a dimension taken apart."""

    def __init__(
        self,
        result: Any,
        src: Any,
        reassociation: Any,
        output_shape: Any,
        static_output_shape: Any,
        *,
        loc: Any = None,
        ip: Any = None,
    ) -> None:
        refuse_placement(loc, ip)
        if output_shape:
            raise UnsupportedError("expand_shape to sizes known only at run time is not served")
        op = _reshape("expand_shape", result, src, reassociation)
        op.attrs["static_output_shape"] = tuple(int(n) for n in plain(static_output_shape))
        super().__init__(op)


class CastOp(MemRefOp):
    """The same memory under another type of the same shape and strides: ``CastOp(type, src)``."""

    def __init__(self, dest: Any, source: Any, *, loc: Any = None, ip: Any = None) -> None:
        refuse_placement(loc, ip)
        of = memref_of(source, "CastOp")
        assert isinstance(of.type, types.MemRefType)
        if not isinstance(dest, MemRefType):
            raise DesignTypeError(f"CastOp needs the memref type of its result first, got {dest!r}")
        to = dest.plain
        assert isinstance(to, types.MemRefType)
        same = (of.type.shape, of.type.element, of.type.space, strides_of(of.type))
        if same != (to.shape, to.element, to.space, strides_of(to)):
            raise UnsupportedError(f"a cast of {of.type} to {to} is not served: only offsets may become unknown")
        super().__init__(emit("memref.cast", (of,), (to,)))


class SubViewOp(MemRefOp):
    """Not served in this form; ``subview(source, offsets, sizes, strides)`` is."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise UnsupportedError("SubViewOp is not served; write subview(source, offsets, sizes, strides)")


def collapse_shape(result: Any, src: Any, reassociation: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """The same memory with some dimensions joined."""
    return CollapseShapeOp(result, src, reassociation, loc=loc, ip=ip)


def expand_shape(
    result: Any,
    src: Any,
    reassociation: Any,
    output_shape: Any,
    static_output_shape: Any,
    *,
    loc: Any = None,
    ip: Any = None,
) -> Any:
    """The same memory with a dimension taken apart."""
    return ExpandShapeOp(result, src, reassociation, output_shape, static_output_shape, loc=loc, ip=ip)


def subview(
    source: Any, offsets: Any, sizes: Any, strides: Any, *, result_type: Any = None, loc: Any = None, ip: Any = None
) -> Any:
    """A part of a memref: offsets (ints or index values), sizes and steps (ints), one for each dimension."""
    refuse_placement(loc, ip)
    of = memref_of(source, "subview")
    assert isinstance(of.type, types.MemRefType)
    rank = len(of.type.shape)
    if not len(offsets) == len(sizes) == len(strides) == rank:
        raise DesignError(f"a subview of {of.type} needs {rank} offsets, sizes and strides")
    if not all(isinstance(n, int) for n in (*sizes, *strides)):
        raise UnsupportedError("a subview with sizes or strides known only at run time is not served")
    static = tuple(n if isinstance(n, int) else DYNAMIC for n in offsets)
    moving = [index_of(n, "an offset of subview") for n in offsets if not isinstance(n, int)]
    type = _subview_type(of.type, static, tuple(sizes), tuple(strides))
    if result_type is not None and str(result_type) != str(type):
        raise UnsupportedError(f"a subview of type {result_type}; the one inferred is {type}")
    return MemRefOp(
        emit(
            "memref.subview",
            (of, *moving),
            (type,),
            static_offsets=static,
            static_sizes=tuple(sizes),
            static_strides=tuple(strides),
        )
    )


def _subview_type(
    of: types.MemRefType, offsets: tuple[int, ...], sizes: tuple[int, ...], steps: tuple[int, ...]
) -> types.MemRefType:
    for axis, (offset, size, step, extent) in enumerate(zip(offsets, sizes, steps, of.shape)):
        if size < 1 or (offset != DYNAMIC and not 0 <= offset + (size - 1) * step < extent):
            raise DesignError(f"a subview of {of} at {tracing.here()} leaves dimension {axis}: {size} from {offset}")
    outer = strides_of(of)
    dynamic = of.dynamic_offset or DYNAMIC in offsets
    offset = 0 if dynamic else of.offset + sum(o * s for o, s in zip(offsets, outer))
    strides = tuple(a * b for a, b in zip(outer, steps))
    if strides == contiguous(sizes) and offset == 0 and not dynamic:
        return types.MemRefType(sizes, of.element, space=of.space)
    return types.MemRefType(sizes, of.element, offset, strides, dynamic, of.space)
