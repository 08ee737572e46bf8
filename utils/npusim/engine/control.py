"""Which operations of a core must really be evaluated when only time is asked for.

Without data a run still needs every value that control depends on: loop bounds, branch conditions, lock counts, scalar
arguments of kernels. The analysis walks back from those. Values that come from the contents of fifos, or from buffers
that kernels or DMAs write, are not there without data, so such a design is refused in timing-only mode.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from npusim.errors import UnsupportedError
from npusim.ir import Block, Op, Region, Value, base_of, walk
from npusim.machine import CoreProgram, Machine, MemBuffer
from npusim.types import MemRefType


@dataclass
class Touched:
    """Buffers whose contents are data: written by kernels, DMAs or several cores."""

    buffers: set[MemBuffer]

    @classmethod
    def of(cls, machine: Machine) -> Touched:
        data = {d.buffer for ch in machine.channels for d in ch.descriptors if isinstance(d.buffer, MemBuffer)}
        writers: dict[MemBuffer, set[CoreProgram]] = {}
        for core in machine.cores:
            for op in walk(core.body):
                if op.name == "func.call":
                    data |= _bound(core, op.operands)
                elif op.name == "vector.transfer_write":
                    data |= _bound(core, op.operands[1:2])
                elif op.name == "memref.store":
                    for buffer in _bound(core, op.operands[1:2]):
                        writers.setdefault(buffer, set()).add(core)
        data |= {buffer for buffer, cores in writers.items() if len(cores) > 1}
        return cls(data)


def _bound(core: CoreProgram, values: tuple[Value, ...]) -> set[MemBuffer]:
    roots = (base_of(v) for v in values if isinstance(v.type, MemRefType))
    return {core.buffers[root] for root in roots if root in core.buffers}


class Needed:
    """The operations of one core that timing-only mode evaluates (``op in needed``)."""

    def __init__(self, core: CoreProgram, touched: Touched) -> None:
        self._core, self._touched = core, touched
        self._ops: set[Op] = set()
        self._values: set[Value] = set()
        self._work: list[Value] = []
        self._parents: dict[Block, tuple[Region, Op | None]] = {}
        self._stores: dict[MemBuffer, list[Op]] = {}
        self._index(core.body, None)
        for op in walk(core.body):
            self._roots(op)
        while self._work:
            self._visit(self._work.pop())

    def __contains__(self, op: Op) -> bool:
        return op in self._ops

    def needs(self, value: Value) -> bool:
        """Whether the value is evaluated."""
        return value in self._values

    def _index(self, region: Region, parent: Op | None) -> None:
        for block in region.blocks:
            self._parents[block] = (region, parent)
            for op in block.ops:
                if op.name == "memref.store":
                    for buffer in _bound(self._core, op.operands[1:2]):
                        self._stores.setdefault(buffer, []).append(op)
                for inner in op.regions:
                    self._index(inner, op)

    def _roots(self, op: Op) -> None:
        if op.name == "scf.for":
            self._want(*op.operands[:3])
        elif op.name in ("scf.if", "scf.index_switch", "cf.cond_br", "cf.switch") or op.name == "scf.condition":
            self._want(op.operands[0])
        elif op.name == "aie.use_lock":
            self._want(*op.operands[1:])
        elif op.name == "func.call" or op.name.startswith("air."):
            self._want(*(v for v in op.operands if isinstance(v.type, str)))

    def _want(self, *values: Value) -> None:
        for value in values:
            if value not in self._values:
                self._values.add(value)
                self._work.append(value)

    def _visit(self, value: Value) -> None:
        if isinstance(value.owner, Block):
            self._visit_argument(value, value.owner)
        elif isinstance(value.owner, Op):
            op = value.owner
            self._ops.add(op)
            if op.name == "memref.load":
                self._visit_load(op)
            elif op.regions:
                self._visit_structured(op, op.results.index(value))
            elif op.name in ("aie.objectfifo.acquire", "aie.objectfifo.subview.access"):
                self._refuse(op, "the contents of an ObjectFifo")
            else:
                self._want(*op.operands)

    def _visit_load(self, op: Op) -> None:
        root = base_of(op.operands[0])
        buffer = self._core.buffers.get(root)
        if buffer is None:
            self._refuse(op, "the contents of an ObjectFifo")
        if buffer in self._touched.buffers:
            self._refuse(op, f"data in {buffer.name!r}")
        self._want(*op.operands)
        for store in self._stores.get(buffer, ()):
            self._ops.add(store)
            self._want(*store.operands)

    def _visit_structured(self, op: Op, index: int) -> None:
        if op.name == "scf.for":
            self._want(op.operands[3 + index])
        for region in op.regions:
            terminator = region.entry.ops[-1] if region.blocks and region.entry.ops else None
            if terminator is not None and terminator.name == "scf.yield":
                self._want(terminator.operands[index])
            elif terminator is not None and terminator.name == "scf.condition":
                self._want(terminator.operands[1 + index])

    def _visit_argument(self, value: Value, block: Block) -> None:
        region, parent = self._parents[block]
        index = block.args.index(value)
        if parent is not None and parent.name == "scf.for":
            if index:
                self._want(parent.operands[2 + index], block.ops[-1].operands[index - 1])
        elif parent is not None and parent.name == "scf.while":
            self._visit_while(parent, region, index)
        for other in region.blocks:
            for op in other.ops:
                for target, operands in op.successors:
                    if target is block:
                        self._want(operands[index])

    def _visit_while(self, parent: Op, region: Region, index: int) -> None:
        before, after = parent.regions
        if region is before:
            self._want(parent.operands[index], after.entry.ops[-1].operands[index])
        else:
            self._want(before.entry.ops[-1].operands[1 + index])

    def _refuse(self, op: Op, what: str) -> NoReturn:
        raise UnsupportedError(
            f"timing only: control in core {self._core.name!r} of tile {self._core.tile} depends on {what} "
            f"(read at {op.loc}), which is not there without data; run it with data"
        )
