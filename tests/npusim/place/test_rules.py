"""One broken design for every rule of fifos, links, transforms and bodies; the words name what to change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from npusim.errors import CapacityError, DesignError
from npusim.graph import Design, LogicalTile
from npusim.place import place
from tests.npusim.place.build import I32, Maker, memref, one_core

VALUES = [np.zeros(16, np.int32)] * 2


def consumer(**options: Any) -> Callable[[], Design]:
    """x -> worker -> y, with options on x."""
    return lambda: one_core(x=options, type=options.pop("type", I32))[0].design()


def producer(**options: Any) -> Callable[[], Design]:
    """The same with options on y."""
    return lambda: one_core(y=options, type=options.pop("type", I32))[0].design()


def forward(device: str = "npu2", into: Any = I32, **options: Any) -> Callable[[], Design]:
    """x -> MemTile -> f -> worker, with options on f."""

    def build() -> Design:
        maker, tile, mem = Maker(device), LogicalTile("core"), LogicalTile("mem")
        x, f = maker.fifo("x", None, mem, into), maker.fifo("f", mem, tile, **options)
        maker.link([x], [f])
        maker.worker(tile, [f], [maker.fifo("y", tile)])
        return maker.design()

    return build


def split(offsets: tuple[int, ...], *, mem: str = "mem", whole: Any = None, part: Any = None) -> Callable[[], Design]:
    """x split to two workers, with options on x and on the parts."""

    def build() -> Design:
        maker, middle = Maker(), LogicalTile(mem)  # type: ignore[arg-type]
        x = maker.fifo("x", None, middle, memref(32), **(whole or {}))
        tiles = [LogicalTile("core") for _ in range(2)]
        parts = [maker.fifo(f"p{i}", middle, t, **((part or [{}, {}])[i])) for i, t in enumerate(tiles)]
        maker.link([x], parts, offsets)
        for tile, fifo in zip(tiles, parts, strict=True):
            maker.worker(tile, [fifo])
        return maker.design()

    return build


def shim_end(side: str, **options: Any) -> Callable[[], Design]:
    return consumer(**options) if side == "producer" else producer(**options)


RULES: dict[str, tuple[Callable[[], Design], type[DesignError], str]] = {
    "depth 0": (consumer(depth=0), DesignError, "has a depth of 0; a fifo needs at least one buffer"),
    "depths missing": (consumer(depth=(2, 2, 2)), DesignError, "gives 3 depths for a producer and 1 consumer"),
    "transform at the host": (
        shim_end("producer", to_stream=((4, 4), (4, 1))),
        DesignError,
        "has dims_to_stream, but its producer is the host",
    ),
    "transform to the host": (
        shim_end("consumer", from_stream=(((4, 4), (4, 1)),)),
        DesignError,
        "has dims_from_stream, but its consumer is the host",
    ),
    "repeat at the host": (consumer(repeat_count=2), DesignError, "`repeat_count` unavailable for shim tiles"),
    "iter_count without MemTile": (consumer(iter_count=3), DesignError, "no end on a MemTile"),
    "iter_count too large": (forward(iter_count=300), DesignError, "`iter_count` must be between 1 and 256"),
    "initial values at the host": (
        consumer(init_values=VALUES),
        DesignError,
        "`init_values` unavailable for shim tiles",
    ),
    "too few initial values": (producer(init_values=VALUES[:1]), DesignError, "1 initial value for a depth of 2"),
    "initial value of another size": (
        producer(init_values=[np.zeros(8, np.int32)] * 2),
        DesignError,
        "initial value of 8 elements for objects of 16",
    ),
    "padding on a core": (
        producer(pad=((1, 1),), to_stream=((16, 1),)),
        DesignError,
        "Padding is only supported by memtile dma bds",
    ),
    "padding without dims": (forward(pad=((1, 1),)), DesignError, "is padded without dims_to_stream"),
    "padding of other rank": (
        forward(type=memref(20), pad=((0, 0), (2, 2)), to_stream=((16, 1),)),
        DesignError,
        "pads 2 dimensions of 1",
    ),
    "padding beyond the object": (
        forward(type=memref(18), pad=((2, 2),), to_stream=((16, 1),)),
        DesignError,
        "padded to 20 elements, .* has 18",
    ),
    "padding by half a word": (
        forward(into=memref(16, "i16"), type=memref(18, "i16"), pad=((1, 1),), to_stream=((16, 1),)),
        DesignError,
        "no multiple of 4 bytes",
    ),
    "pad value on XDNA 1": (
        forward("npu1", type=memref(20), pad=((2, 2),), pad_value=7, to_stream=((16, 1),)),
        DesignError,
        "npu1 pads with zeros only",
    ),
    "consumer of another element": (
        consumer(consumer_type=memref(16, "i16")),
        DesignError,
        "producer and consumer must have the same scalar element type",
    ),
    "consumer that does not divide": (
        consumer(consumer_type=memref(12)),
        DesignError,
        "objects of 16 elements, which the consumer's 12 do not divide",
    ),
    "delegate and via_DMA": (
        consumer(delegate_tile=LogicalTile("core", 0, 3), via_dma=True),
        DesignError,
        "delegate tile and via_DMA",
    ),
    "object of 3 bytes": (consumer(type=memref(3, "i8")), DesignError, "moves 3 bytes at a time"),
    "object beyond the length field": (
        forward(into=memref(131072), type=memref(131072), to_stream=()),
        CapacityError,
        "ends at 131071 words",
    ),
    "stride 0": (producer(to_stream=((2, 0), (16, 1))), DesignError, "has a stride of 0"),
    "stride of half a word": (
        producer(type=memref(30, "i16"), to_stream=((2, 15), (2, 1))),
        DesignError,
        "15 elements = 30 bytes",
    ),
    "stride beyond the field": (
        producer(type=memref(9000), depth=1, to_stream=((2, 8999), (1, 1))),
        CapacityError,
        "8999 words; the field ends at 8192",
    ),
    "inner size of half a word": (
        producer(type=memref(30, "i16"), to_stream=((2, 16), (3, 1))),
        DesignError,
        "3 elements = 6 bytes",
    ),
    "out of the buffer": (
        producer(to_stream=((4, 8), (4, 1))),
        DesignError,
        "reaches element 27 of a buffer of 16 elements",
    ),
    "size beyond a core's field": (
        producer(type=memref(1024), to_stream=((2, 512), (300, 1))),
        CapacityError,
        r"is 300; .* ends at 255",
    ),
    "size beyond the compiler": (
        forward(into=memref(4096), type=memref(4096), to_stream=((600, 4), (4, 1))),
        CapacityError,
        "Size may not exceed 1023",
    ),
    "split with one offset": (split((0,)), DesignError, "has 1 offset for 2 fifos"),
    "split backwards": (split((16, 0)), DesignError, "do not rise within the object"),
    "split on a core": (split((0, 16), mem="core"), DesignError, "join and distribute are unavailable on compute"),
    "split that repeats unevenly": (
        split((0, 16), part=[{"repeat_count": 2}, {}]),
        DesignError,
        "repeat counts of output object FIFOs must be equal",
    ),
    "split transform beyond a part": (
        split((0, 16), whole={"from_stream": (((8, 4), (4, 1)),)}),
        DesignError,
        "out of bounds access in distribute output",
    ),
    "window beyond the depth": (
        lambda: one_core(x={"depth": (2, 2)}, window=3)[0].design(),
        DesignError,
        "acquires 3 objects of fifo 'x' at once",
    ),
}


@pytest.mark.parametrize("name", RULES)
def test_rule(name: str) -> None:
    build, kind, words = RULES[name]
    with pytest.raises(DesignError, match=words) as caught:
        place(build())
    assert type(caught.value) is kind
    assert "Hint: " in str(caught.value)


def test_a_worker_with_the_wrong_end() -> None:
    """A consumer that acquires the producer's side."""
    maker, _, y = one_core()
    tile = LogicalTile("core")
    maker.worker(tile, [maker.fifo("z", None, tile)], [y])
    with pytest.raises(DesignError, match="uses fifo 'y' as its producer, but that end is elsewhere"):
        place(maker.design())


