"""The chain of buffer descriptors that each DMA channel runs, one descriptor an object (or part, or repeat).

An S2MM channel waits for a free slot and reports a full one; an MM2S channel the other way round. Chains loop for ever,
except those of a fifo with ``iter_count``, which end after that many rounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from npusim.graph import Link
from npusim.machine import BufferDescriptor, DmaChannel, LockUse, MemBuffer
from npusim.place import links
from npusim.place.draft import Draft, End
from npusim.place.rings import cycles_initial_values


def build_chains(draft: Draft) -> None:
    """One DmaChannel for every DMA end, in the order of the real lowering (shim ends get no descriptors)."""
    for stream in draft.streams:
        for end in stream.ends:
            draft.channels.append(_channel(end))


def _channel(end: End) -> DmaChannel:
    assert end.channel is not None
    channel = DmaChannel(
        tile=end.tile,
        direction="MM2S" if end.produce else "S2MM",
        index=end.channel,
        fifo=end.fifo.name,
        loc=end.fifo.loc,
    )
    if end.tile.row > 0:
        iterations = end.fifo.iter_count if end.tile.row == 1 else None
        channel.repeat, steps = _steps(end, iterations)
        channel.descriptors = list(_descriptors(end, steps, loop=iterations is None))
    return channel


@dataclass(frozen=True)
class _Step:
    """One descriptor to be: a buffer, the elements of it, and which lock pair guards them."""

    buffer: MemBuffer
    offset: int
    length: int
    pair: int


def _steps(end: End, iterations: int | None) -> tuple[int, list[_Step]]:
    """(times the chain runs beyond the first, its steps)."""
    assert end.ring is not None
    owns = end.link is None or end.ring.name == end.name
    parts = _parts(end.link, end, owns)
    buffers = end.ring.buffers if owns or end.tile.row == 1 else end.ring.buffers[: end.depth]
    repeat = (end.fifo.repeat_count or 1) if end.produce else 1
    in_hardware = repeat > 1 and len(buffers) == 1 and len(parts) == 1 and iterations is None
    copies = 1 if in_hardware else repeat
    steps = [_Step(b, at, n, pair) for b in buffers for _ in range(copies) for at, n, pair in parts]
    if iterations is not None:
        return iterations - 1, steps
    return (repeat - 1 if in_hardware else 0), steps


def _parts(link: Link | None, end: End, owns: bool) -> list[tuple[int, int, int]]:
    """(offset, length, lock pair) of what one turn of the ring moves."""
    if link is None or end.tile.row != 1 or links.parts(link) == 1:
        length = end.type.size
        if not owns and end.tile.row == 1:  # a forward between types: the larger one counts
            assert end.ring is not None
            length = max(length, end.ring.buffers[0].type.size)
        return [(0, length, 0)]
    cuts = [(at, n, i) for i, (at, n) in enumerate(links.cuts(link))]
    return cuts if owns else [cuts[(link.outputs if end.produce else link.inputs).index(end.fifo)]]


def _descriptors(end: End, steps: list[_Step], loop: bool) -> Iterator[BufferDescriptor]:
    amount = links.repeats(end.link) if _refills(end) and end.link else 1
    for index, step in enumerate(steps):
        acquire, release = _locks(end, step.pair, amount)
        last = index == len(steps) - 1
        padded = end.produce and end.tile.row == 1 and bool(end.dims)
        yield BufferDescriptor(
            buffer=step.buffer,
            offset=step.offset,
            length=step.length,
            dims=end.dims,
            pad=end.fifo.pad if padded else (),
            pad_value=end.fifo.pad_value if padded and end.fifo.pad else 0,
            acquires=acquire,
            releases=release,
            next=(0 if loop else None) if last else index + 1,
        )


def _refills(end: End) -> bool:
    """Whether this end's descriptors count for all the repeats of what they bring (the input of a repeating link)."""
    if end.link is None:
        return False
    if end.tile.row == 1:
        return end.fifo is end.link.inputs[0]
    return end.ring is not None and end.ring.name == end.name


def _locks(end: End, pair: int, amount: int) -> tuple[tuple[LockUse, ...], tuple[LockUse, ...]]:
    assert end.ring is not None
    if not end.ring.pairs or cycles_initial_values(end):
        return (), ()
    locks = end.ring.pairs[pair]
    wait, signal = (locks.full, locks.free) if end.produce else (locks.free, locks.full)
    return (LockUse(wait, amount),), (LockUse(signal, amount),)
