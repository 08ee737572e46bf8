"""``TileDma``: an explicit program of one tile's DMA, beside Flow, Lock and Buffer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from npusim import graph
from npusim.errors import DesignError, UnsupportedError
from npusim.frontends.iron.buffer import Buffer
from npusim.frontends.iron.context import design
from npusim.frontends.iron.device import Tile
from npusim.frontends.iron.enums import DMAChannelDir, LockAction
from npusim.frontends.iron.layouts import pad_dims
from npusim.frontends.iron.lock import Lock, use_lock
from npusim.frontends.iron.resolvable import Resolvable
from npusim.frontends.tracing import DesignTypeError, here


@dataclass
class Acquire:
    """What a descriptor waits for: at least ``value`` (subtracted), or with ``greater_equal=False`` exactly it (left)."""

    lock: Lock
    value: int = 1
    greater_equal: bool = True

    def emit(self) -> None:
        """Write it down where the program stands."""
        use_lock(self.lock.op, LockAction.AcquireGreaterEqual if self.greater_equal else LockAction.Acquire, self.value)


@dataclass
class Release:
    """What a descriptor adds to a lock when its transfer is done."""

    lock: Lock
    value: int = 1

    def emit(self) -> None:
        """Write it down where the program stands."""
        use_lock(self.lock.op, LockAction.Release, self.value)


@dataclass
class BdIteration:
    """A descriptor that moves on by ``stride`` elements each time it runs, ``size`` times, starting with step ``current``."""

    size: int
    stride: int
    current: int = 0


@dataclass
class Bd:
    """One buffer descriptor: ``length`` elements (default: all) of a buffer from ``offset``, walked by sizes and strides.

    ``next`` is ``"self"`` (it loops), the number of another descriptor of the channel, or None (the channel stops).
    ``packet`` is (type, id).
    """

    buffer: Buffer
    offset: int = 0
    length: int | None = None
    acquires: list[Acquire] = field(default_factory=list)
    releases: list[Release] = field(default_factory=list)
    next: int | str | None = "self"
    packet: tuple[int, int] | None = None
    sizes: list[Any] = field(default_factory=list)
    strides: list[Any] = field(default_factory=list)
    pad_dimensions: list[Sequence[int]] | None = None
    iteration: BdIteration | None = None


@dataclass
class DmaChannel:
    """The descriptors of one channel, which starts with the first; ``pad_value`` fills their paddings."""

    direction: DMAChannelDir
    channel: int
    bds: list[Bd]
    pad_value: int = 0


class TileDma(Resolvable):
    """The channels of one tile's DMA."""

    def __init__(self, tile: Tile, channels: Iterable[DmaChannel]) -> None:
        self._loc = here()
        self._tile = tile
        self._channels = list(channels)
        self._op: graph.TileDma | None = None

    @property
    def tile(self) -> Tile:
        return self._tile

    def all_tiles(self) -> list[Tile]:
        """The tiles that the program touches."""
        return [self._tile]

    def tiles(self) -> list[Any]:
        return []

    def all_buffers_and_locks(self) -> tuple[list[Buffer], list[Lock]]:
        """Every buffer and every lock of the program, once each, in order."""
        bds = [bd for channel in self._channels for bd in channel.bds]
        buffers = list(dict.fromkeys(bd.buffer for bd in bds))
        used = [[use.lock for use in bd.acquires] + [use.lock for use in bd.releases] for bd in bds]
        locks = list(dict.fromkeys(lock for each in used for lock in each))
        return buffers, locks

    def resolve(self, loc: Any = None, ip: Any = None) -> None:
        if self._op is None:
            self._op = graph.TileDma(self._tile.op, [_channel(c, self._tile) for c in self._channels], self._loc)
            design("a TileDma").tile_dmas.append(self._op)


def _channel(channel: DmaChannel, tile: Tile) -> graph.ChannelProgram:
    direction: graph.Direction = "MM2S" if channel.direction == DMAChannelDir.MM2S else "S2MM"
    what = f"{direction} {channel.channel} of the TileDma on {tile}"
    if channel.pad_value:
        widths = {np.dtype(bd.buffer.dtype).itemsize for bd in channel.bds if bd.pad_dimensions is not None}
        if not widths:
            raise DesignError(f"{what} has a pad_value, but none of its descriptors has pad_dimensions")
        if len(widths) > 1:
            raise DesignError(
                f"{what}: one pad_value serves elements of {sorted(widths)} bytes; pad one element size only"
            )
    descriptors = [_descriptor(bd, i, channel, what) for i, bd in enumerate(channel.bds)]
    return graph.ChannelProgram(direction, channel.channel, descriptors)


def _descriptor(bd: Bd, index: int, channel: DmaChannel, what: str) -> graph.Descriptor:
    if bd.iteration is not None:
        raise UnsupportedError(
            f"{what}: Bd(iteration=...) is not served; write the descriptors of the iteration one by one"
        )
    return graph.Descriptor(
        buffer=bd.buffer._graph("its memory"),
        offset=int(bd.offset),
        length=None if bd.length is None else int(bd.length),
        dims=walk_dims(bd.sizes, bd.strides, what),
        pad=pad_dims(bd.pad_dimensions, f"pad_dimensions of {what}"),
        pad_value=channel.pad_value if bd.pad_dimensions else 0,
        acquires=[graph.LockAction(a.lock.op, a.value, not a.greater_equal) for a in bd.acquires],
        releases=[graph.LockAction(r.lock.op, r.value) for r in bd.releases],
        next=_next(bd, index, channel, what),
        packet_id=None if bd.packet is None else int(bd.packet[1]),
    )


def _next(bd: Bd, index: int, channel: DmaChannel, what: str) -> int | None:
    if bd.next == "self":
        return index
    if bd.next is None:
        return None
    if isinstance(bd.next, str):
        raise DesignError(f"{what}: Bd.next is 'self', a number or None, got {bd.next!r}")
    if not 0 <= bd.next < len(channel.bds):
        raise DesignError(f"{what}: Bd.next is {bd.next}, but there are {len(channel.bds)} descriptors, counted from 0")
    return int(bd.next)


def walk_dims(sizes: Any, strides: Any, what: str) -> graph.Dims:
    """The walk of an explicit descriptor as (size, stride) pairs."""
    sizes, strides = list(sizes or []), list(strides or [])
    if len(sizes) != len(strides):
        raise DesignError(f"{what}: as many strides as sizes are needed, got sizes {sizes} and strides {strides}")
    if not all(isinstance(n, (int, np.integer)) for n in (*sizes, *strides)):
        raise DesignTypeError(f"{what}: sizes and strides of a tile's descriptor are ints, got {sizes} and {strides}")
    return tuple((int(a), int(b)) for a, b in zip(sizes, strides))
