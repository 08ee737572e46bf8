"""Whether two designs are the same graph, and if not, the first difference in words.

The same means: the same things with the same values, connected the same way. Names tell fifos, buffers, locks and kernels
apart; tiles pair by what stands on them, so that an unplaced one has its counterpart too. The order in which things are
listed does not count (printed modules show it), nor do source lines, names of cores, and what a module cannot say: where a
kernel's source lies, and whether the host may write a buffer that it does not write.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, NoReturn, TypeVar

import numpy as np

from npusim.graph import (
    ChannelProgram,
    Core,
    Descriptor,
    Design,
    Fifo,
    Flow,
    Link,
    Lock,
    LockAction,
    LogicalTile,
    TileDma,
)
from npusim.mlir.padding import pad_word
from npusim.mlir.samebody import Bodies, Difference
from npusim.types import MemRefType

T = TypeVar("T")
P = TypeVar("P", Core, TileDma)


def compare(a: Design, b: Design, sides: tuple[str, str] = ("the first", "the second")) -> str | None:
    """The first difference between two designs, naming the thing and what both ``sides`` have; None if there is none."""
    try:
        _Comparison(a, b, sides).run()
    except Difference as difference:
        return str(difference)
    return None


class _Comparison:
    """The state of one comparison: the pairs of tiles and locks found so far."""

    def __init__(self, a: Design, b: Design, sides: tuple[str, str]) -> None:
        self.a, self.b, self.sides = a, b, sides
        self.tiles: dict[LogicalTile, LogicalTile] = {}
        self.locks: dict[Lock, Lock] = {}

    def run(self) -> None:
        a, b = self.a, self.b
        self.equal("device", a.device.name, b.device.name)
        self.equal("name of the device", a.name, b.name)
        self.named("scratchpad parameter", a.scratchpads, b.scratchpads, lambda p: p.name, self.scratchpads)
        self.named("fifo", a.fifos, b.fifos, lambda f: f.name, self.fifos)
        self.named("link", a.links, b.links, _link_name, self.link_pairs)
        self.named("buffer", a.buffers, b.buffers, lambda x: x.name, self.buffers)
        self.all_locks()
        self.in_order("flow", a.flows, b.flows, self.flow_pairs)
        self.in_order("cascade", a.cascades, b.cascades, self.ends)
        self.named("kernel", a.kernels, b.kernels, lambda k: k.name, self.kernels)
        self.on_tiles("core", a.cores, b.cores, self.cores)
        self.on_tiles("tile DMA", a.tile_dmas, b.tile_dmas, self.dmas)
        self.sequences()
        self.remaining_tiles()

    # -- what differs

    def equal(self, what: str, a: object, b: object) -> None:
        if a != b:
            self.differ(what, a, b)

    def differ(self, what: str, a: object, b: object) -> NoReturn:
        first, second = self.sides
        raise Difference(f"{what}: {_shown(a)} in {first}, {_shown(b)} in {second}")

    def only(self, what: str, mine: bool) -> None:
        raise Difference(f"{what} is only in {self.sides[0 if mine else 1]}")

    def fields(self, what: str, a: object, b: object, names: Iterable[str]) -> None:
        for name in names:
            self.equal(f"{what}: {name.replace('_', ' ')}", getattr(a, name), getattr(b, name))

    def tile(self, what: str, a: LogicalTile | None, b: LogicalTile | None) -> None:
        """The two tiles must be of one kind and place, and always the same pair."""
        if a is None or b is None:
            self.equal(what, a and str(a), b and str(b))
            return
        self.equal(what, str(a), str(b))
        paired = self.tiles.get(a)
        if paired is None and b not in self.tiles.values():
            self.tiles[a] = b
        elif paired is not b:
            shared, other = self.sides if paired is not None else self.sides[::-1]
            raise Difference(f"{what}: {a} is a tile that other things stand on in {shared}, another tile in {other}")

    # -- how things pair

    def named(
        self, what: str, a: list[T], b: list[T], key: Callable[[T], str], each: Callable[[str, T, T], None]
    ) -> None:
        pair = {key(x): x for x in b}
        own = {key(x) for x in a}
        for x in b:
            if key(x) not in own:
                self.only(f"{what} {key(x)!r}", False)
        for x in a:
            if key(x) not in pair:
                self.only(f"{what} {key(x)!r}", True)
            each(f"{what} {key(x)!r}", x, pair[key(x)])

    def in_order(self, what: str, a: list[T], b: list[T], each: Callable[[str, T, T], None]) -> None:
        self.equal(f"number of {what}s", len(a), len(b))
        for i, (x, y) in enumerate(zip(a, b)):
            each(f"{what} {i}", x, y)

    def on_tiles(self, what: str, a: list[P], b: list[P], each: Callable[[str, P, P], None]) -> None:
        """Things of which a tile has one: by their tiles if these are paired already, else in order."""
        free = [y for y in b if y.tile not in self.tiles.values()]
        at = {y.tile: y for y in b}
        for x in a:
            tile = x.tile
            if tile in self.tiles:
                y = at.get(self.tiles[tile])
            else:
                y = next((f for f in free if str(f.tile) == str(tile)), None)
            if y is None:
                self.only(f"the {what} of {tile}", True)
                return
            if y in free:
                free.remove(y)
            self.tile(f"{what} of {tile}", tile, y.tile)
            each(f"{what} of {tile}", x, y)
        for y in b:
            if y.tile not in {self.tiles[x.tile] for x in a}:
                self.only(f"the {what} of {y.tile}", False)

    def all_locks(self) -> None:
        named = [[lock for lock in d.locks if lock.name is not None] for d in (self.a, self.b)]
        unnamed = [[lock for lock in d.locks if lock.name is None] for d in (self.a, self.b)]
        self.named("lock", named[0], named[1], lambda lock: str(lock.name), self.lock)
        self.in_order("unnamed lock", unnamed[0], unnamed[1], self.lock)

    def remaining_tiles(self) -> None:
        rest = Counter(str(t) for t in self.a.tiles if t not in self.tiles)
        other = Counter(str(t) for t in self.b.tiles if t not in self.tiles.values())
        for name in (rest - other) + (other - rest):
            self.equal(f"number of tiles {name} on which nothing stands", rest[name], other[name])

    # -- what things consist of

    def scratchpads(self, what: str, a: Any, b: Any) -> None:
        self.fields(what, a, b, ["element"])

    def fifos(self, what: str, a: Fifo, b: Fifo) -> None:
        self.fields(what, a, b, ["type", "depth"])
        self.tile(f"{what}: producer", a.producer, b.producer)
        self.equal(f"{what}: number of consumers", len(a.consumers), len(b.consumers))
        for i, (x, y) in enumerate(zip(a.consumers, b.consumers)):
            self.tile(f"{what}: consumer {i}", x, y)
        self.equal(f"{what}: layout transform to the stream", _pairs(a.to_stream), _pairs(b.to_stream))
        for i, (p, q) in enumerate(zip(_per_consumer(a, a.from_stream, ()), _per_consumer(b, b.from_stream, ()))):
            self.equal(f"{what}: layout transform from the stream of consumer {i}", _pairs(p), _pairs(q))
        self.fields(what, a, b, ["via_dma", "repeat_count", "iter_count", "consumer_type"])
        self.equal(f"{what}: padding", _pairs(a.pad), _pairs(b.pad))
        self.equal(f"{what}: pad value", _word(a.pad_value, a.type), _word(b.pad_value, b.type))
        self.equal(f"{what}: initial values", a.init_values is not None, b.init_values is not None)
        self.in_order(f"{what}: initial value", a.init_values or [], b.init_values or [], self.array)
        self.fields(what, a, b, ["disable_synchronization", "producer_channel"])
        self.tile(f"{what}: delegate tile", a.delegate_tile, b.delegate_tile)
        channels = [tuple(_per_consumer(f, f.consumer_channels, None)) for f in (a, b)]
        self.equal(f"{what}: consumers' channels", *channels)

    def link_pairs(self, what: str, a: Link, b: Link) -> None:
        for name in ("src_offsets", "dst_offsets"):
            self.equal(f"{what}: {name.replace('_', ' ')}", _offsets(a, name), _offsets(b, name))

    def buffers(self, what: str, a: Any, b: Any) -> None:
        self.fields(what, a, b, ["type", "address"])
        self.tile(f"{what}: tile", a.tile, b.tile)
        self.equal(f"{what}: has an initial value", a.initial is not None, b.initial is not None)
        if a.initial is not None:
            self.array(f"{what}: initial value", np.asarray(a.initial).reshape(a.type.shape), b.initial)

    def array(self, what: str, a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> None:
        x, y = np.asarray(a), np.asarray(b)
        self.equal(f"{what}: size", x.size, y.size)
        x, y = x.reshape(-1), y.reshape(-1).astype(x.dtype)
        bits = f"u{x.dtype.itemsize}"  # so that a NaN equals itself, and 0 not -0
        for i in np.flatnonzero(x.view(bits) != y.view(bits)):
            self.differ(f"{what}: element {i}", x[i].item(), y[i].item())

    def lock(self, what: str, a: Lock, b: Lock) -> None:
        self.tile(f"{what}: tile", a.tile, b.tile)
        self.equal(f"{what}: initial value", a.init or 0, b.init or 0)
        self.fields(what, a, b, ["lock_id"])
        self.locks[a] = b

    def ends(self, what: str, a: Any, b: Any) -> None:
        self.tile(f"{what}: source", a.source, b.source)
        self.tile(f"{what}: destination", a.dest, b.dest)

    def flow_pairs(self, what: str, a: Flow, b: Flow) -> None:
        self.ends(what, a, b)
        ports = ["source_port", "source_channel", "dest_port", "dest_channel", "packet_id", "shim_symbol"]
        self.fields(what, a, b, ports)

    def kernels(self, what: str, a: Any, b: Any) -> None:
        arguments = [f"({', '.join(map(str, k.arg_types))})" for k in (a, b)]
        self.equal(f"{what}: arguments", *arguments)
        self.fields(what, a, b, ["object_file"])

    def cores(self, what: str, a: Core, b: Core) -> None:
        self.fields(what, a, b, ["stack_size", "dynamic_objfifo_lowering"])
        Bodies(what, self.sides, self.locks).regions(a.body, b.body)

    def dmas(self, what: str, a: TileDma, b: TileDma) -> None:
        def each(name: str, x: ChannelProgram, y: ChannelProgram) -> None:
            self.fields(name, x, y, ["repeat"])
            self.in_order(f"{name}: descriptor", x.descriptors, y.descriptors, self.descriptor)

        self.named(f"{what}: channel", a.channels, b.channels, lambda c: f"{c.direction} {c.index}", each)

    def descriptor(self, what: str, a: Descriptor, b: Descriptor) -> None:
        self.equal(f"{what}: buffer", a.buffer.name, b.buffer.name)
        length = [d.buffer.type.size if d.length is None else d.length for d in (a, b)]
        self.equal(f"{what}: length", *length)
        self.equal(f"{what}: dimensions", _pairs(a.dims), _pairs(b.dims))
        self.equal(f"{what}: padding", _pairs(a.pad), _pairs(b.pad))
        self.fields(what, a, b, ["offset", "pad_value", "next", "packet_id", "bd_id"])
        self.in_order(f"{what}: acquire", a.acquires, b.acquires, self.action)
        self.in_order(f"{what}: release", a.releases, b.releases, self.action)

    def action(self, what: str, a: LockAction, b: LockAction) -> None:
        if self.locks.get(a.lock) is not b.lock:
            self.equal(f"{what}: lock", _lock_name(a.lock), _lock_name(b.lock) + " (another one)")
        self.fields(what, a, b, ["value", "equal"])

    def sequences(self) -> None:
        a, b = self.a.sequence, self.b.sequence
        if a is None or b is None:
            if a is not b:
                self.only("the host sequence", a is not None)
            return
        self.equal("name of the host sequence", a.name, b.name)
        Bodies("host sequence", self.sides, self.locks).regions(a.body, b.body)


def _shown(value: object) -> str:
    if isinstance(value, str) and value.isidentifier():
        return repr(value)
    return "none" if value is None else str(value)


def _link_name(link: Link) -> str:
    ends = (", ".join(sorted(f.name for f in side)) for side in (link.inputs, link.outputs))
    return " -> ".join(ends)


def _offsets(link: Link, name: str) -> dict[str, int] | None:
    """Offsets by fifo; a link of one fifo to one may leave out the offset 0 that the real tools write."""
    offsets: tuple[int, ...] = getattr(link, name)
    fifos = link.inputs if name == "src_offsets" else link.outputs
    if len(link.inputs) == len(link.outputs) == 1 and set(offsets) <= {0}:
        return None
    return {fifo.name: int(offset) for fifo, offset in zip(fifos, offsets)}


def _pairs(dims: Iterable[Iterable[int]]) -> list[tuple[int, ...]]:
    return [tuple(int(n) for n in pair) for pair in dims]


def _per_consumer(fifo: Fifo, values: Iterable[T], default: T) -> list[T]:
    given = list(values)
    return given + [default] * (len(fifo.consumers) - len(given))


def _word(value: int, type: MemRefType) -> int:
    return pad_word(value, type) if value else 0


def _lock_name(lock: Lock) -> str:
    return lock.name or f"the unnamed lock of {lock.tile}"
