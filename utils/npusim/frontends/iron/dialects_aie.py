"""Functions of ``aie.dialects.aie`` that IRON designs use beside ``aie.iron``: locks, buffers, flows and DMA programs.

They write into the design being resolved, so they belong in a ``resolve`` method of a class derived from Resolvable.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from npusim import graph
from npusim.errors import DesignError, UnsupportedError
from npusim.frontends.control import refuse_placement
from npusim.frontends.iron.buffer import Buffer
from npusim.frontends.iron.context import design
from npusim.frontends.iron.dmabuilder import Blocks, DmaBlock, Start, current_block, need_block, program, tile_dma
from npusim.frontends.iron.enums import DMAChannelDir, WireBundle
from npusim.frontends.iron.flow import connect
from npusim.frontends.iron.layouts import pad_dims
from npusim.frontends.iron.tile_dma import walk_dims
from npusim.frontends.tracing import DesignTypeError, here, need
from npusim.frontends.values import MemRefValue
from npusim.types import MemRefType

_unnamed = itertools.count()


def lock(
    tile: Any,
    *,
    lock_id: int | None = None,
    init: int | None = None,
    sym_name: str | None = None,
    annot: Any = None,
    loc: Any = None,
    ip: Any = None,
) -> graph.Lock:
    """A lock on a tile of the design."""
    refuse_placement(loc, ip)
    if annot is not None:
        raise UnsupportedError("lock: the argument annot= is not served")
    made = graph.Lock(sym_name, _tile(tile), init, lock_id, here())
    design("a lock").locks.append(made)
    return made


class buffer(MemRefValue):
    """A buffer on a tile of the design; an element of it is read and written by index in a core."""

    def __init__(
        self,
        tile: Any,
        datatype: Any,
        name: str | None = None,
        address: int | None = None,
        initial_value: np.ndarray | None = None,
        use_write_rtp: bool = False,
        loc: Any = None,
        ip: Any = None,
    ) -> None:
        refuse_placement(loc, ip)
        kind = datatype if isinstance(datatype, MemRefType) else MemRefType.of(datatype)
        name = name or f"_anonymous{next(_unnamed)}"
        initial = None if initial_value is None else np.array(initial_value, dtype=kind.dtype).reshape(kind.shape)
        self.graph = graph.Buffer(name, kind, _tile(tile), initial, address, use_write_rtp, here())
        design("a buffer").buffers.append(self.graph)
        super().__init__(self.graph.value)


def flow(
    source: Any,
    source_bundle: Any = None,
    source_channel: Any = None,
    dest: Any = None,
    dest_bundle: Any = None,
    dest_channel: Any = None,
) -> graph.Flow:
    """A circuit-switched stream between two tiles' ports, by default their DMA channels 0."""
    if dest is None:
        raise DesignError("flow needs a dest tile")
    ports = [WireBundle.DMA if b is None else b for b in (source_bundle, dest_bundle)]
    channels = [0 if c is None else c for c in (source_channel, dest_channel)]
    return connect(_tile(source), _tile(dest), ports[0], channels[0], ports[1], channels[1])


def cascade_flow(source_tile: Any, dest_tile: Any, *, loc: Any = None, ip: Any = None) -> graph.Cascade:
    """A cascade link between two compute tiles."""
    refuse_placement(loc, ip)
    link = graph.Cascade(_tile(source_tile), _tile(dest_tile), here())
    design("a cascade link").cascades.append(link)
    return link


def mem(tile: Any) -> Callable[[Callable[..., Any]], graph.TileDma]:
    """Decorator: the DMA program of a compute tile, a function of its blocks."""
    return _dma_program(tile)


def memtile_dma(tile: Any) -> Callable[[Callable[..., Any]], graph.TileDma]:
    """Decorator: the DMA program of a MemTile."""
    return _dma_program(tile)


def shim_mem(tile: Any) -> Callable[[Callable[..., Any]], graph.TileDma]:
    """Decorator: the DMA program of a shim tile."""
    return _dma_program(tile)


