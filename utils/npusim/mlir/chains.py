"""The buffer descriptor chains of ``aie.mem``, ``aie.memtile_dma`` and ``aie.shim_dma``, as written.

Such a region is a control flow graph: ``aie.dma_start`` leads to the first descriptor of its channel and to the next
``dma_start``; a block with ``aie.dma_bd`` is a descriptor, what it acquires and releases stands around it, and
``aie.next_bd`` leads to the descriptor after it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, cast

from npusim.errors import DesignError, UnsupportedError
from npusim.ir import Block, Op, Value
from npusim.mlir.attributes import plain
from npusim.mlir.enums import DIRECTIONS, EXACT, RELEASE
from npusim.mlir.generic import RawOp


class Use(NamedTuple):
    """A lock operation: the lock's value, how much, and whether an acquire waits for exactly that."""

    lock: Value
    value: int
    exact: bool


@dataclass(eq=False)
class Transfer:
    """One block with a ``dma_bd``; ``next`` is an index in the chain."""

    op: RawOp
    acquires: list[Use] = field(default_factory=list)
    releases: list[Use] = field(default_factory=list)
    packet_id: int | None = None
    next: int | None = None

    @property
    def dims(self) -> tuple[tuple[int, int], ...]:
        sizes, strides = self.op.prop("static_sizes", ()), self.op.prop("static_strides", ())
        if len(self.op.operands) > 1:
            raise UnsupportedError(f"{self.op.loc}: a buffer descriptor with run-time offset, length, sizes or strides")
        return tuple(zip(map(int, sizes), map(int, strides), strict=True))


@dataclass(eq=False)
class Chain:
    """A channel with its descriptors, in the order in which they are reached."""

    direction: Literal["S2MM", "MM2S"]
    index: int
    repeat: int
    pad_value: int
    transfers: list[Transfer]
    op: RawOp


def chains(program: RawOp) -> list[Chain]:
    """The channels of a DMA program in the order of their ``dma_start``; DesignError if a chain leads nowhere."""
    found = []
    block: Block | None = program.regions[0].entry if program.regions[0].blocks else None
    while block is not None and (start := _start(block)) is not None:
        (first, _), (rest, _) = start.successors
        found.append(
            Chain(
                DIRECTIONS[start.prop("channel_dir")],
                start.prop("channel_index"),
                start.prop("repeat_count", 0),
                start.prop("pad_value", 0),
                _transfers(first),
                start,
            )
        )
        block = rest
    return found


def _start(block: Block) -> RawOp | None:
    for op in cast(list[RawOp], block.ops):
        if op.name == "aie.dma_start":
            return op
        if op.name == "aie.dma":
            raise UnsupportedError(f"{op.loc}: operation aie.dma is not read here")
    return None


def _transfers(block: Block) -> list[Transfer]:
    place: dict[Block, int] = {}
    found: list[Transfer] = []
    following: Block | None = block
    while following is not None and following not in place:
        transfer, target = _transfer(following)
        if transfer is None:
            break
        place[following] = len(found)
        if found:
            found[-1].next = len(found)
        found.append(transfer)
        following = target
    if found and following in place:
        found[-1].next = place[following]
    return found


def _transfer(block: Block) -> tuple[Transfer | None, Block | None]:
    """The descriptor of a block, if it has one, and the block that follows."""
    transfer: Transfer | None = None
    acquires: list[Use] = []
    packet: int | None = None
    for op in cast(list[RawOp], block.ops):
        if op.name == "aie.dma_bd":
            if transfer is not None:
                raise DesignError(f"{op.loc}: a second aie.dma_bd in one block; a descriptor is one block")
            transfer = Transfer(op, acquires, packet_id=packet if packet is not None else packet_of(op))
        elif op.name == "aie.dma_bd_packet":
            packet = op.prop("packet_id")
        elif op.name == "aie.use_lock":
            use, released = _use(op)
            if released and transfer is None:
                raise DesignError(f"{op.loc}: a descriptor releases a lock only after its aie.dma_bd")
            (transfer.releases if released and transfer else acquires).append(use)
        elif op.name == "aie.next_bd":
            return transfer, op.successors[0][0]
        elif op.name == "aie.end":
            return transfer, None
        elif op.name != "arith.constant":
            raise UnsupportedError(f"{op.loc}: operation {op.name} in a DMA program is not read here")
    return transfer, None


def packet_of(op: RawOp) -> int | None:
    """The packet id of an ``aie.dma_bd`` or a shim allocation that carries ``#aie.packet_info``."""
    text = str(op.prop("packet", ""))
    return int(text.rpartition("pkt_id = ")[2].rstrip(">")) if text else None


def _use(op: RawOp) -> tuple[Use, bool]:
    action = op.prop("action")
    return Use(op.operands[0], constant_of(op.operands[1]), action == EXACT), action == RELEASE


def constant_of(value: Value) -> int:
    """The value of an ``arith.constant``; UnsupportedError if it is anything else."""
    owner: Any = value.owner
    if not isinstance(owner, Op) or owner.name != "arith.constant":
        raise UnsupportedError(f"a lock's value in a DMA program must be a constant, not of {owner}")
    attributes: Mapping[str, Any] = owner.props if isinstance(owner, RawOp) else owner.attrs
    return int(plain(attributes["value"]))
