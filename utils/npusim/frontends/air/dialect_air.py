"""The ``air`` dialect: channels, puts and gets, and the two-sided DMA."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

from npusim import ir
from npusim.air.graph import DYNAMIC, check_pattern, ends_of_dma, put_or_get
from npusim.air.graph import Channel as ChannelDecl
from npusim.errors import DesignError, UnsupportedError
from npusim.frontends import operators as ops
from npusim.frontends import tracing
from npusim.frontends.air.attributes import AttributeMap, plain
from npusim.frontends.air.context import building
from npusim.frontends.air.dialect_func import CallOp, FuncOp
from npusim.frontends.air.regions import refuse_async
from npusim.frontends.air.types import FunctionType
from npusim.frontends.air.values import OpView, emit, index_of, memref_of, plain_type
from npusim.frontends.control import refuse_placement

KINDS = ("npu_dma_stream", "npu_cascade")


class MemorySpace(IntEnum):
    """Where a memref lies: L3 is DDR, L2 the MemTiles, L1 the compute tiles."""

    L3 = 0
    L2 = 1
    L1 = 2


class _ChannelAttributes(AttributeMap):
    """``channel.attributes``; the kind of the channel and its broadcast can be set through them."""

    def __init__(self, op: ir.Op, channel: ChannelDecl) -> None:
        super().__init__(op)
        self._channel = channel

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        set_attribute(self._channel, name, self._op.attrs[name])


def set_attribute(channel: ChannelDecl, name: str, value: Any) -> None:
    """Give a channel an attribute; UnsupportedError for one that is not served."""
    if name == "channel_type":
        if value not in KINDS:
            raise UnsupportedError(
                f"channel {channel.name!r}: channel_type {value!r} is not served; known: {', '.join(KINDS)}"
            )
        channel.kind = value
    elif name == "broadcast_shape":
        channel.broadcast = tuple(int(n) for n in value)
        _check_shape(channel)
    elif name == "buffer_resources":
        channel.buffer_resources = int(value)
    else:
        raise UnsupportedError(f"channel {channel.name!r}: the attribute {name!r} is not served")


def _check_shape(channel: ChannelDecl) -> None:
    size, wide = channel.size, channel.broadcast
    if wide and (len(size) != len(wide) or any(s not in (1, b) for s, b in zip(size, wide))):
        raise DesignError(
            f"channel {channel.name!r} of size {list(size)} cannot broadcast to {list(wide)}: give as many extents, each "
            "equal to the size or, where the size is 1, larger"
        )


class ChannelOp(OpView):
    """``air.channel``: a named stream, or an array of them."""

    def __init__(
        self, sym_name: Any, *, size: Any = None, channel_type: Any = None, loc: Any = None, ip: Any = None
    ) -> None:
        refuse_placement(loc, ip)
        module, name = building("a channel"), str(plain(sym_name))
        if name in module.channels:
            raise DesignError(
                f"channel {name!r} is declared twice: at {module.channels[name].loc} and {tracing.here()}"
            )
        sizes = tuple(int(n) for n in plain(size) or ())
        if any(n < 1 for n in sizes):
            raise DesignError(f"channel {name!r} needs positive sizes, got {list(sizes)}")
        self.channel = module.channels[name] = ChannelDecl(name, sizes, loc=tracing.here())
        self.op = ir.Op("air.channel", attrs={"sym_name": name, "size": sizes}, loc=self.channel.loc)
        if channel_type is not None:
            self.attributes["channel_type"] = channel_type

    @property
    def attributes(self) -> Any:
        return _ChannelAttributes(self.op, self.channel)


class Channel(ChannelOp):
    """A channel with broadcast: a put on it reaches every index along the dimensions that ``broadcast_shape`` widens."""

    def __init__(
        self,
        sym_name: Any,
        broadcast_shape: Any = None,
        size: Any = None,
        loc: Any = None,
        ip: Any = None,
        *,
        buffer_resources: Any = None,
    ) -> None:
        super().__init__(sym_name, size=size, loc=loc, ip=ip)
        if broadcast_shape is not None:
            self.attributes["broadcast_shape"] = broadcast_shape
        if buffer_resources is not None:
            self.attributes["buffer_resources"] = buffer_resources


def channel(sym_name: Any, *, size: Any = None, channel_type: Any = None, loc: Any = None, ip: Any = None) -> ChannelOp:
    """``air.channel`` with its kind: ``channel("c", size=[4, 3], channel_type="npu_cascade")``."""
    return ChannelOp(sym_name, size=size, channel_type=channel_type, loc=loc, ip=ip)


def pyint_to_index(i: Any) -> Any:
    """A Python int as an index constant; anything else as it is."""
    return ops.constant(i, "index") if isinstance(i, int) else i


def split_static_dynamic(entries: Sequence[Any]) -> tuple[list[Any], list[int]]:
    """Offsets, sizes or strides as (operands, static array), ints in the array and its rest marked as operands."""
    dynamic, static = [], []
    for entry in entries:
        if isinstance(entry, int):
            static.append(entry)
        else:
            static.append(DYNAMIC)
            dynamic.append(entry)
    return dynamic, static


def get_region_operand_types(operands: Sequence[Any]) -> list[Any]:
    """The types of what is passed to a body."""
    return [x.type for x in operands]


def _walk(end: str, memref: Any, offsets: Any, sizes: Any, strides: Any) -> tuple[list[list[ir.Value]], dict[str, Any]]:
    """The operand groups and static arrays of one side of a transfer."""
    groups, static = [[memref_of(memref, "a transfer")]], {}
    for part, entries in (("offsets", offsets), ("sizes", sizes), ("strides", strides)):
        dynamic, numbers = split_static_dynamic(entries)
        groups.append([index_of(x, f"one of the {part} of a transfer") for x in dynamic])
        static[f"static_{end}_{part}"] = tuple(numbers)
    return groups, static


def _refuse_padding(pad_before: Any, pad_after: Any) -> None:
    if (pad_before is None) != (pad_after is None):
        raise ValueError("pad_before and pad_after must both be specified or both omitted")
    if pad_before is not None:
        raise UnsupportedError("pad_before= and pad_after= of a transfer are not served")


class _ChannelAccess(OpView):
    """Common to puts and gets."""

    def _write(
        self, side: str, chan_name: Any, memref: Any, walk: tuple[Any, Any, Any], indices: Any, more: int
    ) -> None:
        end = "src" if side == "put" else "dst"
        name = str(plain(chan_name))
        index = [index_of(i, f"an index of channel {name!r}") for i in indices]
        groups, static = _walk(end, memref, *walk)
        every = [[], index, *groups, *[[]] * more]
        operands = [v for group in every for v in group]
        counts = tuple(len(group) for group in every)
        self.op = emit(f"air.channel.{side}", operands, chan_name=name, segments=counts, **static)
        check_pattern(put_or_get(self.op).pattern, f"the {side} on channel {name!r} at {self.op.loc}")


class ChannelGet(_ChannelAccess):
    """Take elements off a channel into a memref."""

    def __init__(
        self,
        chan_name: Any,
        dst: Any,
        offsets: Any = [],  # noqa: B006 - the recorded signature has these defaults
        sizes: Any = [],  # noqa: B006
        strides: Any = [],  # noqa: B006
        indices: Any = [],  # noqa: B006
        async_token: Any = None,
        async_dependencies: Any = [],  # noqa: B006
        pad_before: Any = None,
        pad_after: Any = None,
        loc: Any = None,
        ip: Any = None,
    ) -> None:
        refuse_placement(loc, ip)
        refuse_async(async_token, async_dependencies)
        _refuse_padding(pad_before, pad_after)
        self._write("get", chan_name, dst, (offsets, sizes, strides), indices, 0)


class ChannelPut(_ChannelAccess):
    """Put elements of a memref onto a channel."""

    def __init__(
        self,
        chan_name: Any,
        src: Any,
        offsets: Any = [],  # noqa: B006
        sizes: Any = [],  # noqa: B006
        strides: Any = [],  # noqa: B006
        indices: Any = [],  # noqa: B006
        dest: Any = None,
        async_token: Any = None,
        async_dependencies: Any = [],  # noqa: B006
        pad_before: Any = None,
        pad_after: Any = None,
        loc: Any = None,
        ip: Any = None,
    ) -> None:
        refuse_placement(loc, ip)
        refuse_async(async_token, async_dependencies)
        _refuse_padding(pad_before, pad_after)
        if dest is not None:
            raise UnsupportedError("dest= of ChannelPut (a destination chosen at run time) is not served")
        self._write("put", chan_name, src, (offsets, sizes, strides), indices, 1)


class DmaMemcpyNd(OpView):
    """Copy between two memory levels; the outer side is moved by the DMA of the outer level."""

    def __init__(
        self,
        dst: Any,
        src: Any,
        async_dependencies: Any = [],  # noqa: B006
        async_token: Any = None,
        dst_offsets: Any = [],  # noqa: B006
        dst_sizes: Any = [],  # noqa: B006
        dst_strides: Any = [],  # noqa: B006
        src_offsets: Any = [],  # noqa: B006
        src_sizes: Any = [],  # noqa: B006
        src_strides: Any = [],  # noqa: B006
        pad_before: Any = None,
        pad_after: Any = None,
    ) -> None:
        refuse_async(async_token, async_dependencies)
        _refuse_padding(pad_before, pad_after)
        to, to_static = _walk("dst", dst, dst_offsets, dst_sizes, dst_strides)
        source, source_static = _walk("src", src, src_offsets, src_sizes, src_strides)
        every = [[], *to, *source]
        operands = [v for group in every for v in group]
        counts = tuple(len(group) for group in every)
        self.op = emit("air.dma_memcpy_nd", operands, segments=counts, **to_static, **source_static)
        for move in ends_of_dma(self.op):
            check_pattern(move.pattern, f"the dma_memcpy_nd at {self.op.loc}")


class dma_memcpy_nd(DmaMemcpyNd):
    """The same, under the name that designs use."""


def external_func(name: Any, inputs: Any, outputs: Any = None, visibility: Any = "private") -> FuncOp:
    """Declare an external kernel."""
    return FuncOp(name, FunctionType.get(inputs, outputs or []), visibility=visibility)


class call(CallOp):
    """A call of a kernel in which Python ints may stand for scalars of the given types."""

    def __init__(self, calleeOrResults: Any, inputs: Any = [], input_types: Any = []) -> None:  # noqa: B006
        if not isinstance(calleeOrResults, FuncOp):
            raise UnsupportedError(
                "air's call(name, ...) is not served; use CallOp([], name, args), or give it the FuncOp"
            )
        given = [
            ops.constant(x, str(plain_type(t, "call"))) if isinstance(x, int) else x
            for x, t in zip(inputs, input_types)
        ]
        super().__init__(calleeOrResults, given)
