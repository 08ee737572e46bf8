"""What the design declares itself: buffers, locks, tile DMA programs, and what scratchpad parameters cost."""

from __future__ import annotations

from npusim.errors import CapacityError, DesignError
from npusim.graph import ChannelProgram, Descriptor, LockAction, TileDma
from npusim.ir import walk
from npusim.machine import BufferDescriptor, Coord, DmaChannel, LockUse, MachineLock, MemBuffer
from npusim.messages import explain
from npusim.place.channels import ADJACENT_CHANNELS, channel_count
from npusim.place.demand import tile_order
from npusim.place.draft import NOWHERE, Draft, label
from npusim.place.neighbours import reaches
from npusim.types import MemRefType


def declare(draft: Draft) -> None:
    """Take over the design's buffers and locks, and make those that scratchpad parameters need."""
    for buffer in draft.design.buffers:
        tile = draft.at(buffer.tile)
        if tile.row == 0:
            raise DesignError(f"buffer {buffer.name!r} is on {label(tile)}, which has no memory ({buffer.loc})")
        mine = MemBuffer(
            buffer.name, tile, buffer.type, initial=buffer.initial, host_written=buffer.host_written, loc=buffer.loc
        )
        draft.own_buffers[buffer] = mine
        if buffer.address is not None:
            draft.fixed[mine] = buffer.address
    for index, lock in enumerate(draft.design.locks):
        name = lock.name or f"lock_{index}"
        lock_id = NOWHERE if lock.lock_id is None else lock.lock_id
        draft.own_locks[lock] = MachineLock(name, draft.at(lock.tile), lock_id, lock.init or 0)
    _scratchpads(draft)


def _scratchpads(draft: Draft) -> None:
    """A core that reads scratchpad parameters has a lock and eight bytes a parameter, as in the real lowering.

    The engine serves the values itself; these only take their place. They stand before the fifos in the module, except on
    the tile that the module declares last, which is the first one of the design.
    """
    first = draft.at(tile_order(draft.design)[0]) if draft.design.cores else None
    number = 0
    for core in draft.design.cores:
        tile = draft.at(core.tile)
        read = (op.attrs["parameter"] for op in walk(core.body) if op.name == "aiex.read_scratchpad_parameter")
        names = list(dict.fromkeys(read))
        buffers: list[MemBuffer] = []
        for name in names:
            buffers.insert(
                0, MemBuffer(f"__param_{name}_{tile.col}_{tile.row}_{number}", tile, MemRefType((2,), "i32"))
            )
            number += 1
        locks = [MachineLock(f"__param_lock_{tile.col}_{tile.row}", tile, NOWHERE)] if names else []
        if tile == first:
            draft.late[0].extend(buffers)
            draft.late[1].extend(locks)
        elif names:
            draft.early[tile] = (buffers, locks)


def program_dmas(draft: Draft) -> None:
    """The channels of the design's own DMA programs, before those of the fifos."""
    for program in draft.design.tile_dmas:
        tile = draft.at(program.tile)
        seen: set[tuple[str, int]] = set()
        for channel in program.channels:
            _check_channel(draft, program, channel, tile, seen)
            seen.add((channel.direction, channel.index))
            draft.channels.append(
                DmaChannel(
                    tile,
                    channel.direction,
                    channel.index,
                    [_descriptor(draft, program, channel, d) for d in channel.descriptors],
                    channel.repeat,
                    loc=program.loc,
                )
            )


def _check_channel(
    draft: Draft, program: TileDma, channel: ChannelProgram, tile: Coord, seen: set[tuple[str, int]]
) -> None:
    have = channel_count(draft, tile, channel.direction)
    word = "input" if channel.direction == "S2MM" else "output"
    if not 0 <= channel.index < have:
        raise CapacityError(
            explain(
                f"the DMA program of {label(tile)} uses channel {channel.direction} {channel.index}; the tile has {have} "
                f"{word} channels, numbered from 0.",
                phrase=f"uses more {word} channels than available on this tile",
                hint="use channel 0 or 1 on a compute tile, 0 to 5 on a MemTile.",
                loc=program.loc,
            )
        )
    if (channel.direction, channel.index) in seen:
        raise DesignError(
            f"the DMA program of {label(tile)} programs channel {channel.direction} {channel.index} twice ({program.loc})"
        )
    for descriptor in channel.descriptors:
        nexts = descriptor.next
        if nexts is not None and not 0 <= nexts < len(channel.descriptors):
            raise DesignError(
                f"a descriptor of {channel.direction} {channel.index} on {label(tile)} names descriptor {nexts} as its next "
                f"one, but the chain has {len(channel.descriptors)} ({program.loc})"
            )


def _descriptor(draft: Draft, program: TileDma, channel: ChannelProgram, d: Descriptor) -> BufferDescriptor:
    tile, buffer = draft.at(program.tile), draft.own_buffers[d.buffer]
    _check_reach(draft, program, channel, buffer.tile, f"buffer {buffer.name!r}")
    for action in (*d.acquires, *d.releases):
        _check_reach(draft, program, channel, draft.at(action.lock.tile), f"lock {action.lock.name!r}")
    for kind, actions in (("acquire", d.acquires), ("release", d.releases)):
        if len(actions) > 1:
            raise DesignError(
                explain(
                    f"a descriptor of {channel.direction} {channel.index} on {label(tile)} has {len(actions)} {kind}s.",
                    phrase=f"BD block must have at most one {kind} UseLockOp, found {len(actions)}",
                    hint="a descriptor waits for one lock and releases one.",
                    loc=program.loc,
                )
            )
    return BufferDescriptor(
        buffer=buffer,
        offset=d.offset,
        length=d.buffer.type.size if d.length is None else d.length,
        dims=d.dims,
        pad=d.pad,
        pad_value=d.pad_value,
        acquires=tuple(_use(draft, a) for a in d.acquires),
        releases=tuple(_use(draft, a) for a in d.releases),
        next=d.next,
        bd_id=d.bd_id,
        packet_id=d.packet_id,
    )


def _use(draft: Draft, action: LockAction) -> LockUse:
    return LockUse(draft.own_locks[action.lock], action.value, action.equal)


def _check_reach(draft: Draft, program: TileDma, channel: ChannelProgram, other: Coord, what: str) -> None:
    """A compute tile's DMA reaches its own tile; a MemTile's channels 0 to 3 also the MemTiles beside it."""
    tile = draft.at(program.tile)
    near = tile.row == 1 and channel.index < ADJACENT_CHANNELS and reaches(draft.design.device, tile, other)
    if other == tile or near:
        return
    phrase = (
        f"is reachable from DMA channel {channel.index} and attempts to access a non-local buffer"
        if tile.row == 1
        else "Core tile DMAs can only access a buffer in the same tile."
    )
    raise DesignError(
        explain(
            f"channel {channel.direction} {channel.index} of {label(tile)} cannot reach {what} on {label(other)}.",
            phrase=phrase,
            hint="a DMA uses buffers and locks of its own tile (a MemTile's channels 0 to 3 also of the MemTiles beside it).",
            loc=program.loc,
        )
    )
