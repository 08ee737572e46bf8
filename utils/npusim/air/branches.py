"""What becomes of loops and branches in a projection: branches whose condition is known disappear, the others stay."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from npusim.air.affine import IntegerSet
from npusim.air.fold import constant
from npusim.air.prune import deep
from npusim.errors import UnsupportedError
from npusim.ir import Block, Op, Region, Value
from npusim.types import MemRefType

if TYPE_CHECKING:
    from npusim.air.project import Place, Projector


def _for(by: Projector, op: Op, place: Place) -> None:
    body = op.regions[0].entry
    if any(isinstance(v.type, MemRefType) for v in op.operands):
        raise UnsupportedError(f"the loop at {op.loc} carries a memref from turn to turn, which is not served")
    region = Region.single(*(v.type for v in body.args))
    for value, mine in zip(body.args, region.entry.args, strict=True):
        by.scalars.copies[value] = mine
    region.entry.ops = by.copy(body, place)
    carried = [by.scalars.value(v) for v in body.ops[-1].operands] if op.results else []
    region.entry.ops.append(Op.make("scf.yield", carried, loc=op.loc))
    made = Op("scf.for", tuple(by.scalars.value(v) for v in op.operands), loc=op.loc, regions=[region])
    made.attrs["depth"] = place.depth
    made.results = [Value(r.type, made) for r in op.results]
    by.scalars.copies.update(zip(op.results, made.results, strict=True))
    by.scalars.out.append(made)


def _forall(by: Projector, op: Op, place: Place) -> None:
    """Turns without an order become a nest of loops."""
    bounds = zip(*(op.attrs[f"static{name}"] for name in ("LowerBound", "UpperBound", "Step")), strict=True)
    _nest(by, list(bounds), list(op.regions[0].entry.args), op, place)


def _nest(by: Projector, bounds: list[tuple[int, int, int]], ids: list[Value], op: Op, place: Place) -> None:
    if not bounds:
        by.scalars.out += by.copy(op.regions[0].entry, place)
        return
    region = Region.single("index")
    by.scalars.copies[ids[0]] = region.entry.args[0]
    outer, by.scalars.out = by.scalars.out, []
    _nest(by, bounds[1:], ids[1:], op, place)
    region.entry.ops = [*by.scalars.out, Op.make("scf.yield", loc=op.loc)]
    by.scalars.out = outer
    operands = [constant(n, "index") for n in bounds[0]]
    by.scalars.out.append(Op("scf.for", tuple(operands), {"depth": place.depth}, loc=op.loc, regions=[region]))


def _if(by: Projector, op: Op, place: Place) -> None:
    condition = op.operands[0]
    if not by.wanted.computes and by.unknown(condition):
        _opaque(by, op, place)
        return
    number = by.scalars.number(condition)
    _branch(by, op, by.scalars.value(condition) if number is None else bool(number), place)


def _affine_if(by: Projector, op: Op, place: Place) -> None:
    of: IntegerSet = op.attrs["condition"]
    _branch(by, op, by.scalars.inside(of, op.operands, op.loc), place)


def _branch(by: Projector, op: Op, condition: bool | Value, place: Place) -> None:
    if op.results:
        raise UnsupportedError(f"{op.name} with results at {op.loc} is not served")
    if isinstance(condition, bool):
        chosen = op.regions[0 if condition else 1]
        if chosen.blocks:
            by.scalars.out += by.copy(chosen.entry, place)
        return
    regions = []
    for region in op.regions:
        ops = by.copy(region.entry, place) if region.blocks else []
        regions.append(Region([Block(ops=[*ops, Op.make("scf.yield", loc=op.loc)])]))
    by.scalars.out.append(Op("scf.if", (condition,), loc=op.loc, regions=regions))


def _opaque(by: Projector, op: Op, place: Place) -> None:
    """A branch that only the core can decide: fine as long as nothing of this party is in it."""
    before = len(by.scalars.out)
    for region in op.regions:
        if region.blocks and any(o.name.startswith("air.") for o in deep(by.copy(region.entry, place))):
            raise UnsupportedError(
                f"the branch at {op.loc} depends on the contents of memory and moves data, which is not served: move the "
                "data in either case and branch around the computing"
            )
    del by.scalars.out[before:]


STRUCTURED: dict[str, Callable[[Projector, Op, Place], None]] = {
    "scf.for": _for,
    "scf.forall": _forall,
    "scf.if": _if,
    "affine.if": _affine_if,
}