def _dma_program(tile: Any) -> Callable[[Callable[..., Any]], graph.TileDma]:
    loc = here()

    def decorate(body: Callable[..., Any]) -> graph.TileDma:
        into = design("a DMA program")
        with program(Blocks()) as blocks:
            body(blocks) if inspect.signature(body).parameters else body()
        made = tile_dma(_tile(tile), blocks, loc)
        into.tile_dmas.append(made)
        return made

    return decorate


def dma_start(
    channel_dir: Any,
    channel_index: Any,
    *,
    dest: Any = None,
    chain: Any = None,
    repeat_count: int = 0,
    pad_value: int = 0,
    loc: Any = None,
    ip: Any = None,
) -> tuple[Any, Any]:
    """In a DMA program: start a channel with the descriptors of block ``dest`` and go on in block ``chain``."""
    refuse_placement(loc, ip)
    if not isinstance(dest, DmaBlock) or not (chain is None or isinstance(chain, DmaBlock)):
        raise DesignTypeError("dma_start needs dest=block[i] and chain=block[j]")
    block = need_block("dma_start")
    block.start = Start(DMAChannelDir(channel_dir), int(channel_index), dest, chain, repeat_count, pad_value)
    return dest, chain


def dma_bd(
    buffer: Any, sizes: Any = None, strides: Any = None, offset: Any = None, transfer_len: Any = None, **kwargs: Any
) -> None:
    """In a block of a DMA program: the transfer of a buffer, whole or a walk of it (elements)."""
    unknown = {
        k: v for k, v in kwargs.items() if k not in ("pad_dimensions", "bd_id", "burst_length") and v is not None
    }
    if unknown:
        raise UnsupportedError(f"dma_bd: the argument(s) {', '.join(unknown)} are not served")
    of = (
        buffer._graph("its memory")
        if isinstance(buffer, Buffer)
        else getattr(getattr(buffer, "value", None), "owner", None)
    )
    if not isinstance(of, graph.Buffer):
        raise DesignTypeError(f"dma_bd in a tile's DMA program needs a buffer of the design, got {buffer!r}")
    need_block("dma_bd").describe(
        graph.Descriptor(
            of,
            int(offset or 0),
            None if transfer_len is None else int(transfer_len),
            walk_dims(sizes, strides, "dma_bd"),
            pad_dims(kwargs.get("pad_dimensions"), "pad_dimensions of dma_bd"),
            bd_id=kwargs.get("bd_id"),
        )
    )


def dma_bd_packet(packet_type: int, packet_id: int, *, loc: Any = None, ip: Any = None) -> None:
    """In a block of a DMA program: the packet id of its transfer."""
    refuse_placement(loc, ip)
    need_block("dma_bd_packet").packet_id = int(packet_id)


def next_bd(dest: Any = None, loc: Any = None, ip: Any = None) -> Any:
    """In a block of a DMA program: the block that follows."""
    refuse_placement(loc, ip)
    block = need_block("next_bd")
    if not isinstance(dest, DmaBlock):
        raise DesignTypeError("next_bd needs the block that follows: next_bd(block[i])")
    block.next = dest
    return dest


def EndOp(*, loc: Any = None, ip: Any = None) -> None:
    """The end of a DMA program or of a host task's descriptors."""
    refuse_placement(loc, ip)
    block = current_block()
    if block is not None:
        block.ended = True
        return
    from npusim.frontends.iron.dialects_aiex import end_of_task

    need("EndOp", "sequence")
    end_of_task()


end = EndOp


def bds(parent: Any) -> AbstractContextManager[Any]:
    """The blocks of a host task: ``with bds(task) as bd: with bd[0]: ...``."""
    from npusim.frontends.iron.dialects_aiex import task_blocks

    return task_blocks(parent)


def _tile(tile: Any) -> graph.LogicalTile:
    if isinstance(tile, graph.LogicalTile):
        return tile
    raise DesignTypeError(f"a tile of the design is needed (tile.op of an IRON Tile), got {tile!r}")
