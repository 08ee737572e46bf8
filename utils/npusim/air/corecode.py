"""What a core does at channels: waits for the end of a get, hands a put over, lets go of buffers, sends along the cascade.

These are the operations that the projections of AIR designs add to those of any core (see npusim.engine.core). A get's data
are usually there when the core comes to it, since its DMA may begin as soon as the buffer is free; a put goes on while the
core works, until the core wants to write to the buffer again. Each costs the core what acquiring and releasing a lock does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from npusim.air.machine import AirCore
from npusim.air.moves import Moved
from npusim.air.transfers import BufferState, FedEnd
from npusim.engine.cascade import CorePorts
from npusim.engine.core.writer import Writer, serves
from npusim.ir import Loc, Op, Value

NEXT_LAUNCH = "the next launch"


@dataclass(eq=False)
class AirSite:
    """A place where a core may wait for its DMA. ``name`` is the channel."""

    loc: Loc
    name: str
    what: str  # "get" or "put"
    end: FedEnd | None
    port: None = None
    count: None = None

    @property
    def lock(self) -> AirSite:
        """In place of a lock: something with a name."""
        return self


@dataclass(eq=False)
class CoreLinks:
    """What a core's generated code needs of the simulator."""

    feed: Any  # CoreFeed
    launches: Any  # deque of (tick, ids)
    arrived: Any  # Waitable
    states: dict[Value, list[BufferState]]
    end_of: dict[int, FedEnd]  # number of a get or put -> its DMA channel, where that is the same each time
    bytes_of: dict[Op, int]  # of a cascade transfer
    rings: dict[Value, int] = field(default_factory=dict)  # numbers of the doubled buffers


def _links(w: Writer) -> CoreLinks:
    links: CoreLinks = w.around.air[w.core]
    return links


def _ring(w: Writer, buffer: Value) -> int:
    """The number of a doubled buffer: ``c{i}`` is the number of its present copy, ``s{i}`` that copy's state."""
    rings = _links(w).rings
    return rings.setdefault(buffer, len(rings))


def _party(w: Writer) -> Any:
    assert isinstance(w.core, AirCore) and w.core.party is not None
    return w.core.party


@serves("air.launches")
def launches(w: Writer, op: Op, depth: int) -> None:
    """One turn of the body for each launch, in order; between runs the core waits."""
    links, body = _links(w), op.regions[0].entry
    queue, arrived = w.bind("L", links.launches), w.bind("A", links.arrived)
    for value, copies in links.states.items():
        if len(copies) > 1:
            i = _ring(w, value)
            w.line(depth, f"c{i} = 0; s{i} = {w.bind('S', tuple(copies))}[0]")
    w.run.uncounted |= {"e", "x"}
    w.line(depth, "while True:")
    w.line(depth + 1, f"if not {queue}:")
    w.line(depth + 2, f"ME.waits_for, ME.clock = {NEXT_LAUNCH!r}, t")
    w.line(depth + 2, f"while not {queue}: yield {arrived}")
    w.line(depth + 2, "ME.waits_for = ''")
    used = {v for inner in _deep(body.ops) for v in inner.operands}
    ids = [w.new(v) if v in used else "_" for v in body.args]
    w.line(depth + 1, f"a, {', '.join([*ids, '*_'])} = {queue}.popleft()")
    w.line(depth + 1, f"if a > t: ME.stall({NEXT_LAUNCH!r}, t, a, S.now); t = a")
    w.block(body, depth + 1)


def _deep(ops: list[Op]) -> list[Op]:
    found = list(ops)
    for op in ops:
        for region in op.regions:
            for block in region.blocks:
                found += _deep(block.ops)
    return found


@serves("memref.alloc")
def allocate(w: Writer, op: Op, depth: int) -> None:
    """The next copy of a doubled buffer; any other buffer is where it is."""
    copies = _links(w).states.get(op.result, [])
    if len(copies) < 2:
        return
    i, states = _ring(w, op.result), w.bind("S", tuple(copies))
    w.line(depth, f"c{i} = (c{i} + 1) % {len(copies)}; s{i} = {states}[c{i}]")
    if w.around.data:
        arrays = w.bind("R", tuple(w.around.memory[copy.buffer] for copy in copies))
        w.line(depth, f"{w.new(op.result)} = {arrays}[c{i}]")


