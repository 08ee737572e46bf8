"""The recorded lowered modules as plain facts: tiles, buffers, locks, descriptor chains, streams. Read by the tests."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from npusim.ir import Value
from npusim.machine import Coord
from npusim.mlir import parse
from npusim.mlir.generic import RawOp, ops_of

MLIR = Path(__file__).parents[2] / "data" / "reference" / "mlir"
DIRECTIONS = ("S2MM", "MM2S")
BUNDLES = {1: "DMA", 3: "South", 4: "West", 5: "North", 6: "East"}
STEPS = {"North": (0, 1, "South"), "South": (0, -1, "North"), "East": (1, 0, "West"), "West": (-1, 0, "East")}

Channel = tuple[Coord, str, int]


@dataclass
class Lowered:
    """What one recorded module says. Addresses in bytes, lengths and dims in elements."""

    tiles: set[Coord] = field(default_factory=set)
    buffers: dict[str, tuple[Any, ...]] = field(default_factory=dict)  # name -> tile, address, bank, type
    locks: dict[tuple[Coord, int], tuple[str | None, int]] = field(default_factory=dict)  # -> name, initial value
    chains: dict[Channel, tuple[int, list[tuple[Any, ...]]]] = field(default_factory=dict)  # -> repeat, descriptors
    host: dict[str, Channel] = field(default_factory=dict)  # fifo -> shim channel
    streams: dict[Channel, set[Channel]] = field(default_factory=dict)
    crossings: dict[Channel, int] = field(default_factory=dict)  # boundaries between tiles that a stream crosses
    cascades: dict[Coord, tuple[str, str]] = field(default_factory=dict)  # tile -> input and output direction
    cores: set[Coord] = field(default_factory=set)


def load(name: str) -> Lowered:
    """The facts of ``mlir/NAME.low.mlir``."""
    return _Reader((MLIR / f"{name}.low.mlir").read_text()).lowered


class _Reader:
    def __init__(self, text: str) -> None:
        self.lowered = Lowered()
        self.tile_of: dict[Value, Coord] = {}
        self.named: dict[Value, Any] = {}
        self.connects: dict[tuple[Coord, str, int], list[tuple[str, int]]] = {}
        self.mux: dict[tuple[Coord, str, int], tuple[str, int]] = {}
        device = next(op for op in ops_of(parse(text).op) if op.name == "aie.device")
        for op in ops_of(device):
            handler = getattr(self, op.name.removeprefix("aie."), None)
            if op.name.startswith("aie.") and handler is not None:
                handler(op)
        self.trace()

    def at(self, op: RawOp) -> Coord:
        return self.tile_of[op.operands[0]]

    def tile(self, op: RawOp) -> None:
        self.tile_of[op.result] = Coord(op.need("col"), op.need("row"))
        if "controller_id" in op.attrs:  # the router's own pass-through tiles have none
            self.lowered.tiles.add(self.tile_of[op.result])

    def buffer(self, op: RawOp) -> None:
        name = op.need("sym_name")
        self.named[op.result] = name
        where = self.at(op), op.need("address"), op.prop("mem_bank")
        self.lowered.buffers[name] = (*where, str(op.result.type))

    def lock(self, op: RawOp) -> None:
        key = (self.at(op), op.need("lockID"))
        self.named[op.result] = key
        self.lowered.locks[key] = (op.prop("sym_name"), op.prop("init", 0))

    def core(self, op: RawOp) -> None:
        self.lowered.cores.add(self.at(op))

    def configure_cascade(self, op: RawOp) -> None:
        self.lowered.cascades[self.at(op)] = (BUNDLES[op.need("inputDir")], BUNDLES[op.need("outputDir")])

    def shim_dma_allocation(self, op: RawOp) -> None:
        channel = (self.at(op), DIRECTIONS[op.need("channel_dir")], op.need("channel_index"))
        self.lowered.host[op.need("sym_name").removesuffix("_shim_alloc")] = channel

    def mem(self, op: RawOp) -> None:
        constants = {o.result: o.need("value") for o in ops_of(op) if o.name == "arith.constant"}
        for start in (o for o in ops_of(op) if o.name == "aie.dma_start"):
            key = (self.at(op), DIRECTIONS[start.need("channel_dir")], start.need("channel_index"))
            self.lowered.chains[key] = (start.prop("repeat_count", 0), self.chain(start, constants))

    memtile_dma = mem

    def chain(self, start: RawOp, constants: dict[Value, int]) -> list[tuple[Any, ...]]:
        block = start.successors[0][0]
        blocks = []
        while block not in blocks and any(o.name == "aie.dma_bd" for o in block.ops):
            blocks.append(block)
            block = block.ops[-1].successors[0][0]
        follower: dict[Any, int | None] = {b: i + 1 for i, b in enumerate(blocks[:-1])}
        follower[blocks[-1]] = blocks.index(block) if block in blocks else None
        return [(*self.descriptor(list(b.ops), constants), follower[b]) for b in blocks]

    def descriptor(self, ops: list[Any], constants: dict[Value, int]) -> tuple[Any, ...]:
        uses: dict[str, list[tuple[Any, int]]] = {"acquire": [], "release": []}
        for op in (o for o in ops if o.name == "aie.use_lock"):
            kind = "release" if op.need("action") == 1 else "acquire"
            uses[kind].append((self.named[op.operands[0]], constants[op.operands[1]]))
        bd = next(o for o in ops if o.name == "aie.dma_bd")
        sizes, strides = bd.prop("static_sizes", ()), bd.prop("static_strides", ())
        length = bd.prop("static_len", bd.operands[0].type.size)
        return (
            self.named[bd.operands[0]],
            bd.prop("static_offset", 0),
            length,
            tuple(zip(sizes, strides, strict=True)),
            str(bd.props.get("pad_dimensions", "")),
            tuple(uses["acquire"]),
            tuple(uses["release"]),
            bd.need("bd_id"),
        )

    def switchbox(self, op: RawOp) -> None:
        for connect in (o for o in ops_of(op) if o.name == "aie.connect"):
            source = (self.at(op), BUNDLES[connect.need("source_bundle")], connect.need("source_channel"))
            dest = (BUNDLES[connect.need("dest_bundle")], connect.need("dest_channel"))
            self.connects.setdefault(source, []).append(dest)

    def shim_mux(self, op: RawOp) -> None:
        for connect in (o for o in ops_of(op) if o.name == "aie.connect"):
            source = (self.at(op), BUNDLES[connect.need("source_bundle")], connect.need("source_channel"))
            dest = (BUNDLES[connect.need("dest_bundle")], connect.need("dest_channel"))
            if source[1] == "DMA":  # into the switch at its south side
                self.mux[source] = ("South", dest[1])
            else:  # out of the switch's south side
                self.mux[self.at(op), "South", source[2]] = dest

    def trace(self) -> None:
        """Follow every stream from its DMA channel through the switches."""
        sources = [k for k in self.connects if k[1] == "DMA"]
        sources += [k for k in self.mux if k[1] == "DMA"]
        for tile, _, index in sources:
            port = self.mux.get((tile, "DMA", index), ("DMA", index))
            found: set[Channel] = set()
            crossings, waiting = 0, [(tile, *port)]
            while waiting:
                here, bundle, number = waiting.pop()
                for out, channel in self.connects.get((here, bundle, number), []):
                    if out == "South" and here.row == 0:
                        out, channel = self.mux[here, out, channel]
                    if out == "DMA":
                        found.add((here, "S2MM", channel))
                        continue
                    dc, dr, side = STEPS[out]
                    crossings += 1
                    waiting.append((Coord(here.col + dc, here.row + dr), side, channel))
            self.lowered.streams[tile, "MM2S", index] = found
            self.lowered.crossings[tile, "MM2S", index] = crossings
