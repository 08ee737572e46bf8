"""Projections: the part of an AIR function that one party runs, with everything else left out.

The same function is read several times. The host takes the transfers from and to DDR, a segment those of its MemTiles, a
core all that its place in its herd makes of the herds' bodies. Loops and branches around them stay, ids that the place
decides become numbers, and what nobody needs is dropped. Launches, segments and herds themselves disappear: what is left is
a region whose arguments are the ids of the launch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from npusim.air.affine import IntegerSet
from npusim.air.fold import Scalars, constant
from npusim.air.graph import Move, ends_of_dma, put_or_get, sizes_and_operands
from npusim.air.moves import Moved, moved
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
_VIEWS = frozenset({"memref.subview", "memref.collapse_shape", "memref.expand_shape"})


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
            ops = self._copy(entry, Place())
        else:
            ops = self._around(entry, launch)
        self.result.region.entry.ops = pruned(ops)
        self.result.moves = list(_moves(self.result.region))

    def _around(self, entry: Block, launch: Op) -> list[Op]:
        """The launch, with what comes before it in the function (constants, mostly)."""
        before = entry.ops[: entry.ops.index(launch)]
        block = Block(args=entry.args, ops=before)
        ops = self._copy(block, Place())
        sizes, operands = sizes_and_operands(launch)
        body = launch.regions[0].entry
        self.result.launch = self._sizes(launch, sizes)
        ids = [Value("index", self.result.region.entry) for _ in sizes]
        self.result.region.entry.args = ids
        for value, mine in zip(body.args, ids):
            self.scalars.bind(value, mine)
        self._bind(body.args[len(sizes) :], [*sizes, *operands])
        return ops + self._copy(body, Place())

    def _bind(self, arguments: Sequence[Value], given: Sequence[Value]) -> None:
        for argument, value in zip(arguments, given, strict=True):
            if isinstance(value.type, MemRefType):
                self.views.same(argument, value)
            self.scalars.bind(argument, value)

    # -- blocks

    def _copy(self, block: Block, place: Place) -> list[Op]:
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
        elif op.name in _STRUCTURED:
            _STRUCTURED[op.name](self, op, place)
        elif op.name == "affine.apply":
            self.scalars.apply(op)
        elif op.name == "arith.constant":
            self.scalars.bind(op.result, op.result)
        elif op.name == "memref.alloc":
            self._allocate(op, place)
        elif op.name in _VIEWS:
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
        if not self.wanted.computes and any(self._unknown(v) for v in op.operands):
            return
        self.scalars.scalar(op)

    def _unknown(self, value: Value) -> bool:
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
            if op.name in _VIEWS:
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
                self._enter(body, instance, sizes, operands)
                self.scalars.out += self._copy(body, Place(number, instance))

    def _herd(self, op: Op, place: Place) -> None:
        name = herd_name(op)
        sizes, operands = sizes_and_operands(op)
        body = op.regions[0].entry
        if place.segment is None:
            place = Place(0, ())
            if not self.wanted.enters_segment(0, ()):
                return
        extents = self._sizes(op, sizes)
        self.result.visits.append(Visit(op, place.segment or 0, place.instance, name, extents))
        for core in _every(extents):
            if self.wanted.enters_core(name, core):
                self._enter(body, core, sizes, operands)
                self.scalars.out += self._copy(body, Place(place.segment, place.instance, name, core))

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

    # -- loops and branches

    def _for(self, op: Op, place: Place) -> None:
        body = op.regions[0].entry
        if any(isinstance(v.type, MemRefType) for v in op.operands):
            raise UnsupportedError(f"the loop at {op.loc} carries a memref from turn to turn, which is not served")
        region = Region.single(*(v.type for v in body.args))
        for value, mine in zip(body.args, region.entry.args, strict=True):
            self.scalars.copies[value] = mine
        region.entry.ops = self._copy(body, place)
        carried = [self.scalars.value(v) for v in body.ops[-1].operands] if op.results else []
        region.entry.ops.append(Op.make("scf.yield", carried, loc=op.loc))
        made = Op("scf.for", tuple(self.scalars.value(v) for v in op.operands), loc=op.loc, regions=[region])
        made.attrs["depth"] = place.depth
        made.results = [Value(r.type, made) for r in op.results]
        self.scalars.copies.update(zip(op.results, made.results, strict=True))
        self.scalars.out.append(made)

    def _forall(self, op: Op, place: Place) -> None:
        """Turns without an order become a nest of loops."""
        bounds = zip(*(op.attrs[f"static{name}"] for name in ("LowerBound", "UpperBound", "Step")), strict=True)
        self._nest(list(bounds), list(op.regions[0].entry.args), op, place)

    def _nest(self, bounds: list[tuple[int, int, int]], ids: list[Value], op: Op, place: Place) -> None:
        if not bounds:
            self.scalars.out += self._copy(op.regions[0].entry, place)
            return
        region = Region.single("index")
        self.scalars.copies[ids[0]] = region.entry.args[0]
        outer, self.scalars.out = self.scalars.out, []
        self._nest(bounds[1:], ids[1:], op, place)
        region.entry.ops = [*self.scalars.out, Op.make("scf.yield", loc=op.loc)]
        self.scalars.out = outer
        operands = [constant(n, "index") for n in bounds[0]]
        self.scalars.out.append(Op("scf.for", tuple(operands), {"depth": place.depth}, loc=op.loc, regions=[region]))

    def _if(self, op: Op, place: Place) -> None:
        condition = op.operands[0]
        if not self.wanted.computes and self._unknown(condition):
            self._opaque(op, place)
            return
        number = self.scalars.number(condition)
        self._branch(op, self.scalars.value(condition) if number is None else bool(number), place)

    def _affine_if(self, op: Op, place: Place) -> None:
        of: IntegerSet = op.attrs["condition"]
        self._branch(op, self.scalars.inside(of, op.operands, op.loc), place)

    def _branch(self, op: Op, condition: bool | Value, place: Place) -> None:
        if op.results:
            raise UnsupportedError(f"{op.name} with results at {op.loc} is not served")
        if isinstance(condition, bool):
            chosen = op.regions[0 if condition else 1]
            if chosen.blocks:
                self.scalars.out += self._copy(chosen.entry, place)
            return
        regions = []
        for region in op.regions:
            ops = self._copy(region.entry, place) if region.blocks else []
            regions.append(Region([Block(ops=[*ops, Op.make("scf.yield", loc=op.loc)])]))
        self.scalars.out.append(Op("scf.if", (condition,), loc=op.loc, regions=regions))

    def _opaque(self, op: Op, place: Place) -> None:
        """A branch that only the core can decide: fine as long as nothing of this party is in it."""
        before = len(self.scalars.out)
        for region in op.regions:
            if region.blocks and any(o.name.startswith("air.") for o in _deep(self._copy(region.entry, place))):
                raise UnsupportedError(
                    f"the branch at {op.loc} depends on the contents of memory and moves data, which is not served: move the "
                    "data in either case and branch around the computing"
                )
        del self.scalars.out[before:]


_STRUCTURED = {
    "scf.for": Projector._for,
    "scf.forall": Projector._forall,
    "scf.if": Projector._if,
    "affine.if": Projector._affine_if,
}


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


def _deep(ops: Sequence[Op]) -> Iterator[Op]:
    for op in ops:
        yield op
        for region in op.regions:
            for block in region.blocks:
                yield from _deep(block.ops)


def _moves(region: Region) -> Iterator[Op]:
    return (op for block in region.blocks for op in _deep(block.ops) if op.name in ("air.put", "air.get"))


_PURE = (*arith.SERVED, *_VIEWS, "vector.broadcast")


def pruned(ops: list[Op]) -> list[Op]:
    """The operations without loops and branches that do nothing, and without scalars that nobody uses."""
    used: set[Value] = set()
    for op in _deep(ops):
        if op.name not in _PURE:
            used.update(op.operands)
    work = list(used)
    while work:
        owner = work.pop().owner
        if isinstance(owner, Op) and owner.name in _PURE:
            fresh = set(owner.operands) - used
            used |= fresh
            work += fresh
    return _without(ops, used)


def _without(ops: list[Op], used: set[Value]) -> list[Op]:
    kept = []
    for op in ops:
        if op.name in _PURE and not any(r in used for r in op.results):
            continue
        for region in op.regions:
            for block in region.blocks:
                block.ops = _without(block.ops, used)
        if op.regions and not op.results and all(_empty(region) for region in op.regions):
            continue
        kept.append(op)
    return kept


def _empty(region: Region) -> bool:
    return all(op.name == "scf.yield" for block in region.blocks for op in block.ops)
