"""Projections: the part of an AIR function that one party runs, with everything else left out.

The same function is read several times. The host takes the transfers from and to DDR, a segment those of its MemTiles, a
core all that its place in its herd makes of the herds' bodies. Loops and branches around them stay, ids that the place
decides become numbers, and what nobody needs is dropped. Launches, segments and herds themselves disappear: what is left is
a region whose arguments are the ids of the launch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from npusim.air.branches import STRUCTURED
from npusim.air.fold import Scalars
from npusim.air.graph import Move, ends_of_dma, put_or_get, sizes_and_operands
from npusim.air.moves import Moved, moved
from npusim.air.prune import VIEWS, deep, pruned
from npusim.air.views import View, Views
from npusim.engine import arith
from npusim.errors import DesignError, UnsupportedError
from npusim.ir import Block, Op, Region, Value
from npusim.types import MemRefType

Index = tuple[int, ...]
_ENDS = frozenset({"scf.yield", "affine.yield", "func.return", "scf.forall.in_parallel"}) | {
    f"air.{name}_terminator" for name in ("launch", "segment", "herd")
}
_COMPUTE = frozenset({"func.call", "memref.load", "memref.store"})


@dataclass(frozen=True)
class Place:
    """Where the code being copied runs: the segment instance (its number in the function and its ids) and the core."""

    segment: int | None = None
    instance: Index = ()
    herd: str | None = None
    core: Index = ()

    @property
    def depth(self) -> int:
        """0 in the launch, 1 in a segment, 2 in a herd."""
        return 2 if self.herd is not None else 0 if self.segment is None else 1


@dataclass
class Wanted:
    """What a projection keeps: transfers of one memory space, of one segment instance and one core if these are given."""

    space: int
    segment: int | None = None
    instance: Index = ()
    herd: str | None = None
    core: Index = ()
    computes: bool = False  # calls, loads and stores as well

    def enters_segment(self, number: int, instance: Index) -> bool:
        return self.segment is None or (self.segment, self.instance) == (number, instance)

    def enters_core(self, herd: str, core: Index) -> bool:
        return self.herd is None or (self.herd, self.core) == (herd, core)


@dataclass(frozen=True)
class Visit:
    """A herd in a segment instance: its name, columns and rows."""

    op: Op
    segment: int
    instance: Index
    name: str
    sizes: Index


@dataclass
class Projection:
    """The copied region (its arguments are the launch's ids) and what the memrefs in it are."""

    region: Region
    views: Views
    moves: list[Op] = field(default_factory=list)  # every air.put and air.get, in order
    allocations: dict[Value, Op] = field(default_factory=dict)  # the copy's memref -> its original memref.alloc
    instances: dict[tuple[int, Index], None] = field(default_factory=dict)  # of segments
    visits: list[Visit] = field(default_factory=list)
    launch: Index = ()  # the sizes of the launch

    def move(self, op: Op) -> Moved:
        """What an ``air.put`` or ``air.get`` of the region moves."""
        of: Moved = op.attrs["move"]
        return of


def herd_name(op: Op) -> str:
    """The name of a herd, or one made of its place in the source."""
    return str(op.attrs.get("sym_name") or f"herd at {op.loc}")


def the_launch(function: Region) -> Op | None:
    """The launch of a function, None if it has none (then the function itself is one). UnsupportedError for several."""
    launches = [op for op in function.entry.ops if op.name == "air.launch"]
    if len(launches) > 1:
        places = ", ".join(str(op.loc) for op in launches)
        raise UnsupportedError(f"a function with several launches ({places}) is not served; make one design of each")
    return launches[0] if launches else None


class Projector:
    """Copies a function for one party."""

    def __init__(self, function: Region, wanted: Wanted) -> None:
        self.wanted, self.scalars, self.views = wanted, Scalars(), Views()
        self.result = Projection(Region([Block()]), self.views)
        self._segments = 0
        self._private: dict[Op, Value] = {}
        entry = function.entry
        for value in entry.args:
            self.views.whole(value)
        launch = the_launch(function)
        if launch is None:
            ops = self.copy(entry, Place())
        else:
            ops = self._around(entry, launch)
        self.result.region.entry.ops = pruned(ops)
        self.result.moves = list(_moves(self.result.region))

    def _around(self, entry: Block, launch: Op) -> list[Op]:
        """The launch, with what comes before it in the function (constants, mostly)."""
        before = entry.ops[: entry.ops.index(launch)]
        block = Block(args=entry.args, ops=before)
        ops = self.copy(block, Place())
        sizes, operands = sizes_and_operands(launch)
        body = launch.regions[0].entry
        self.result.launch = self._sizes(launch, sizes)
        ids = [Value("index", self.result.region.entry) for _ in sizes]
        self.result.region.entry.args = ids
        for value, mine in zip(body.args, ids):
            self.scalars.bind(value, mine)
        self._bind(body.args[len(sizes) :], [*sizes, *operands])
        return ops + self.copy(body, Place())

    def _bind(self, arguments: Sequence[Value], given: Sequence[Value]) -> None:
        for argument, value in zip(arguments, given, strict=True):
            if isinstance(value.type, MemRefType):
                self.views.same(argument, value)
            self.scalars.bind(argument, value)

    # -- blocks

    def copy(self, block: Block, place: Place) -> list[Op]:
        """The operations of a block as this party needs them."""
        outer, self.scalars.out = self.scalars.out, []
        try:
            for op in block.ops:
                if op.name not in _ENDS:
                    self._one(op, place)
            return self.scalars.out
        finally:
            self.scalars.out = outer

    def _one(self, op: Op, place: Place) -> None:
        if op.name == "air.segment":
            self._segment(op, place)
        elif op.name == "air.herd":
            self._herd(op, place)
        elif op.name.startswith("air."):
            self._transfer(op, place)
        elif op.name in STRUCTURED:
            STRUCTURED[op.name](self, op, place)
        elif op.name == "affine.apply":
            self.scalars.apply(op)
        elif op.name == "arith.constant":
            self.scalars.bind(op.result, op.result)
        elif op.name == "memref.alloc":
            self._allocate(op, place)
        elif op.name in VIEWS:
            self.views.add(op, self.scalars)
            self._compute(op, place)
        elif op.name in _COMPUTE or op.name.startswith("vector."):
            self._compute(op, place)
        elif op.name in arith.SERVED:
            self._scalar(op, place)
        elif op.name != "memref.dealloc":
            raise UnsupportedError(f"operation {op.name} at {op.loc} is not served")

    def _scalar(self, op: Op, place: Place) -> None:
        """Arithmetic; what rests on the contents of memory only a core can do."""
        if not self.wanted.computes and any(self.unknown(v) for v in op.operands):
            return
        self.scalars.scalar(op)

    def unknown(self, value: Value) -> bool:
        """Whether a value is neither known nor computed in this copy."""
        if self.scalars.number(value) is not None:
            return False
        if value in self.scalars.copies:
            return False
        return isinstance(value.owner, Op)

    def _compute(self, op: Op, place: Place) -> None:
        if not self.wanted.computes:
            return
        if place.depth < 2:
            if op.name in VIEWS:
                return
            raise UnsupportedError(f"{op.name} at {op.loc} outside of a herd is not served: only compute tiles compute")
        made = Op(op.name, tuple(self.scalars.value(v) for v in op.operands), dict(op.attrs), loc=op.loc)
        made.results = [Value(r.type, made) for r in op.results]
        self.scalars.out.append(made)
        self.scalars.copies.update(zip(op.results, made.results, strict=True))

    # -- hierarchy

    def _segment(self, op: Op, place: Place) -> None:
        number, self._segments = self._segments, self._segments + 1
        sizes, operands = sizes_and_operands(op)
        body = op.regions[0].entry
        for instance in _every(self._sizes(op, sizes)):
            if self.wanted.enters_segment(number, instance):
                self.result.instances[number, instance] = None
                self._enter(body, instance, sizes, operands)
                self.scalars.out += self.copy(body, Place(number, instance))

    def _herd(self, op: Op, place: Place) -> None:
        name = herd_name(op)
        sizes, operands = sizes_and_operands(op)
        body = op.regions[0].entry
        if place.segment is None:
            place = Place(0, ())
            self.result.instances[0, ()] = None
            if not self.wanted.enters_segment(0, ()):
                return
        extents = self._sizes(op, sizes)
        self.result.visits.append(Visit(op, place.segment or 0, place.instance, name, extents))
        for core in _every(extents):
            if self.wanted.enters_core(name, core):
                self._enter(body, core, sizes, operands)
                self.scalars.out += self.copy(body, Place(place.segment, place.instance, name, core))

    def _enter(self, body: Block, ids: Index, sizes: Sequence[Value], operands: Sequence[Value]) -> None:
        for value, number in zip(body.args, ids):
            self.scalars.bind(value, number)
        self._bind(body.args[len(ids) :], [*sizes, *operands])

    def _sizes(self, op: Op, sizes: Sequence[Value]) -> Index:
        numbers = [self.scalars.number(v) for v in sizes]
        if any(n is None for n in numbers):
            raise UnsupportedError(
                f"the sizes of {op.name} at {op.loc} are known only at run time, which is not served"
            )
        return tuple(int(n) for n in numbers if n is not None)

    # -- memory

    def _allocate(self, op: Op, place: Place) -> None:
        type = op.result.type
        assert isinstance(type, MemRefType)
        if type.space != self.wanted.space:
            return
        if type.space == 2 and place.depth < 2:  # one of its own for each core
            self.views.whole(op.result)
            self.result.allocations[op.result] = op
            return
        made = Op.make("memref.alloc", (), (type,), op.loc)
        self.scalars.out.append(made)
        self.scalars.bind(op.result, made.result)
        self.views.whole(made.result)
        self.views.same(op.result, made.result)
        self.result.allocations[made.result] = op

    def _transfer(self, op: Op, place: Place) -> None:
        if op.name in ("air.channel.put", "air.channel.get"):
            self._move(put_or_get(op), place)
        elif op.name == "air.dma_memcpy_nd":
            ends = ends_of_dma(op)
            spaces = [end.pattern.type.space for end in ends]
            if spaces[0] == spaces[1]:
                raise UnsupportedError(
                    f"the dma_memcpy_nd at {op.loc} copies within one memory level, which is not served"
                )
            for end in ends:
                self._move(end, place)
        else:
            raise UnsupportedError(f"operation {op.name} at {op.loc} is not served")

    def _move(self, move: Move, place: Place) -> None:
        space = move.pattern.type.space
        if space == 2 and place.depth < 2:
            raise DesignError(
                f"the {move.side} at {move.op.loc} touches L1 ({move.pattern.type}) outside of a herd: L1 belongs to compute "
                "tiles, so move it in the herd's body"
            )
        if space != self.wanted.space:
            return
        self.scalars.out.append(moved(move, place.instance if place.segment is not None else None, place.core, self))

    def view(self, value: Value) -> View:
        return self.views.of(value)


def project(function: Region, wanted: Wanted) -> Projection:
    """The part of a function that one party runs."""
    return Projector(function, wanted).result


def _every(sizes: Index) -> Iterator[Index]:
    if not sizes:
        yield ()
        return
    for head in range(sizes[0]):
        for rest in _every(sizes[1:]):
            yield (head, *rest)


def _moves(region: Region) -> Iterator[Op]:
    return (op for block in region.blocks for op in deep(block.ops) if op.name in ("air.put", "air.get"))
