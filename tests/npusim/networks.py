"""Random networks of workers and ObjectFifos, for the fuzz test: what they are, how they are drawn, and the design of one.

All objects that workers see are four i32; the parts of a split or join are such objects, the whole has two of them. The
host moves units of half an object, so that it can also move too little of one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

from npusim.graph import Core, Design, Fifo, KernelDecl, LogicalTile
from npusim.ir import FOREVER, Block, Loc, Op, Region
from npusim.kernels import KernelModel
from npusim.types import MemRefType, SubviewType
from tests.npusim.place.build import Maker

HOST, MEM = -1, -2
"""Where a pipe may end beside a worker (a number from 0)."""
OBJECT, UNIT = 4, 2
"""Elements of an object and of a unit."""
TYPE = MemRefType((OBJECT,), "i32")


@dataclass(frozen=True)
class Pipe:
    """A fifo. ``depths``: of the producer's end and of each consumer's; ``credit``: its buffers are full at the start."""

    name: str
    producer: int
    consumers: tuple[int, ...]
    depths: tuple[int, ...]
    credit: bool = False
    via_dma: bool = False
    parts: int = 1

    @property
    def units(self) -> int:
        """Units of one object."""
        return self.parts * OBJECT // UNIT


@dataclass(frozen=True)
class Junction:
    """A link on a MemTile: forward, split or join. Its buffers are those of the whole object's end."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    depth: int


@dataclass(frozen=True)
class Access:
    """One step of a worker: take or offer ``n`` objects in all (acquire), or give back or send on ``n`` (release)."""

    pipe: str
    produce: bool
    acquire: bool
    n: int


@dataclass(frozen=True)
class Program:
    """What a worker does in a turn, and how many turns it has (None: for ever)."""

    steps: tuple[Access, ...]
    turns: int | None


@dataclass(frozen=True)
class Move:
    """A transfer of the host, in units."""

    pipe: str
    fill: bool
    units: int


@dataclass(frozen=True)
class Network:
    """A whole design. ``order`` names moves by their number: the first mention starts one, the second waits for it."""

    pipes: tuple[Pipe, ...]
    junctions: tuple[Junction, ...]
    programs: dict[int, Program]
    moves: tuple[Move, ...] = ()
    order: tuple[int, ...] = ()

    def pipe(self, name: str) -> Pipe:
        return next(p for p in self.pipes if p.name == name)


# -- drawing


@dataclass
class _Draft:
    """A network half drawn; every worker may have two pipes in each direction that might need a DMA channel."""

    workers: int
    pipes: list[Pipe] = field(default_factory=list)
    junctions: list[Junction] = field(default_factory=list)

    def room(self, worker: int, produce: bool) -> bool:
        used = sum(worker == p.producer if produce else worker in p.consumers for p in self.pipes)
        return used < 2

    def add(self, draw: Any, producer: int, *consumers: int, parts: int = 1, **options: Any) -> Pipe:
        depths = tuple(draw(st.integers(1, 3)) for _ in range(1 + len(consumers)))
        pipe = Pipe(f"p{len(self.pipes)}", producer, consumers, depths, parts=parts, **options)
        self.pipes.append(pipe)
        return pipe

    def join(self, inputs: list[Pipe], outputs: list[Pipe], owner: Pipe) -> None:
        depth = owner.depths[1] if owner in inputs else owner.depths[0]
        self.junctions.append(Junction(tuple(p.name for p in inputs), tuple(p.name for p in outputs), depth))


KINDS = ("in", "out", "between", "between", "between", "relayed", "relayed", "self", "broadcast", "split", "join")


_MORE = st.lists(st.sampled_from(KINDS), max_size=4)
_BEGINNINGS = (
    ("in", "between", "out"),
    ("split", "out"),
    ("broadcast", "relayed", "out"),
    ("broadcast", "between", "out"),
    ("in", "join"),
)


def _element(draw: Any, draft: _Draft, kind: str, first: int, second: int) -> None:
    """Add pipes of one kind, where the workers have room for them."""
    if kind == "in" and draft.room(first, False):
        if draw(st.booleans()):
            draft.add(draw, HOST, first)
        else:
            whole = draft.add(draw, HOST, MEM)
            draft.join([whole], [draft.add(draw, MEM, first)], whole)
    elif kind == "out" and draft.room(first, True):
        if draw(st.booleans()):
            draft.add(draw, first, HOST)
        else:
            part = draft.add(draw, first, MEM)
            draft.join([part], [draft.add(draw, MEM, HOST)], part)
    elif kind == "self" and draft.room(first, True) and draft.room(first, False):
        draft.add(draw, first, first, credit=draw(st.sampled_from([True, True, False])))
    elif first == second:
        return
    elif kind == "between" and draft.room(first, True) and draft.room(second, False):
        credit = draw(st.sampled_from([False, False, True]))
        draft.add(draw, first, second, credit=credit, via_dma=draw(st.booleans()))
    elif kind == "relayed" and draft.room(first, True) and draft.room(second, False):
        part = draft.add(draw, first, MEM)
        draft.join([part], [draft.add(draw, MEM, second)], part)
    elif kind == "broadcast" and draft.room(first, False) and draft.room(second, False):
        draft.add(draw, HOST, first, second)
    elif kind == "split" and draft.room(first, False) and draft.room(second, False):
        whole = draft.add(draw, HOST, MEM, parts=2)
        draft.join([whole], [draft.add(draw, MEM, w) for w in (first, second)], whole)
    elif kind == "join" and draft.room(first, True) and draft.room(second, True):
        parts = [draft.add(draw, w, MEM) for w in (first, second)]
        whole = draft.add(draw, MEM, HOST, parts=2)
        draft.join(parts, [whole], whole)


