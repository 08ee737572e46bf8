"""What the real tools accept although it is probably a mistake: a warning that names the trap, and none for a healthy twin."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from npusim.errors import DesignWarning
from npusim.graph import Design, LogicalTile
from npusim.machine import Machine
from npusim.place import place
from tests.npusim.place.build import I32, Maker, memref, one_core

EXPECTED = json.loads((Path(__file__).parents[2] / "data" / "reference" / "errors" / "expected.json").read_text())


def noted(design: Design) -> tuple[Machine, list[str]]:
    """The machine and its warnings; those emitted are those in ``Machine.warnings``."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        machine = place(design)
    assert [str(w.message) for w in caught if w.category is DesignWarning] == machine.warnings
    return machine, machine.warnings


def e07_bd_exhaustion_core(device: str) -> Design:
    return one_core(device, x={"depth": 20})[0].design()


def e11_bf16_inner_stride(device: str) -> Design:
    maker, x, _ = one_core(device, type=memref(64, "bf16"))
    maker.transfer(x, (1, 1, 1, 64), (0, 0, 0, 2), host=memref(256, "bf16"))
    return maker.design()


def e43_dims_product(device: str) -> Design:
    return one_core(device, type=memref(64), y={"to_stream": ((4, 8), (8, 1))})[0].design()


def e55_no_release(device: str) -> Design:
    return one_core(device, release=0)[0].design()


@pytest.mark.parametrize("device", ["npu1", "npu2"])
@pytest.mark.parametrize(
    "build", [e07_bd_exhaustion_core, e11_bf16_inner_stride, e43_dims_product, e55_no_release], ids=lambda b: b.__name__
)
def test_recorded_verdicts(build: Callable[[str], Design], device: str) -> None:
    expected = EXPECTED[build.__name__]
    assert expected["real"][device] == "accepted"
    _, texts = noted(build(device))
    for word in expected["warn_words"]:
        assert any(re.search(word, text, re.IGNORECASE) for text in texts), texts
    assert bool(texts) == bool(expected["warn_words"])


def test_a_plain_design_has_no_warning() -> None:
    assert noted(one_core()[0].design())[1] == []


def test_a_drain_without_a_wait() -> None:
    maker, _, y = one_core()
    maker.transfer(y)
    _, texts = noted(maker.design())
    assert [t for t in texts if "the last drain of 'y' is never waited for" in t]


def test_a_wait_for_the_last_of_several_drains_is_enough() -> None:
    maker, _, y = one_core()
    maker.transfer(y)
    maker.drain(y)
    assert noted(maker.design())[1] == []


def test_an_input_that_is_never_filled() -> None:
    maker, _, y = one_core()
    maker.drain(y)
    _, texts = noted(maker.design(host_ends=False))
    assert len(texts) == 1
    assert "nothing is ever put into fifo 'x': the host sequence never fills it" in texts[0]


def test_a_window_held_outside_a_loop_needs_no_release() -> None:
    """A worker that runs once may keep what it holds."""
    assert noted(one_core(release=0, forever=False)[0].design())[1] == []


def test_a_full_memtile_spills_to_its_neighbour() -> None:
    """Three buffers of 192 KiB on a MemTile of 512 KiB: the third goes next door."""
    maker, mem = Maker("npu1"), LogicalTile("mem", 1, 1)
    kind = memref(48 * 1024)
    x, y = maker.fifo("x", None, mem, kind, depth=3), maker.fifo("y", mem, None, kind, depth=3)
    maker.link([x], [y])
    machine, texts = noted(maker.design())
    assert [b.tile for b in machine.buffers] == [(1, 1), (1, 1), (0, 1)]
    assert len(texts) == 1
    assert "MemTile (1,1) is full: a buffer of fifo 'x' (196608 bytes) goes to MemTile (0,1)" in texts[0]


def test_parts_that_are_not_their_objects() -> None:
    """The offsets of a split decide its parts, whatever the parts' types say."""
    maker, mem = Maker(), LogicalTile("mem")
    x = maker.fifo("x", None, mem, memref(64))
    outs = [maker.fifo(f"p{i}", mem, None, memref(32)) for i in range(2)]
    maker.link([x], outs, (0, 16))
    _, texts = noted(maker.design())
    assert [re.search(r"objects of \d+ elements, but its part of the split is \d+", t).group() for t in texts] == [  # type: ignore[union-attr]
        "objects of 32 elements, but its part of the split is 16",
        "objects of 32 elements, but its part of the split is 48",
    ]