def _state(w: Writer, buffer: Value) -> tuple[str, str]:
    """The name of a buffer's present copy, and the number of the copy."""
    copies = _links(w).states[buffer]
    if len(copies) > 1:
        i = _ring(w, buffer)
        return f"s{i}", f"c{i}"
    return w.bind("U", copies[0]), "0"


def _number(w: Writer, op: Op) -> int:
    number: int = _party(w).projection.moves.index(op)
    return number


def _transfer(w: Writer, op: Op, copy: str, kind: str) -> str:
    """An expression for the transfer of a get or put: one object if nothing is known only at run time."""
    move: Moved = op.attrs["move"]
    number, make = _number(w, op), getattr(_links(w).feed, kind)
    if not move.dynamic and copy == "0":
        return w.bind("X", make(number, 0, ()))
    known: dict[Any, Any] = {}

    def find(*key: int) -> Any:
        if key not in known:
            known[key] = make(number, key[0], tuple(int(k) for k in key[1:]))
        return known[key]

    rest = ", ".join([copy, *(w.name(v) for v in move.dynamic)])
    return f"{w.bind('M', find)}({rest})"


@serves("air.get")
def get(w: Writer, op: Op, depth: int) -> None:
    """Wait until the data of a get are in the buffer."""
    party, costs = _party(w), w.around.clock.costs
    move: Moved = op.attrs["move"]
    state, copy = _state(w, op.operands[0])
    w.settle(depth)
    if party.foreseen:
        end = _links(w).end_of.get(_number(w, op))
        where = w.bind("E", end) if end is not None else f"{_transfer(w, op, copy, 'get')}.end"
        w.line(depth, f"e = {where}")
    else:
        w.line(depth, f"x = {_transfer(w, op, copy, 'get')}; e = x.end")
        w.line(depth, f"e.pending.append((x, (t, {state}.issued)))")
        w.line(depth, "if e.arrived.waiters: wake(e.arrived)")
    site = _site(w, op, "get", move)
    w.line(depth, "if not e.full:")
    w.line(depth + 1, f"ME.at = {site}; ME.clock = t")
    w.line(depth + 1, "while not e.full: yield e.got")
    w.line(depth + 1, "ME.at = None")
    w.line(depth, "a = e.full.popleft()")
    w.line(depth, f"if a > t: t = stalled(ME, {site}, t, a)")
    w.line(depth, f"{state}.held = True")
    w.spend(costs.lock_acquire.value)
    w.done(depth, "got", None, f"channel {move.channel!r}" if move.channel else "its dma_memcpy_nd")


@serves("air.put")
def put(w: Writer, op: Op, depth: int) -> None:
    """Hand a buffer over to the DMA."""
    move: Moved = op.attrs["move"]
    state, copy = _state(w, op.operands[0])
    w.settle(depth)
    w.line(depth, f"x = {_transfer(w, op, copy, 'put')}; e = x.end")
    w.line(depth, f"e.pending.append((x, t)); {state}.issued += 1")
    w.line(depth, "if e.arrived.waiters: wake(e.arrived)")
    w.spend(w.around.clock.costs.lock_release.value)
    w.done(depth, "put", None, f"channel {move.channel!r}" if move.channel else "its dma_memcpy_nd")


def _site(w: Writer, op: Op, what: str, move: Moved | None) -> int:
    name = "" if move is None else move.channel or f"dma_memcpy_nd at {move.loc}"
    end = _links(w).end_of.get(_number(w, op)) if move is not None else None
    site: Any = AirSite(op.loc if move is None else move.loc, name, what, end)
    w.run.sites.append(site)
    return len(w.run.sites) - 1


