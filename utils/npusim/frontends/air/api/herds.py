"""Herds over a grid of tiles, and the tiles and loops in their bodies.

A grid larger than the herd is worked off in turns: each core gets a block of neighbouring tiles, in loops around the body.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

from npusim import ir
from npusim.errors import CapacityError, DesignError, UnsupportedError
from npusim.frontends import tracing
from npusim.frontends.air.api.index import IndexExpr
from npusim.frontends.air.api.launches import Symbol, arity, tracing_launch
from npusim.frontends.air.api.types import DType
from npusim.frontends.air.api.values import Buffer, Scope
from npusim.frontends.air.attributes import IntegerAttr
from npusim.frontends.air.dialect_memref import AllocOp, DeallocOp
from npusim.frontends.air.dialect_scf import for_, yield_
from npusim.frontends.air.regions import herd as region
from npusim.frontends.air.types import IntegerType, MemRefType
from npusim.frontends.tracing import DesignTypeError
from npusim.messages import explain

PHYSICAL = {"npu1": {1: (4,), 2: (1, 4)}, "npu2": {1: (8,), 2: (2, 4)}}
"""The largest herd that air.api chooses by itself, by rank of the grid."""
L1_BYTES = 65536

_herds: list[HerdContext] = []
_loops = 0


class HerdContext:
    """A herd; ``with air.herd(...) as h:`` and then ``@h.body``."""

    def __init__(self, iterable: Any, name: Any = None, shape: Any = None, target: Any = None) -> None:
        counts = parse_grid(iterable)
        if len(counts) > 2:
            raise UnsupportedError(f"air.herd takes a grid of one or two dimensions, got {len(counts)}")
        if target is not None:
            raise UnsupportedError("target= of air.herd is not served; give it to launch.build or launch.compile")
        self.grid, self.name = counts, name or "herd_0"
        self.physical = self._physical(shape)
        self.repeats = tuple(n // p for n, p in zip(self.grid, self.physical))
        self.buffers: list[tuple[Buffer, ir.Block]] = []

    def _physical(self, shape: Any) -> tuple[int, ...]:
        if shape is None:
            most = PHYSICAL[tracing_launch("air.herd").generation][len(self.grid)]
            return tuple(max(d for d in range(1, min(n, m) + 1) if n % d == 0) for n, m in zip(self.grid, most))
        chosen = tuple(int(n) for n in shape)
        if len(chosen) != len(self.grid) or any(p < 1 or n % p for n, p in zip(self.grid, chosen)):
            raise DesignError(f"a herd of shape {chosen} does not divide the grid {self.grid}")
        return chosen

    def __enter__(self) -> HerdContext:
        return self

    def __exit__(self, *args: object) -> None:
        pass

    def private(self) -> Scope:
        """The memory of each core, for ``air.alloc(scope=...)``."""
        return Scope("private", self)

    def shared(self) -> Scope:
        raise UnsupportedError("a herd has no shared(); tiles belong to one core each")

    @property
    def body(self) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Decorator: the function is traced now, with the coordinates of a tile in the grid."""

        def decorator(fn: Callable[..., Any]) -> Callable[..., Any]:
            self._write(fn)
            return fn

        return decorator

    def _write(self, fn: Callable[..., Any]) -> None:
        if arity(fn) != len(self.grid):
            raise DesignTypeError(
                f"the body of the herd takes {arity(fn)} coordinate arguments, its grid has {len(self.grid)} dimensions"
            )
        tensors = tracing_launch("air.herd").tensors
        sizes = [*self.physical, *[1] * (2 - len(self.physical))]

        def body(*args: Any) -> None:
            outside = [t.value for t in tensors]
            for t, value in zip(tensors, args[4:], strict=True):
                t.value = value
            _herds.append(self)
            try:
                self._turns(fn, args[:2], ())
            finally:
                _herds.pop()
                for t, value in zip(tensors, outside, strict=True):
                    t.value = value

        region(name=self.name, sizes=sizes, operands=[t.value for t in tensors])(body)

    def _turns(self, fn: Callable[..., Any], ids: Any, turns: tuple[Any, ...]) -> None:
        """The loops over a core's tiles, and the body in them."""
        if len(turns) < len(self.grid):
            if self.repeats[len(turns)] == 1:
                self._turns(fn, ids, (*turns, None))
                return
            for i in for_(0, self.repeats[len(turns)], 1):
                self._turns(fn, ids, (*turns, i))
                yield_([])
            return
        tiles = []
        for axis, turn in enumerate(turns):
            tile = IndexExpr.leaf(ids[axis], f"t{axis}") * self.repeats[axis]
            tiles.append(tile if turn is None else tile + IndexExpr.leaf(turn, f"i{axis}"))
        self.buffers.clear()
        fn(*tiles)
        for buffer, block in self.buffers:
            if buffer.released is None:
                _release(buffer, block)