def test_a_link_without_a_common_tile() -> None:
    maker, tile = Maker(), LogicalTile("core")
    x, f = maker.fifo("x", None, LogicalTile("mem", 0, 1)), maker.fifo("f", LogicalTile("mem", 1, 1), tile)
    maker.link([x], [f])
    maker.worker(tile, [f], [maker.fifo("y", tile)])
    with pytest.raises(DesignError, match="has no tile on which all its fifos meet"):
        place(maker.design())


def test_a_join_that_repeats() -> None:
    maker, mem = Maker(), LogicalTile("mem")
    out = maker.fifo("out", mem, None, memref(32), repeat_count=2)
    parts = []
    for i in range(2):
        tile = LogicalTile("core")
        parts.append(maker.fifo(f"p{i}", tile, mem))
        maker.worker(tile, [maker.fifo(f"x{i}", None, tile)], [parts[-1]])
    maker.link(parts, [out], (0, 16))
    with pytest.raises(DesignError, match="joins several fifos and has a repeat_count"):
        place(maker.design())


def test_two_host_consumers_of_one_fifo() -> None:
    maker, _, y = one_core()
    y.consumers = [LogicalTile("shim"), LogicalTile("shim")]
    with pytest.raises(DesignError, match="has 2 consumers on the host's side"):
        place(maker.design())


def test_a_transform_that_changes_nothing_may_have_parts_of_a_word() -> None:
    """As mlir-aie's cascade example has it: mmul tiles of 1 x 1 elements of i16."""
    half = memref(64, "i16")
    place(forward(into=half, type=half, to_stream=((8, 8), (8, 1), (1, 8), (1, 1)))())
    with pytest.raises(DesignError, match="no multiple of 4 bytes"):
        place(forward(into=half, type=half, to_stream=((4, 16), (8, 1), (1, 1)))())
    with pytest.raises(DesignError, match="6 bytes, which is no multiple of 4 bytes"):
        place(forward(into=memref(48, "i16"), type=memref(48, "i16"), to_stream=((16, 3), (3, 1)))())


def test_a_transform_below_a_word_reads_the_whole_object() -> None:
    """One i16 of an object of two: the field holds no size, so nothing is left out and nothing to be warned of."""
    pair = memref(2, "i16")
    placed = place(forward(into=pair, type=pair, to_stream=((1, 2), (1, 1)))())
    assert not placed.warnings
