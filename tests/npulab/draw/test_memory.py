"""The memory map of a tile."""

from __future__ import annotations

import pytest

from npulab import draw
from npulab.draw.memory import overlaps
from npusim.machine import MemBuffer
from tests.npulab import machines
from tests.npulab.draw.pictures import hints, legible, texts


@pytest.mark.parametrize("tile", [(0, 2), (0, 1), (7, 1), (7, 5)])
def test_words_neither_overlap_nor_leave_the_picture(tile: tuple[int, int]) -> None:
    legible(draw.memory(machines.matmul_machine(), tile))


def test_what_lies_where() -> None:
    picture = draw.memory(machines.saxpy_machine(), (0, 2))
    assert hints(picture)[:3] == [
        "stack: 1 KiB from 0x0 to 0x400",
        "x_buff_0: 2 KiB from 0x400 to 0xc00",
        "x_buff_1: 2 KiB from 0xc00 to 0x1400",
    ]
    assert "13 KiB of 64 KiB in use, 51 KiB free" in texts(picture)
    assert picture.alt.startswith(
        "13 KiB of 64 KiB in use, 51 KiB free. Stack 1 KiB at 0. x_buff_0: memref<1024xbf16>, 2 KiB at 0x400"
    )


def test_each_bank_is_a_row() -> None:
    machine = machines.matmul_machine()
    assert sum(t.startswith("bank ") for t in texts(draw.memory(machine, (0, 2)))) == machine.device.core.banks.value
    assert sum(t.startswith("bank ") for t in texts(draw.memory(machine, (0, 1)))) == machine.device.mem.banks.value


def test_a_buffer_over_two_banks_is_in_both() -> None:
    machine = machines.saxpy_machine()
    machine.buffers.append(MemBuffer("wide", machine.cores[0].tile, machines.MemRefType((4096,), "i32"), 16384 + 1024))
    assert sum(h.startswith("wide:") for h in hints(draw.memory(machine, (0, 2)))) == 2


def test_beyond_the_capacity() -> None:
    machine = machines.saxpy_machine()
    machine.buffers.append(MemBuffer("huge", machine.cores[0].tile, machines.MemRefType((65536,), "i8"), 8192 * 2))
    words = texts(draw.memory(machine, (0, 2)))
    assert "beyond the memory" in words and any("too much" in t for t in words)


def test_overlaps_are_found() -> None:
    machine = machines.saxpy_machine()
    assert overlaps(machine, machine.cores[0].tile) == []
    machine.buffers[0].address = 1000
    assert overlaps(machine, machine.cores[0].tile) == [("stack", "x_buff_0")]


def test_tiles_without_memory_are_refused() -> None:
    with pytest.raises(ValueError, match="no data memory"):
        draw.memory(machines.saxpy_machine(), (0, 0))
    with pytest.raises(ValueError, match="no tile"):
        draw.memory(machines.saxpy_machine(), (9, 2))


def test_an_empty_tile() -> None:
    assert "No buffers" in draw.memory(machines.saxpy_machine(), (1, 2)).alt