def _release(buffer: Buffer, block: ir.Block) -> None:
    """Write the end of a tile's life behind the last operation that uses it."""
    value = buffer.value.value
    last = max(i for i, op in enumerate(block.ops) if value in op.results or _uses(op, value))
    block.ops.insert(last + 1, ir.Op.make("memref.dealloc", (value,), (), block.ops[last].loc))


def _uses(op: ir.Op, value: ir.Value) -> bool:
    inner = (o for r in op.regions for o in ir.walk(r))
    return any(value in o.operands for o in (op, *inner))


def parse_grid(iterable: Any) -> tuple[int, ...]:
    """How many tiles there are in each dimension of a range, a list of ranges or a product of them."""
    if isinstance(iterable, range):
        iterable = [iterable]
    if isinstance(iterable, itertools.product):
        made: Any = iterable.__reduce__()
        return tuple(_count(values) for values in made[1])
    if not isinstance(iterable, (list, tuple)) or not all(isinstance(r, range) for r in iterable):
        raise DesignTypeError(
            f"air.herd takes range(...), a list of ranges or itertools.product of them, got {iterable!r}"
        )
    for r in iterable:
        if len(r) and (r.stop - r.start) % r.step:
            raise DesignError(
                f"{r} does not end on a whole tile: {len(r)} steps of {r.step} reach {r.start + len(r) * r.step}"
            )
    return tuple(_count(tuple(r)) for r in iterable)


def _count(values: tuple[int, ...]) -> int:
    if not values or values[0] != 0:
        raise DesignError(f"the grid of a herd must begin at 0 and have a tile, got {list(values[:4])}")
    if any(b - a != values[1] for a, b in itertools.pairwise(values)):
        raise DesignError(f"the steps of the grid of a herd must be equal, got {list(values[:4])}")
    return len(values)


def herd(iterable: Any, name: Any = None, shape: Any = None, target: Any = None) -> HerdContext:
    """A herd of cores over a grid of tiles."""
    return HerdContext(iterable, name=name, shape=shape, target=target)


def alloc(shape: Any, dtype: DType, scope: Any = None, vector: Any = None) -> Buffer:
    """A tile in each core's memory. CapacityError for more than a core has."""
    if not isinstance(scope, Scope) or not isinstance(scope.owner, HerdContext):
        raise DesignError("air.alloc needs scope=h.private() of the herd h around it")
    if not _herds or scope.owner is not _herds[-1]:
        raise DesignError("air.alloc(scope=...) names another herd than the one whose body this is")
    if _loops:
        raise UnsupportedError("air.alloc in the body of air.sequential is not served: allocate before the loop")
    sizes = [int(n) for n in shape]
    found = Buffer(sizes, dtype, scope=scope, vector_width=vector)
    live = sum(b.nbytes for b, _ in scope.owner.buffers) + found.nbytes
    if live > L1_BYTES:
        raise CapacityError(
            explain(
                f"air.alloc({sizes}, {dtype}) needs {found.nbytes:,} bytes, {live:,} with the other tiles of this body; a core "
                f"has {L1_BYTES} (64 KB).",
                hint="use smaller tiles. The compiler doubles tiles that a loop fills, so plan for twice as much.",
                loc=tracing.here(),
            )
        )
    space = IntegerAttr.get(IntegerType.get_signless(32), 2)
    found.value = AllocOp(MemRefType.get(sizes, dtype.mlir(), memory_space=space), [], []).result
    scope.owner.buffers.append((found, tracing.need("air.alloc").block))
    return found


def dealloc(buffer: Buffer) -> None:
    """End a tile's life here."""
    if buffer.released is not None:
        raise DesignError("this tile has already been released")
    buffer.released = DeallocOp(buffer.value)


def sequential(start: Any, stop: Any = None, step: Any = None, name: Any = None) -> Iterator[IndexExpr]:
    """A loop in a herd's body that stays a loop."""
    global _loops
    start, stop = (0, start) if stop is None else (start, stop)
    low, high, by = (_bound(n) for n in (start, stop, 1 if step is None else step))
    if by < 1 or high < low or (high - low) % by:
        raise DesignError(f"air.sequential({low}, {high}, {by}) does not count up in whole steps")
    for i in for_(low, high, by):
        _loops += 1
        try:
            yield IndexExpr.leaf(i, name or "k")
        finally:
            _loops -= 1
        yield_([])


def _bound(n: Any) -> int:
    if isinstance(n, (int, Symbol)) and not isinstance(n, bool):
        return int(n)
    raise DesignTypeError(f"the bounds of air.sequential are ints or symbols, got {n!r}")