def _program(draw: Any, pipes: list[Pipe], worker: int) -> Program | None:
    """A worker's turn: each end acquired and (but rarely not) released, the ends mixed in any order."""
    ends = [(p, True) for p in pipes if p.producer == worker] + [(p, False) for p in pipes if worker in p.consumers]
    if not ends:
        return None
    mixed = draw(st.permutations([*range(len(ends))] * draw(st.sampled_from([2, 2, 4]))))
    tidy = draw(st.booleans())  # all acquires before all releases, in which order ever
    if tidy:
        mixed = [*dict.fromkeys(mixed), *dict.fromkeys(reversed(mixed))]
    steps, held = [], dict.fromkeys(range(len(ends)), 0)
    for number in mixed:
        pipe, produce = ends[number]
        if held[number]:
            n = draw(st.integers(1, held[number]))
            if draw(st.integers(0, 40)):  # now and then a release is forgotten
                steps.append(Access(pipe.name, produce, False, n))
            held[number] = 0
        else:
            most = _depth(pipe, worker, produce)
            held[number] = draw(st.integers(1, min(2, most)))
            steps.append(Access(pipe.name, produce, True, held[number]))
    alone = all(p.producer == worker and p.consumers == (worker,) for p, _ in ends)
    turns = draw(st.sampled_from([None, None, None, 1, 2, 4]))
    return Program(tuple(steps), 2 if alone and turns is None else turns)


def _depth(pipe: Pipe, worker: int, produce: bool) -> int:
    """Objects that an end may hold at once, wherever its buffers will be: two workers may come to share one ring."""
    if produce:
        return pipe.depths[0]
    mine = pipe.depths[1 + pipe.consumers.index(worker)]
    return min(pipe.depths[0], mine) if pipe.producer >= 0 else mine


@st.composite
def networks(draw: Any) -> Network:
    """A network with its workers' programs and what the host puts in; :func:`hosted` adds the rest."""
    draft = _Draft(draw(st.integers(1, 3)))
    worker = st.integers(0, draft.workers - 1)
    for kind in [*draw(st.sampled_from(_BEGINNINGS if draft.workers > 1 else (("in", "out"),))), *draw(_MORE)]:
        first = draw(worker)
        _element(draw, draft, kind, first, (first + draw(st.integers(1, 2))) % draft.workers)
    programs = {w: p for w in range(draft.workers) if (p := _program(draw, draft.pipes, w)) is not None}
    moves = []
    for pipe in draft.pipes:
        if pipe.producer == HOST:
            for _ in range(draw(st.sampled_from([1, 1, 1, 2, 0]))):
                moves.append(
                    Move(pipe.name, True, pipe.units * draw(st.integers(1, 4)) - (draw(st.integers(0, 19)) == 0))
                )
    return Network(tuple(draft.pipes), tuple(draft.junctions), programs, tuple(moves))


@st.composite
def hosted(draw: Any, network: Network, produced: dict[str, int]) -> Network:
    """The network with drains and an order of the host's actions. ``produced``: units that come out of each pipe at most;
    mostly the host asks for no more, and mostly it starts everything before it waits."""
    moves = list(network.moves)
    for pipe in network.pipes:
        if HOST in pipe.consumers:
            units = min(produced[pipe.name], draw(st.integers(1, 6)) * pipe.units) or pipe.units
            wrong = draw(st.integers(0, 9))
            units += {0: pipe.units, 1: -pipe.units, 2: -1}.get(wrong, 0)
            pieces = [units - pipe.units, pipe.units] if units > pipe.units and draw(st.booleans()) else [max(units, 1)]
            moves += [Move(pipe.name, False, n) for n in pieces]
    numbers = range(len(moves))
    waited = [i for i in numbers if not moves[i].fill or draw(st.integers(0, 5)) == 0]
    starts = draw(st.permutations(numbers))
    if draw(st.integers(0, 2)):
        order = [*starts, *draw(st.permutations(waited))]
    else:
        order = draw(st.permutations([*numbers, *waited]))
    return Network(network.pipes, network.junctions, network.programs, tuple(moves), tuple(order))


