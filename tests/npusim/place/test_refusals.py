"""Every limit and rule is refused with the class and the words that the recorded verdicts ask for.

The designs are the broken ones of tests/data/reference/errors, built by hand; each message also quotes the real
toolchain, names its tile or fifo, and gives a hint.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from npusim import errors
from npusim.errors import CapacityError, DesignError
from npusim.graph import Design, LogicalTile
from npusim.place import place
from tests.npusim.place.build import I32, Maker, memref, one_core

EXPECTED: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "data" / "reference" / "errors" / "expected.json").read_text()
)
CASES: dict[str, Callable[[str], Design]] = {}


def case(build: Callable[[str], Design]) -> Callable[[str], Design]:
    CASES[build.__name__] = build
    return build


def core(col: int | None = None, row: int | None = None) -> LogicalTile:
    return LogicalTile("core", col, row)


@case
def e01_l1_overflow(device: str) -> Design:
    return one_core(device, type=memref(5120))[0].design()


@case
def e02_core_dma_channels(device: str) -> Design:
    maker, tile = Maker(device), core()
    inputs = [maker.fifo(f"x{i}", None, tile) for i in range(3)]
    maker.worker(tile, inputs, [maker.fifo("y", tile)])
    return maker.design()


@case
def e03_shim_channels(device: str) -> Design:
    maker = Maker(device)
    for i in range(3):
        tile = core()
        maker.worker(tile, [maker.fifo(f"x{i}", LogicalTile("shim", 0, 0), tile)], [maker.fifo(f"y{i}", tile)])
    return maker.design()


@case
def e04_shim_channels_unplaced(device: str) -> Design:
    maker = Maker(device)
    for i in range({"npu1": 9, "npu2": 17}[device]):
        tile = core()
        maker.worker(tile, [maker.fifo(f"x{i:02}", None, tile)], [maker.fifo("y", tile)] if i == 0 else [])
    return maker.design()


@case
def e08_bd_exhaustion_shim(device: str) -> Design:
    maker, x, y = one_core(device)
    tasks = [maker.transfer(x) for _ in range(40)]
    maker.drain(y)
    for task in tasks:
        maker.then("free", task)
    return maker.design()


@case
def e09_stride_granularity(device: str) -> Design:
    maker, x, _ = one_core(device, type=memref(64, "i8"))
    maker.transfer(x, (1, 1, 4, 16), (0, 0, 17, 1), host=memref(512, "i8"))
    return maker.design()


@case
def e10_size_over_1023(device: str) -> Design:
    maker, x, _ = one_core(device)
    maker.transfer(x, (1, 1, 2048, 2), (0, 0, 4, 1), host=memref(16384))
    return maker.design()


@case
def e12_bf16_inner_stride_memtile(device: str) -> Design:
    maker, tile, mem = Maker(device), core(), LogicalTile("mem")
    kind = memref((16, 16), "bf16")
    x = maker.fifo("x", None, mem, kind)
    xt = maker.fifo("xt", mem, tile, kind, to_stream=((16, 1), (16, 16)))
    maker.link([x], [xt])
    maker.worker(tile, [xt], [maker.fifo("y", tile, None, kind)])
    return maker.design()


def cascaded(device: str, source: tuple[int, int], dest: tuple[int, int]) -> Design:
    maker, top, bottom = Maker(device), core(*source), core(*dest)
    maker.worker(top, [maker.fifo("a", None, top)])
    maker.worker(bottom, [maker.fifo("b", None, bottom)], [maker.fifo("y", bottom)])
    maker.cascade(top, bottom)
    return maker.design()


@case
def e13_cascade_direction(device: str) -> Design:
    return cascaded(device, (0, 2), (0, 3))


@case
def e14_cascade_not_adjacent(device: str) -> Design:
    return cascaded(device, (0, 4), (0, 2))


@case
def e15_tile_out_of_range(device: str) -> Design:
    return one_core(device, tile=core(0, 9))[0].design()


@case
def e16_worker_on_memtile(device: str) -> Design:
    return one_core(device, tile=core(0, 1))[0].design()


@case
def e17_too_many_locks(device: str) -> Design:
    maker, tile = Maker(device), core()
    loops = [maker.fifo(f"l{i}", tile, tile, memref(8), depth=1) for i in range(9)]
    x, y = maker.fifo("x", None, tile), maker.fifo("y", tile)
    maker.worker(tile, [x, *loops], [y, *loops])
    return maker.design()


@case
def e18_release_too_many(device: str) -> Design:
    return one_core(device, release=2)[0].design()


@case
def e19_two_workers_one_tile(device: str) -> Design:
    maker, first, second = Maker(device), core(1, 3), core(1, 3)
    a, b = maker.fifo("a", None, first), maker.fifo("b", first, second)
    maker.worker(first, [a], [b])
    maker.worker(second, [b], [maker.fifo("c", second)])
    return maker.design()


@case
def e20_no_consumer(device: str) -> Design:
    maker, _, _ = one_core(device)
    z = maker.fifo("z", maker.cores[0].tile, [])
    maker.worker(core(), [], [z])
    return maker.design()


@case
def e27_five_dims(device: str) -> Design:
    maker, tile, mem = Maker(device), core(), LogicalTile("mem")
    x = maker.fifo("x", None, mem, memref(64))
    xt = maker.fifo("xt", mem, tile, memref(64), to_stream=((2, 32), (2, 16), (2, 8), (2, 4), (4, 1)))
    maker.link([x], [xt])
    maker.worker(tile, [xt], [maker.fifo("y", tile, None, memref(64))])
    return maker.design()


@case
def e28_core_4d_dims(device: str) -> Design:
    return one_core(device, type=memref(64), y={"to_stream": ((2, 32), (2, 16), (2, 8), (8, 1))})[0].design()


@case
def e31_join_dims_whole_buffer(device: str) -> Design:
    maker, mem = Maker(device), LogicalTile("mem")
    out = maker.fifo("out", mem, None, memref(128), to_stream=((2, 1), (64, 2)))
    parts = []
    for i in range(2):
        tile = core()
        part = maker.fifo(f"out_join{i}", tile, mem, memref(64))
        maker.worker(tile, [maker.fifo(f"x{i}", None, tile, memref(64))], [part])
        parts.append(part)
    maker.link(parts, [out], (0, 64))
    return maker.design()


@case
def e32_memtile_bds(device: str) -> Design:
    maker, tile, mem = Maker(device), core(), LogicalTile("mem")
    x = maker.fifo("x", None, mem, depth=(2, 30))
    f = maker.fifo("f", mem, tile, depth=(30, 2))
    maker.link([x], [f])
    maker.worker(tile, [f], [maker.fifo("y", tile)])
    return maker.design()


@case
def e33_core_bds_acquired(device: str) -> Design:
    return one_core(device, x={"depth": 20}, y={"depth": 20}, window=16)[0].design()


@case
def e35_memtile_channels(device: str) -> Design:
    maker, mem = Maker(device), LogicalTile("mem")
    whole = maker.fifo("x", None, mem, memref(112))
    parts, tiles = [], [core() for _ in range(7)]
    for i, tile in enumerate(tiles):
        parts.append(maker.fifo(f"p{i}", mem, tile))
        maker.worker(tile, [parts[-1]], [maker.fifo(f"y{i}", tile)] if i < 3 else [])
    maker.link([whole], parts, [16 * i for i in range(7)])
    return maker.design()


@case
def e47_repeat_over_64(device: str) -> Design:
    maker, x, _ = one_core(device)
    maker.transfer(x, (128, 1, 1, 16), (0, 0, 0, 1))
    return maker.design()


@case
def e52_stack_overflow(device: str) -> Design:
    return one_core(device, type=memref(3072), stack_size=32768)[0].design()


@pytest.mark.parametrize("device", ["npu1", "npu2"])
@pytest.mark.parametrize("name", CASES)
def test_recorded_verdicts(name: str, device: str) -> None:
    expected = EXPECTED[name]
    assert "refused" in expected["real"][device]
    with pytest.raises(DesignError) as caught:
        place(CASES[name](device))
    classes = [getattr(errors, c) for c in expected["class"] if hasattr(errors, c)]
    assert isinstance(caught.value, tuple(classes))
    text = str(caught.value)
    missing = [word for word in expected["words"] if not re.search(word, text, re.IGNORECASE)]
    assert not missing, text
    assert "Hint: " in text


QUOTED = {
    "e01_l1_overflow": "allocated buffers exceeded available memory",
    "e08_bd_exhaustion_shim": "Too many simultaneously active buffer descriptors on tile (0,0), which supports up to 16",
    "e09_stride_granularity": "Stride 1 is 17 elements * 1 bytes = 17 bytes, which is not divisible by 4",
    "e10_size_over_1023": "Buffer descriptor length does not match length of transfer expressed by lowest three dimensions",
    "e12_bf16_inner_stride_memtile": "For <32b width datatypes, inner-most dim stride must be 1",
    "e13_cascade_direction": "cascade adjacency requires the destination tile to be one row South or one column East",
    "e14_cascade_not_adjacent": "'aie.cascade_flow' op tiles must be adjacent",
    "e15_tile_out_of_range": "row index (9) must be less than the number of rows in the device (6)",
    "e17_too_many_locks": "not allocated a lock.",
    "e18_release_too_many": "cannot release more elements than are already acquired",
    "e27_five_dims": "Cannot give more than 4 dimensions for step sizes and wraps on this tile (got 5 dimensions)",
    "e28_core_4d_dims": "Cannot give more than 3 dimensions for step sizes and wraps on this tile (got 4 dimensions)",
    "e31_join_dims_whole_buffer": "result in out of bounds access in join input, for index 127 in transfer of length 64.",
    "e32_memtile_bds": "'aie.memtile_dma' op has more than 48 blocks",
    "e33_core_bds_acquired": "'aie.mem' op has more than 16 blocks",
    "e47_repeat_over_64": "Size 3 exceeds the [1:64] range.",
}


@pytest.mark.parametrize("name", QUOTED)
def test_the_quoted_phrase_is_the_real_one(name: str) -> None:
    recorded = (Path(__file__).parents[2] / "data" / "reference" / "errors" / f"{name}.txt").read_text()
    assert QUOTED[name] in recorded
    with pytest.raises(DesignError) as caught:
        place(CASES[name]("npu2"))
    assert QUOTED[name] in str(caught.value)


def test_l1_overflow_shows_the_memory_map() -> None:
    with pytest.raises(CapacityError) as caught:
        place(one_core(type=memref(5120))[0].design())
    text = str(caught.value)
    assert "compute tile (0,2) needs 82944 bytes" in text
    assert "fifo 'y': 2 x 20480 bytes = 40960 bytes (design.py:2)" in text
    assert "0x05400-0x0a3ff  20,480 B  y_buff_1 fifo 'y'" in text  # addresses as in the recorded map
    banks = re.findall(r"bank \d: (0x\w+)-(0x\w+), 16,384 of 16,384 bytes", text)
    assert banks == [("0x00000", "0x03fff"), ("0x04000", "0x07fff"), ("0x08000", "0x0bfff"), ("0x0c000", "0x0ffff")]
    assert "beyond the end: 0x10000-0x143ff, 17,408 of 17,408 bytes\n    ... x_cons_buff_1, up to 0x143ff" in text


def test_a_bank_that_one_buffer_fills_takes_one_line() -> None:
    maker, mem = Maker(), LogicalTile("mem")
    x, y = (maker.fifo(n, *ends, memref(96 * 1024), depth=4) for n, ends in {"x": (None, mem), "y": (mem, None)}.items())
    maker.link([x], [y])
    with pytest.raises(CapacityError, match=r"bank 1: all of it x_cons_buff_0\n  bank 2: all of it x_cons_buff_0"):
        place(maker.design())


def test_the_fifos_at_fault_are_listed() -> None:
    with pytest.raises(CapacityError) as caught:
        place(CASES["e02_core_dma_channels"]("npu2"))
    for name in ("x0", "x1", "x2"):
        assert f"fifo '{name}' receives objects of 64 bytes" in str(caught.value)


def test_an_undrained_output_is_refused() -> None:
    maker, x, _ = one_core()
    maker.transfer(x)
    with pytest.raises(DesignError, match="the output of fifo 'y' is never taken: the host sequence never drains it"):
        place(maker.design(host_ends=False))


def test_a_worker_left_out_is_named() -> None:
    maker, _, _ = one_core()
    maker.cores.clear()
    with pytest.raises(DesignError, match=r"(?s)no worker runs on compute tile .*workers=\["):
        place(maker.design())


def test_an_input_nobody_takes_is_refused() -> None:
    maker, tile = Maker(), core()
    maker.fifo("x", None, tile)
    maker.worker(tile, [], [maker.fifo("y", tile)])
    with pytest.raises(DesignError, match=r"worker 'worker 0' on compute tile .* never acquires from it"):
        place(maker.design())


def test_memtile_bds_by_channel_parity() -> None:
    """Two fifos on even channels want 2 x 14 of the 24 descriptors that even channels reach."""
    maker, tile, mem = Maker(), core(), LogicalTile("mem")
    x = maker.fifo("x", None, mem, depth=(2, 14), consumer_channels=(0,))
    f = maker.fifo("f", mem, tile, depth=(14, 2), producer_channel=0)
    maker.link([x], [f])
    maker.worker(tile, [f], [maker.fifo("y", tile)])
    phrase = r"(?s)need 28 buffer descriptors.*exhausted available BD IDs \(maximum 24 available for channel 0\)"
    with pytest.raises(CapacityError, match=phrase):
        place(maker.design())


def test_split_of_a_split_is_refused() -> None:
    maker, tile, mem = Maker(), core(), LogicalTile("mem")
    x, f = maker.fifo("x", None, mem), maker.fifo("f", mem, tile)
    maker.link([x], [f])
    maker.link([x], [f])
    maker.worker(tile, [f], [maker.fifo("y", tile)])
    with pytest.raises(DesignError, match="takes part in two links"):
        place(maker.design())


def test_two_fifos_of_one_name() -> None:
    maker, _, _ = one_core()
    maker.fifos[1].name = "x"
    with pytest.raises(DesignError, match="fifo 'x' exists twice"):
        place(maker.design(host_ends=False))


def test_two_cascades_out_of_one_core() -> None:
    maker = Maker()
    tiles = [core(0, 3), core(0, 2), core(1, 3)]
    maker.worker(tiles[0], [maker.fifo("a", None, tiles[0])])
    for i in (1, 2):
        maker.worker(tiles[i], [maker.fifo(f"b{i}", None, tiles[i])])
        maker.cascade(tiles[0], tiles[i])
    with pytest.raises(DesignError, match=r"two cascades go out of compute tile \(0,3\)"):
        place(maker.design())


def test_a_buffer_out_of_reach() -> None:
    from npusim.graph import Buffer

    maker, far, near = Maker(), core(2, 2), core(0, 2)
    table = Buffer("table", I32, far, initial=np.zeros(16, np.int32))
    maker.result.buffers.append(table)
    maker.worker(near, [maker.fifo("x", None, near)], [maker.fifo("y", near)], uses=[table])
    with pytest.raises(DesignError, match=r"buffer 'table' of compute tile \(2,2\), whose memory it does not reach"):
        place(maker.design())


def test_waiting_without_a_token() -> None:
    maker, x, _ = one_core()
    maker.then("await", maker.transfer(x))
    with pytest.raises(DesignError, match="not configured to issue a token"):
        place(maker.design())


def test_waiting_twice() -> None:
    maker, x, _ = one_core()
    task = maker.transfer(x, wait=True)
    maker.then("await", task)
    maker.then("await", task)
    with pytest.raises(DesignError, match="awaited before, or never started"):
        place(maker.design())


def test_beyond_the_host_array() -> None:
    maker, x, _ = one_core()
    maker.transfer(x, (1, 1, 1, 16), (0, 0, 0, 1), offset=8, host=I32)
    with pytest.raises(DesignError, match="reaches element 23 of a host array of 16"):
        place(maker.design())


def test_a_transfer_of_a_workers_end() -> None:
    maker, _, _ = one_core()
    maker.transfer("inner")
    with pytest.raises(DesignError, match="'inner', which has no end on a shim tile"):
        place(maker.design())
