"""DMA programs written block by block, as ``aie.dialects.aie`` has them (``mem``, ``dma_start``, ``dma_bd``, ``next_bd``).

A program is a function of blocks: block 0 chains ``dma_start`` operations, each names the block where its channel's
descriptors begin; a block holds lock acquires, one descriptor, releases and the block that is next. The builder notes
these and turns them into a :class:`npusim.graph.TileDma`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from npusim import graph
from npusim.errors import DesignError
from npusim.frontends.iron.enums import DMAChannelDir, LockAction
from npusim.frontends.tracing import DesignTypeError, here
from npusim.ir import Loc

_open: list[DmaBlock] = []


def current_block() -> DmaBlock | None:
    """The block being written, or None outside of DMA programs."""
    return _open[-1] if _open else None


def need_block(what: str) -> DmaBlock:
    """The block being written; DesignError that names ``what`` outside of one."""
    if not _open:
        raise DesignError(f"{what} belongs in a block of a tile's DMA program (mem, memtile_dma): `with block[1]:`")
    return _open[-1]


@dataclass(eq=False)
class Start:
    """A ``dma_start``: a channel, where its descriptors begin and where the program goes on."""

    direction: DMAChannelDir
    channel: int
    dest: DmaBlock
    chain: DmaBlock | None
    repeat: int
    pad_value: int


@dataclass(eq=False)
class DmaBlock:
    """One block of a program; opened with ``with``."""

    loc: Loc
    start: Start | None = None
    acquires: list[graph.LockAction] = field(default_factory=list)
    releases: list[graph.LockAction] = field(default_factory=list)
    descriptor: graph.Descriptor | None = None
    packet_id: int | None = None
    next: DmaBlock | None = None
    ended: bool = False

    def __enter__(self) -> DmaBlock:
        _open.append(self)
        return self

    def __exit__(self, *exc: object) -> None:
        _open.remove(self)

    def use_lock(self, lock: graph.Lock, action: LockAction, value: Any) -> None:
        """Acquires stand before the descriptor, releases after it."""
        if not isinstance(value, int):
            raise DesignTypeError(f"a lock in a DMA program is used with an int, got {value!r}")
        if action == LockAction.Release:
            if self.descriptor is None:
                raise DesignError("a DMA block releases a lock before its dma_bd: releases come after the transfer")
            self.releases.append(graph.LockAction(lock, value))
        else:
            if self.descriptor is not None:
                raise DesignError("a DMA block acquires a lock after its dma_bd: acquires come before the transfer")
            self.acquires.append(graph.LockAction(lock, value, action == LockAction.Acquire))

    def describe(self, descriptor: graph.Descriptor) -> None:
        if self.descriptor is not None:
            raise DesignError("a DMA block has two dma_bd: one block holds one buffer descriptor")
        self.descriptor = descriptor


class Blocks:
    """The blocks of a program by number; asking for one that is not there makes it."""

    def __init__(self) -> None:
        self._blocks: dict[Any, DmaBlock] = {}

    def __getitem__(self, key: Any) -> DmaBlock:
        if key not in self._blocks:
            self._blocks[key] = DmaBlock(here())
        return self._blocks[key]


@contextmanager
def program(blocks: Blocks) -> Iterator[Blocks]:
    """Write a program, starting in block 0."""
    with blocks[0]:
        yield blocks


def tile_dma(tile: graph.LogicalTile, blocks: Blocks, loc: Loc) -> graph.TileDma:
    """The program as the graph has it."""
    channels: list[graph.ChannelProgram] = []
    block: DmaBlock | None = blocks[0]
    while block is not None and block.start is not None:
        channels.append(_channel(block.start))
        block = block.start.chain
    return graph.TileDma(tile, channels, loc)


def _channel(start: Start) -> graph.ChannelProgram:
    order: list[DmaBlock] = []
    block: DmaBlock | None = start.dest
    while block is not None and block not in order and block.descriptor is not None:
        order.append(block)
        block = block.next
    if not order:
        raise DesignError(f"{start.direction.name} {start.channel}: the block that its dma_start names has no dma_bd")
    for each in order:
        assert each.descriptor is not None
        each.descriptor.acquires, each.descriptor.releases = each.acquires, each.releases
        each.descriptor.packet_id = each.packet_id if each.descriptor.packet_id is None else each.descriptor.packet_id
        each.descriptor.next = order.index(each.next) if each.next in order else None
        each.descriptor.pad_value = start.pad_value if each.descriptor.pad else 0
    descriptors = [each.descriptor for each in order if each.descriptor is not None]
    direction: graph.Direction = "MM2S" if start.direction == DMAChannelDir.MM2S else "S2MM"
    return graph.ChannelProgram(direction, start.channel, descriptors, start.repeat)