@serves("air.release")
def release(w: Writer, op: Op, depth: int) -> None:
    """Let go of what a get brought, if that has not been done."""
    state, _ = _state(w, op.operands[0])
    w.settle(depth)
    w.line(depth, f"if {state}.held:")
    w.line(depth + 1, f"{state}.held = False; {state}.marks.append({state}.issued); {state}.released.times.append(t)")
    w.line(depth + 1, f"if {state}.released.waiters: wake({state}.released)")
    w.line(depth + 1, f"t += {w.ticks(w.around.clock.costs.lock_release.value)}")


@serves("air.drain")
def drain(w: Writer, op: Op, depth: int) -> None:
    """Before a buffer is written: wait until every put from it is out."""
    state, _ = _state(w, op.operands[0])
    w.settle(depth)
    site = _put_site(w, op.operands[0])
    w.line(depth, f"if {state}.issued:")
    w.line(depth + 1, f"if len({state}.sent.times) < {state}.issued:")
    w.line(depth + 2, f"ME.at = {site}; ME.clock = t")
    w.line(depth + 2, f"while len({state}.sent.times) < {state}.issued: yield {state}.sent")
    w.line(depth + 2, "ME.at = None")
    w.line(depth + 1, f"a = {state}.sent.times[{state}.issued - 1]")
    w.line(depth + 1, f"if a > t: t = stalled(ME, {site}, t, a)")


def _put_site(w: Writer, buffer: Value) -> int:
    """The site for waiting until a buffer is out: named after its first put."""
    op = next(o for o in _party(w).projection.moves if o.name == "air.put" and o.operands[0] is buffer)
    return _site(w, op, "put", op.attrs["move"])


# -- the cascade


def _cascade(w: Writer, op: Op) -> tuple[str, Moved, str]:
    ports: CorePorts = w.around.cascades.ports(w.core.tile)
    move: Moved = op.attrs["move"]
    return w.bind("C", ports), move, str(_links(w).bytes_of[op])


def _walk(w: Writer, move: Moved) -> str:
    """The offset and dims of a cascade transfer as Python text."""
    rest = iter(w.name(v) for v in move.dynamic[len([i for i in move.indices if isinstance(i, Value)]) :])
    entries = [next(rest) if isinstance(e, Value) else str(e) for e in (move.offset, *move.sizes, *move.strides)]
    n = len(move.sizes)
    dims = ", ".join(f"({size}, {stride})" for size, stride in zip(entries[1 : n + 1], entries[n + 1 :]))
    return f"{entries[0]}, ({dims},)"


@serves("air.send")
def send(w: Writer, op: Op, depth: int) -> None:
    """Put a buffer onto the cascade; blocks while the cascade is full."""
    ports, move, nbytes = _cascade(w, op)
    w.settle(depth)
    what = nbytes
    if w.around.data:
        what = f"{w.bind('G', gathered)}({w.name(op.operands[0])}, {_walk(w, move)})"
    w.line(depth, f"t = yield from {ports}.send(ME, t, {what}, {move.channel!r})")
    w.done(depth, "put", None, f"cascade {move.channel!r}")


@serves("air.receive")
def receive(w: Writer, op: Op, depth: int) -> None:
    """Take a buffer's worth off the cascade; blocks until it has come."""
    ports, move, nbytes = _cascade(w, op)
    w.settle(depth)
    w.line(depth, f"t, x = yield from {ports}.receive(ME, t, {nbytes}, {move.channel!r})")
    if w.around.data:
        w.line(depth, f"{w.bind('W', scattered)}({w.name(op.operands[0])}, {_walk(w, move)}, x)")
    w.done(depth, "got", None, f"cascade {move.channel!r}")


def gathered(buffer: Any, offset: int, dims: Any) -> Any:
    """The bytes of a walk through a buffer."""
    from npusim import walk

    length = 1
    for size, _ in dims:
        length *= size
    return walk.gather(buffer.reshape(-1), offset, length, dims, dimensions=8).view("u1")


def scattered(buffer: Any, offset: int, dims: Any, data: Any) -> None:
    """Write bytes to a walk through a buffer."""
    from npusim import walk

    flat = buffer.reshape(-1)
    elements = data.view(flat.dtype)
    walk.scatter(flat, offset, elements.size, dims, elements, dimensions=8)