# -- the design


def design_of(network: Network) -> Design:
    """The design graph of a network; transfers have an argument each, in the order in which they start."""
    maker = Maker("npu2")
    cores = {w: LogicalTile("core") for w in network.programs}
    memories = {
        name: mem for j in network.junctions for mem in [LogicalTile("mem")] for name in (*j.inputs, *j.outputs)
    }
    fifos: dict[str, Fifo] = {}

    def tile(end: int, name: str) -> LogicalTile | None:
        return memories[name] if end == MEM else None if end == HOST else cores[end]

    for p in network.pipes:
        initial = [np.full(OBJECT, i, np.int32) for i in range(p.depths[0])] if p.credit else None
        consumers = [t for c in p.consumers if (t := tile(c, p.name)) is not None]
        fifos[p.name] = maker.fifo(
            p.name, tile(p.producer, p.name), consumers or None, MemRefType((p.parts * OBJECT,), "i32"),
            depth=p.depths, init_values=initial, via_dma=p.via_dma,
        )  # fmt: skip
    for j in network.junctions:
        maker.link([fifos[n] for n in j.inputs], [fifos[n] for n in j.outputs], (0, OBJECT))
    for w, program in network.programs.items():
        maker.result.kernels += [KernelDecl(f"eat{w}", (TYPE,)), KernelDecl(f"make{w}", (TYPE,))]
        maker.cores.append(Core(cores[w], _body(program, w), f"worker{w}", loc=Loc("design.py", 1000 * (w + 1))))
    _sequence(maker, network)
    return maker.design(host_ends=False)


def _body(program: Program, worker: int) -> Region:
    body, loop = Region.single(), Region.single("index")
    for number, step in enumerate(program.steps):
        _access(loop.entry, step, worker, Loc("design.py", 1000 * (worker + 1) + number + 1))
    loop.entry.ops.append(Op.make("scf.yield"))
    turns = FOREVER if program.turns is None else program.turns
    bounds = [Op.make("arith.constant", results=["index"], value=v) for v in (0, turns, 1)]
    body.entry.ops += [*bounds, Op.make("scf.for", [b.result for b in bounds], regions=[loop])]
    return body


def _access(block: Block, step: Access, worker: int, loc: Loc) -> None:
    """Look at all objects taken; write objects just before they are sent, through the window of the last acquire."""
    attrs = {"objFifo_name": step.pipe, "port": int(not step.produce), "size": step.n}
    if step.acquire:
        block.ops.append(Op.make("aie.objectfifo.acquire", results=[SubviewType(TYPE)], loc=loc, **attrs))
        if not step.produce:
            _call(block, block.ops[-1], range(step.n), f"eat{worker}", loc)
        return
    if step.produce:
        mine = (op for op in reversed(block.ops) if op.name.endswith("acquire") and _same(op, attrs))
        _call(block, next(mine), range(step.n), f"make{worker}", loc)
    block.ops.append(Op.make("aie.objectfifo.release", loc=loc, **attrs))


def _same(op: Op, attrs: dict[str, Any]) -> bool:
    return all(op.attrs[k] == attrs[k] for k in ("objFifo_name", "port"))


def _call(block: Block, window: Op, indices: range, callee: str, loc: Loc) -> None:
    for index in indices:
        one = Op.make("aie.objectfifo.subview.access", [window.result], [TYPE], loc, index=index)
        block.ops += [one, Op.make("func.call", [one.result], loc=loc, callee=callee)]


def _sequence(maker: Maker, network: Network) -> None:
    tasks: dict[int, Any] = {}
    for number in network.order:
        if number in tasks:
            maker.then("await", tasks[number])
            continue
        move = network.moves[number]
        n = move.units * UNIT
        tasks[number] = maker.transfer(
            move.pipe, (1, 1, 1, n), (0, 0, 0, 1), host=MemRefType((n,), "i32"), wait=network.order.count(number) > 1
        )


class Worker:
    """What a worker computes: a number made of all it has seen, which goes into what it makes."""

    def __init__(self, number: int) -> None:
        self.state = number + 1

    def eat(self, x: np.ndarray[Any, Any]) -> None:
        self.state = (7 * self.state + int(np.dot(x, [1, 3, 5, 9]))) % 10007

    def make(self, y: np.ndarray[Any, Any]) -> None:
        y[...] = self.state + np.arange(OBJECT)
        self.state = (self.state + 1) % 10007


def kernels_of(network: Network) -> dict[str, KernelModel]:
    """Fresh models of all workers' kernels; their cycles differ, so that workers run at different speeds."""
    models = {}
    for w in network.programs:
        worker = Worker(w)
        models[f"eat{w}"] = KernelModel(worker.eat, lambda x, device, w=w: 10 + 37 * w)
        models[f"make{w}"] = KernelModel(worker.make, lambda y, device, w=w: 50 - 19 * w)
    return models
