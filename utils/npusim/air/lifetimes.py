"""How long a core needs each L1 buffer: where it lets go of what a get brought, and where a put must have left before.

A get may begin as soon as its buffer is free, long before the core asks for it, as the DMA of the compiled form does. So in
each core's program, after the last use of what a get brought, ``air.release`` is put; it does nothing if the buffer is let go
of already. Before an operation that may write a buffer which is also put from, ``air.drain`` waits until those puts are out.

A buffer allocated in a loop of the herd gets a second copy (the compiler's ping-pong), under the conditions of mlir-air's
LabelScfForLoopForPingPongPattern (AIRDependencyScheduleOpt.cpp, August 2026): what the loop allocates is written before
it is read, filled by at most one get a turn, and no kernel in the loop touches memory from outside of the herd.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from npusim.air.graph import Options
from npusim.air.moves import Moved
from npusim.air.prune import VIEWS
from npusim.ir import Block, Op, Region, Value, base_of, walk
from npusim.types import MemRefType

_WRITES = {"memref.store": 1, "vector.transfer_write": 1}
"""Operations that write a memref and nothing else, with the place of the memref among the operands."""
_SILENT = frozenset({"memref.alloc", "scf.yield", "air.release", "air.drain"})


def touched(op: Op) -> list[Value]:
    """The buffers that an operation itself touches (not what is inside of it)."""
    if op.name in _SILENT or op.name in VIEWS:
        return []
    return [base_of(v) for v in op.operands if isinstance(v.type, MemRefType)]


def _deep(op: Op) -> Iterator[Op]:
    yield op
    for region in op.regions:
        yield from walk(region)


def _touches(op: Op, buffer: Value) -> bool:
    return any(buffer in touched(inner) for inner in _deep(op))


def _gets(op: Op, buffer: Value) -> bool:
    return op.name == "air.get" and op.operands[0] is buffer


def _has_get(op: Op, buffer: Value) -> bool:
    return any(_gets(inner, buffer) for inner in _deep(op))


def whole(move: Moved) -> bool:
    """Whether a transfer covers its buffer: only then is what was there before gone."""
    if any(not isinstance(n, int) for n in move.sizes):
        return False
    n = 1
    for size in move.sizes:
        n *= int(size)  # type: ignore[arg-type]
    return n >= move.type.size


# -- double buffering


def doubled(region: Region, options: Options, space: int, depth: int) -> set[Value]:
    """The buffers of a projection that get a second copy; ``depth`` says to whom a loop must belong (1 segment, 2 herd)."""
    if not options.double(space):
        return set()
    found: set[Value] = set()
    inner = {op.result for op in walk(region) if op.name == "memref.alloc"}
    for loop in _loops(region):
        if loop.attrs.get("depth") == depth and _candidate(loop, inner) and not _candidate_inside(loop, inner):
            found.update(_allocated(loop))
    return found


def _loops(region: Region) -> Iterator[Op]:
    return (op for op in walk(region) if op.name == "scf.for")


def _allocated(loop: Op) -> list[Value]:
    return [op.result for op in loop.regions[0].entry.ops if op.name == "memref.alloc"]


def _candidate_inside(loop: Op, inner: set[Value]) -> bool:
    return any(_candidate(op, inner) for op in _loops(loop.regions[0]))


def _candidate(loop: Op, inner: set[Value]) -> bool:
    buffers = _allocated(loop)
    if not buffers or _unsafe(loop, inner) or any(_unsafe(op, inner) for op in _loops(loop.regions[0])):
        return False
    return all(_fills(loop.regions[0].entry, buffer) <= 1 for buffer in buffers)


def _unsafe(loop: Op, inner: set[Value]) -> bool:
    """Whether doubling could change what the loop computes: see the module's docstring."""
    mine, seen = set(_allocated(loop)), set[Value]()
    for op in walk(loop.regions[0]):
        for buffer in touched(op):
            if buffer in mine and buffer not in seen:
                seen.add(buffer)
                if not _gets(op, buffer) and not _only_writes(op, buffer):
                    return True
            if op.name == "func.call" and buffer not in inner:
                return True
    return False


def _only_writes(op: Op, buffer: Value) -> bool:
    place = _WRITES.get(op.name)
    return place is not None and base_of(op.operands[place]) is buffer