def test_a_flow_without_a_dma_program() -> None:
    from npusim.graph import Flow

    maker, _, _ = one_core(tile=LogicalTile("core", 0, 2))
    maker.result.flows.append(Flow(LogicalTile("core", 0, 4), LogicalTile("core", 0, 5)))
    _, texts = noted(maker.design())
    assert [t.split(",")[0] for t in texts] == [
        "a flow uses MM2S 0 of compute tile (0",
        "a flow uses S2MM 0 of compute tile (0",
    ]


# -- each warning and a healthy twin that has none


def sub_word_stride(broken: bool) -> Design:
    maker, x, _ = one_core(type=memref(64, "bf16"))
    maker.transfer(x, (1, 1, 1, 64), (0, 0, 0, 2 if broken else 1), host=memref(256, "bf16"))
    return maker.design()


def short_transform(broken: bool) -> Design:
    return one_core(type=memref(64), y={"to_stream": ((4 if broken else 8, 8), (8, 1))})[0].design()


def missing_release(broken: bool) -> Design:
    return one_core(release=0 if broken else None)[0].design()


def last_drain_not_awaited(broken: bool) -> Design:
    maker, _, y = one_core()
    task = maker.transfer(y, wait=True)
    if not broken:
        maker.then("await", task)
    return maker.design()


def never_filled(broken: bool) -> Design:
    maker, x, y = one_core()
    if not broken:
        maker.transfer(x)
    maker.drain(y)
    return maker.design(host_ends=False)


def no_worker_at_the_start(broken: bool) -> Design:
    """A fifo whose producer was left out of the program's workers."""
    maker, first, second = Maker(), LogicalTile("core", 0, 2), LogicalTile("core", 0, 3)
    a, b = maker.fifo("a", first, second), maker.fifo("b", second)
    if not broken:
        maker.worker(first, [], [a])
    maker.worker(second, [a], [b])
    return maker.design()


def spilled(broken: bool) -> Design:
    maker, mem = Maker("npu1"), LogicalTile("mem", 1, 1)
    kind = memref(48 * 1024)
    depth = 3 if broken else 2
    x, y = maker.fifo("x", None, mem, kind, depth=depth), maker.fifo("y", mem, None, kind, depth=depth)
    maker.link([x], [y])
    return maker.design()


def uneven_parts(broken: bool) -> Design:
    maker, mem = Maker(), LogicalTile("mem")
    x = maker.fifo("x", None, mem, memref(64))
    outs = [maker.fifo(f"p{i}", mem, None, memref(32)) for i in range(2)]
    maker.link([x], outs, (0, 16 if broken else 32))
    return maker.design()


def flow_without_program(broken: bool) -> Design:
    from npusim.graph import Buffer, ChannelProgram, Descriptor, Flow, TileDma

    maker, _, _ = one_core(tile=LogicalTile("core", 0, 2))
    ends = [LogicalTile("core", 0, 4), LogicalTile("core", 0, 5)]
    maker.result.flows.append(Flow(*ends))
    if not broken:
        for tile, direction in zip(ends, ("MM2S", "S2MM")):
            buffer = Buffer(f"own{tile.row}", I32, tile)
            maker.result.buffers.append(buffer)
            maker.result.tile_dmas.append(TileDma(tile, [ChannelProgram(direction, 0, [Descriptor(buffer)])]))  # type: ignore[arg-type]
    return maker.design()


TWINS = {
    sub_word_stride: "has an inner stride of 2 elements of 2 bytes, but the DMA moves 4-byte words",
    short_transform: "dims_to_stream of fifo 'y' covers 32 elements, but 64 are moved",
    missing_release: "acquires from fifo 'x' in a loop and never releases",
    last_drain_not_awaited: "the last drain of 'y' is never waited for",
    never_filled: "nothing is ever put into fifo 'x': the host sequence never fills it",
    no_worker_at_the_start: "nothing is ever put into fifo 'a': no worker runs on compute tile (0,2), where it starts",
    spilled: "MemTile (1,1) is full: a buffer of fifo 'x' (196608 bytes) goes to MemTile (0,1)",
    uneven_parts: "fifo 'p0' has objects of 32 elements, but its part of the split is 16 elements long",
    flow_without_program: "a flow uses MM2S 0 of compute tile (0,4), but no DMA program runs on that channel",
}


@pytest.mark.parametrize("build", TWINS, ids=lambda b: b.__name__)
def test_a_mistake_is_warned_about_with_a_hint(build: Callable[[bool], Design]) -> None:
    _, texts = noted(build(True))
    assert any(TWINS[build] in text and "Hint: " in text for text in texts), texts


@pytest.mark.parametrize("build", TWINS, ids=lambda b: b.__name__)
def test_its_healthy_twin_is_not(build: Callable[[bool], Design]) -> None:
    assert noted(build(False))[1] == []
