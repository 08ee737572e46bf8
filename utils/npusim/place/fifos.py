"""Which fifos move by DMA, and the ends that they are split into.

The rule is the real lowering's (mlir-aie's objectFifo transform, August 2026): one consumer that shares memory with the
producer needs no DMA, unless a layout transform, a repeat, a consumer type, a link or ``via_DMA`` asks for one.
"""

from __future__ import annotations

from npusim.errors import DesignError, UnsupportedError
from npusim.graph import Fifo, Link
from npusim.machine import Coord
from npusim.messages import explain
from npusim.place.depths import Depths
from npusim.place.draft import Draft, End, Stream, label
from npusim.place.neighbours import reaches, shared_side


def split(draft: Draft) -> None:
    """Fill ``draft.streams`` (DMA) and ``draft.shared`` (shared memory) with the ends of every fifo.

    Raises DesignError or UnsupportedError for fifos that cannot be lowered where their ends stand.
    """
    depths = Depths(draft.design, draft.where)
    links = {fifo: link for link in draft.design.links for fifo in (*link.inputs, *link.outputs)}
    for fifo in draft.design.fifos:
        if needs_dma(draft, fifo, links.get(fifo)):
            draft.streams.append(_stream(draft, fifo, links.get(fifo), depths))
        else:
            draft.shared.append(_shared(draft, fifo, depths))


def needs_dma(draft: Draft, fifo: Fifo, link: Link | None) -> bool:
    """Whether the fifo's objects are copied by DMA (else both ends use the same buffers)."""
    producer, consumers = draft.at(fifo.producer), [draft.at(c) for c in fifo.consumers]
    _refuse_impossible(fifo, producer, consumers)
    wanted = fifo.via_dma or fifo.repeat_count is not None or fifo.consumer_type is not None
    transforms = bool(fifo.to_stream) or any(fifo.from_stream)
    together = len(consumers) == 1 and shared_side(draft.design.device, producer, consumers[0]) != "none"
    by_dma = wanted or transforms or link is not None or not together
    if by_dma and producer in consumers:
        raise UnsupportedError(
            f"fifo {fifo.name!r} goes from {label(producer)} to itself by DMA; a fifo within one tile is served in its "
            "own memory only (no transform, repeat, link or via_DMA)"
        )
    if by_dma and fifo.delegate_tile is not None:
        raise DesignError(
            explain(
                f"fifo {fifo.name!r} has a delegate tile, but its objects move by DMA between {label(producer)} and "
                f"{', '.join(map(label, consumers))}.",
                phrase="Core tile DMAs can only access a buffer in the same tile.",
                hint="a delegate tile is for a fifo in shared memory: one consumer next to the producer, no transform.",
                loc=fifo.loc,
            )
        )
    if by_dma and not wanted and len(consumers) == 1 and not fifo.to_stream:
        _check_side(draft, fifo, producer, consumers[0])
    return by_dma


def _refuse_impossible(fifo: Fifo, producer: Coord, consumers: list[Coord]) -> None:
    if producer.row == 0 and any(c.row == 0 for c in consumers):
        raise UnsupportedError(
            f"fifo {fifo.name!r} has both ends on the host's side ({label(producer)} and "
            f"{label(consumers[0])}); forward it through a MemTile or a compute tile"
        )


def _check_side(draft: Draft, fifo: Fifo, producer: Coord, consumer: Coord) -> None:
    """The real lowering puts the producer's buffers where the shared memory is, even when a DMA moves them."""
    if shared_side(draft.design.device, producer, consumer) == "second":
        text = explain(
            f"fifo {fifo.name!r} goes by DMA from {label(producer)} west to {label(consumer)}: the real lowering would "
            "put the producer's buffers on the consumer's tile, which the producer's DMA cannot read.",
            phrase="Core tile DMAs can only access a buffer in the same tile.",
            hint="give the fifo via_DMA=True.",
            loc=fifo.loc,
        )
        raise DesignError(text)


def _stream(draft: Draft, fifo: Fifo, link: Link | None, depths: Depths) -> Stream:
    tile = draft.at(fifo.producer)
    producer = End(
        name=fifo.name,
        fifo=fifo,
        tile=tile,
        produce=True,
        type=fifo.type,
        depth=depths.producer(fifo, tile),
        dims=fifo.to_stream,
        link=link if link and fifo in link.outputs else None,
        pinned=fifo.producer_channel,
    )
    return Stream(fifo, producer, [_consumer(draft, fifo, i, link, depths) for i in range(len(fifo.consumers))])


def _consumer(draft: Draft, fifo: Fifo, index: int, link: Link | None, depths: Depths) -> End:
    tile = draft.at(fifo.consumers[index])
    dims = fifo.from_stream[index] if index < len(fifo.from_stream) else ()
    linked = link is not None and fifo in link.inputs and tile == draft.at(link.outputs[0].producer)
    return End(
        name=f"{fifo.name}_cons" if len(fifo.consumers) == 1 else f"{fifo.name}_{index}_cons",
        fifo=fifo,
        tile=tile,
        produce=False,
        type=fifo.consumer_type or fifo.type,
        depth=depths.consumer(fifo, index, tile, dims),
        dims=dims,
        link=link if linked else None,
        pinned=fifo.consumer_channels[index] if index < len(fifo.consumer_channels) else None,
    )


def _shared(draft: Draft, fifo: Fifo, depths: Depths) -> End:
    producer, consumer = draft.at(fifo.producer), draft.at(fifo.consumers[0])
    side = shared_side(draft.design.device, producer, consumer)
    home = consumer if side == "second" else producer
    if fifo.delegate_tile is not None:
        home = _delegate(draft, fifo, producer, consumer)
    return End(
        name=fifo.name, fifo=fifo, tile=home, produce=True, type=fifo.type, depth=depths.declared(fifo), shared=True
    )


def _delegate(draft: Draft, fifo: Fifo, producer: Coord, consumer: Coord) -> Coord:
    assert fifo.delegate_tile is not None
    delegate, device = draft.at(fifo.delegate_tile), draft.design.device
    if reaches(device, producer, delegate) and reaches(device, consumer, delegate):
        return delegate
    text = explain(
        f"fifo {fifo.name!r} is to live on {label(delegate)}, whose memory {label(producer)} and {label(consumer)} do "
        "not both reach.",
        phrase="objectfifo has no shared memory access to delegate tile's memory module",
        hint="a core reaches its own memory and those of its west, north and south neighbours.",
        loc=fifo.loc,
    )
    raise DesignError(text)
