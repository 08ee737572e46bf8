"""Addresses: the stack at 0, then the largest buffers first, going round the banks; in sequence if that does not fit.

The scheme is the real one (mlir-aie's aie-assign-buffer-addresses, August 2026), so addresses agree with what the compiler
prints, except where it sorts more than 16 buffers of one size on a tile (its sort is not stable).
"""

from __future__ import annotations

from dataclasses import dataclass

from npusim.errors import CapacityError, DesignError
from npusim.graph import Design
from npusim.machine import Coord, MemBuffer
from npusim.place.draft import Draft, label
from npusim.place.memory_map import overflow, stack_too_large

DEFAULT_STACK = 1024
"""Bytes of stack of a core that asks for nothing (mlir-aie, getDefaultCoreStackSize)."""
CORE_ALIGNMENT = 32
"""Bytes: the load/store width of a compute tile (mlir-aie, getComputeTileLoadStoreBusWidth: 256 bit)."""
MEM_ALIGNMENT = 4
"""Bytes: the smallest DMA access of a MemTile (mlir-aie, getMemTileLoadStoreBusWidth)."""


@dataclass(frozen=True)
class Memory:
    """One tile's data memory: its size and banks, the stack at its bottom, the alignment of buffers. Bytes."""

    tile: Coord
    size: int
    banks: int
    stack: int
    alignment: int

    @property
    def bank_size(self) -> int:
        return self.size // self.banks

    def align(self, address: int) -> int:
        return -(-address // self.alignment) * self.alignment


def assign_addresses(draft: Draft) -> None:
    """Give every buffer its address and bank. Raises CapacityError with a memory map if a tile's memory overflows."""
    by_tile: dict[Coord, list[MemBuffer]] = {draft.at(core.tile): [] for core in draft.design.cores}
    for buffer in draft.buffers:
        by_tile.setdefault(buffer.tile, []).append(buffer)
    for tile, buffers in by_tile.items():
        memory = memory_of(draft, tile)
        if memory.stack >= memory.size:
            raise CapacityError(stack_too_large(memory.tile, memory.stack, memory.size, buffers))
        if not _round_banks(draft, memory, buffers):
            _in_sequence(draft, memory, buffers)


def pack(design: Design, tile: Coord, buffers: list[MemBuffer], stack: int) -> None:
    """The same for the buffers of one tile, with ``stack`` bytes of stack, in the order in which they are given."""
    draft = Draft(design, {})
    limits = draft.limits(tile)
    alignment = MEM_ALIGNMENT if tile.row == 1 else CORE_ALIGNMENT
    memory = Memory(tile, limits.memory.value, limits.banks.value, stack, alignment)
    if not _round_banks(draft, memory, buffers):
        _in_sequence(draft, memory, buffers)


def memory_of(draft: Draft, tile: Coord) -> Memory:
    """The memory of a tile; it has a stack if a core runs there."""
    limits, core = draft.limits(tile), draft.core_at(tile)
    stack = 0
    if core is not None:
        stack = DEFAULT_STACK if core.stack_size is None else core.stack_size
    alignment = MEM_ALIGNMENT if tile.row == 1 else CORE_ALIGNMENT
    return Memory(tile, limits.memory.value, limits.banks.value, stack, alignment)


def _round_banks(draft: Draft, memory: Memory, buffers: list[MemBuffer]) -> bool:
    """Largest first, each into the next bank with room. False (and no change) if one fits into no bank."""
    next_free = [memory.bank_size * bank for bank in range(memory.banks)]
    next_free[0] += memory.stack
    for buffer in sorted((b for b in buffers if b in draft.fixed), key=lambda b: draft.fixed[b]):
        bank = _place_fixed(draft, memory, buffer)
        if buffer.address < next_free[bank]:
            raise _overlap(memory, buffer)
        next_free[bank] = buffer.address + buffer.type.nbytes
    chosen: dict[MemBuffer, tuple[int, int]] = {}
    turn = 0
    for buffer in sorted((b for b in buffers if b not in draft.fixed), key=lambda b: -b.type.nbytes):
        for bank in ((turn + step) % memory.banks for step in range(memory.banks)):
            start = memory.align(next_free[bank])
            if start + buffer.type.nbytes <= memory.bank_size * (bank + 1):
                break
        else:
            return False
        chosen[buffer] = start, bank
        next_free[bank] = start + buffer.type.nbytes
        turn = (bank + 1) % memory.banks
    for buffer, (address, bank) in chosen.items():
        buffer.address, buffer.bank = address, bank
    return True


def _place_fixed(draft: Draft, memory: Memory, buffer: MemBuffer) -> int:
    address = draft.fixed[buffer]
    if address % memory.alignment or not 0 <= address < memory.size:
        raise DesignError(
            f"buffer {buffer.name!r} asks for address {address:#x} on {label(memory.tile)}: it must be a multiple of "
            f"{memory.alignment} below {memory.size:#x} ({buffer.loc})"
        )
    buffer.address, buffer.bank = address, address // memory.bank_size
    return buffer.bank


def _overlap(memory: Memory, buffer: MemBuffer) -> DesignError:
    return DesignError(
        f"buffer {buffer.name!r} asks for address {buffer.address:#x} on {label(memory.tile)}, where the stack or another "
        f'buffer lies. The real toolchain says: "would override allocated address". ({buffer.loc})'
    )


def _in_sequence(draft: Draft, memory: Memory, buffers: list[MemBuffer]) -> None:
    """Largest first, one after the other, round what has a fixed address; banks are not looked at."""
    fixed = sorted((b for b in buffers if b in draft.fixed), key=lambda b: b.address)
    address = memory.stack
    for buffer in sorted((b for b in buffers if b not in draft.fixed), key=lambda b: -b.type.nbytes):
        address = memory.align(address)
        while fixed and address + buffer.type.nbytes > fixed[0].address:
            first = fixed.pop(0)
            address = memory.align(first.address + first.type.nbytes)
        buffer.address, buffer.bank = address, None
        address += buffer.type.nbytes
    top = max((b.address + b.type.nbytes for b in buffers), default=0)
    if top > memory.size:
        raise CapacityError(overflow(memory.tile, memory.stack, memory.size, memory.banks, buffers))