def _fills(block: Block, buffer: Value) -> int:
    """How many gets fill a buffer in one turn; two if it cannot be told to be one."""
    n = 0
    for op in block.ops:
        if _gets(op, buffer):
            n += 1
        elif op.name == "scf.for" and _has_get(op, buffer):
            n += 2
        elif op.name == "scf.if":
            n += max((_fills(r.entry, buffer) for r in op.regions if r.blocks), default=0)
    return n


# -- letting go


def release_and_drain(region: Region) -> None:
    """Put ``air.release`` and ``air.drain`` where they belong in a core's projection."""
    moves = [op for op in walk(region) if op.name in ("air.get", "air.put")]
    filled = dict.fromkeys(op.operands[0] for op in moves if op.name == "air.get")
    sent = dict.fromkeys(op.operands[0] for op in moves if op.name == "air.put")
    for buffer in filled:
        partial = any(_gets(op, buffer) and not whole(op.attrs["move"]) for op in moves)
        if partial:
            _release_before_gets(region.entry, buffer)
        else:
            _Lives(buffer).block(region.entry, _first(region.entry, buffer) == "use")
    for buffer in sent:
        _drains(region.entry, buffer)


def _release(buffer: Value) -> Op:
    return Op("air.release", (buffer,))


def _release_before_gets(block: Block, buffer: Value) -> None:
    """For a buffer that gets fill in parts: it is free only when the core comes to the next get."""
    for i in range(len(block.ops) - 1, -1, -1):
        op = block.ops[i]
        for region in op.regions:
            for inner in region.blocks:
                _release_before_gets(inner, buffer)
        if _gets(op, buffer):
            block.ops.insert(i, _release(buffer))


First = Literal["use", "kill"] | None


def _first(block: Block, buffer: Value) -> First:
    """What happens to a buffer's contents first in a block: they are used, or a get replaces them."""
    for op in block.ops:
        found = _first_of(op, buffer)
        if found is not None:
            return found
    return None


def _first_of(op: Op, buffer: Value) -> First:
    if _gets(op, buffer) or (op.name == "memref.alloc" and op.result is buffer):
        return "kill"
    if op.regions and _has_get(op, buffer):
        found = [_first(r.entry, buffer) for r in op.regions if r.blocks]
        if "use" in found:
            return "use"
        return "kill" if op.name == "scf.for" or (len(found) == 2 and found == ["kill", "kill"]) else None
    return "use" if _touches(op, buffer) else None


class _Lives:
    """Walks a program backwards with the knowledge whether a buffer's contents are needed further on."""

    def __init__(self, buffer: Value) -> None:
        self.buffer = buffer

    def block(self, block: Block, live: bool) -> bool:
        """Insert the releases of a block, behind which the contents are needed (``live``) or not; gives the same for its
        begin."""
        for i in range(len(block.ops) - 1, -1, -1):
            op = block.ops[i]
            if _gets(op, self.buffer):
                if not live:
                    block.ops.insert(i + 1, _release(self.buffer))
                block.ops.insert(i, _release(self.buffer))
                live = False
            elif op.name == "memref.alloc" and op.result is self.buffer:
                live = False
            elif op.regions and _has_get(op, self.buffer):
                live = self._around(op, live)
            elif _touches(op, self.buffer):
                if not live:
                    block.ops.insert(i + 1, _release(self.buffer))
                live = True
        return live

    def _around(self, op: Op, live: bool) -> bool:
        """A loop or branch with a get in it."""
        if op.name == "scf.for":
            body = op.regions[0].entry
            first = _first(body, self.buffer)
            self.block(body, live or first == "use")
            return first == "use" or (live and first is None)
        before = [self.block(r.entry, live) if r.blocks else live for r in op.regions]
        return any(before) or len(before) < 2


def _drains(block: Block, buffer: Value) -> None:
    """``air.drain`` before what may write a buffer, outside of loops that move nothing."""
    for i in range(len(block.ops) - 1, -1, -1):
        op = block.ops[i]
        if op.regions and any(o.name.startswith("air.") for o in _deep(op)):
            for region in op.regions:
                for inner in region.blocks:
                    _drains(inner, buffer)
        elif any(_may_write(o, buffer) for o in _deep(op)):
            block.ops.insert(i, Op("air.drain", (buffer,)))


def _may_write(op: Op, buffer: Value) -> bool:
    return (op.name in ("func.call", "air.receive") and buffer in touched(op)) or _only_writes(op, buffer)
