"""Takes out of a copied region what does nothing: empty loops and branches, scalars that nobody uses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from npusim.engine import arith
from npusim.ir import Op, Region, Value

VIEWS = frozenset({"memref.subview", "memref.collapse_shape", "memref.expand_shape", "memref.cast"})
_PURE = (*arith.SERVED, *VIEWS, "vector.broadcast")


def deep(ops: Sequence[Op]) -> Iterator[Op]:
    """Every operation, those inside of others too."""
    for op in ops:
        yield op
        for region in op.regions:
            for block in region.blocks:
                yield from deep(block.ops)


def pruned(ops: list[Op]) -> list[Op]:
    """The operations without loops and branches that do nothing, and without scalars that nobody uses."""
    used: set[Value] = set()
    for op in deep(ops):
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
