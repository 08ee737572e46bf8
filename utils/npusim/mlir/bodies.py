"""Core bodies and host sequences: from operations as read to npusim's IR, and back.

Reading keeps the values themselves, except those that stand for things of the design (buffers, locks), and gives each
successor its operands. Printing is the reverse, with the terminators and defaults that MLIR insists on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from npusim.errors import DesignError, UnsupportedError
from npusim.graph import Buffer, Lock
from npusim.ir import Block, Op, Region, Value, walk
from npusim.mlir.attributes import DenseArray, plain
from npusim.mlir.generic import RawOp
from npusim.mlir.schema import DIALECTS, normalise, typed

Check = Callable[[RawOp], None]


def refuse_unknown(known: frozenset[str], dialects: frozenset[str] = frozenset()) -> Check:
    """A check for ``lift``: operations of ``known``, of ``dialects`` and of those of plain code pass, others are refused."""

    def check(op: RawOp) -> None:
        dialect = op.name.partition(".")[0]
        if op.name in known or dialect in DIALECTS or dialect in dialects:
            return
        what = f"operation {op.name}" if dialect in ("aie", "aiex") else f"dialect {dialect!r} (operation {op.name})"
        raise UnsupportedError(f"{op.loc}: {what} is not read here")

    return check


def lift(region: Region, things: Mapping[Value, Value], check: Check) -> Region:
    """The region in npusim's IR; ``things`` are the values to use for buffers and locks of the design."""
    blocks = {block: Block(args=block.args) for block in region.blocks}
    for raw, block in blocks.items():
        for value in raw.args:
            value.owner = block
        for op in cast(list[RawOp], raw.ops):
            check(op)
            block.ops.append(_lift(op, things, check, blocks))
    return Region(list(blocks.values()))


def _lift(op: RawOp, things: Mapping[Value, Value], check: Check, blocks: Mapping[Block, Block]) -> Op:
    operands = tuple(things.get(v, v) for v in op.operands)
    attributes = {key: plain(value) for key, value in {**op.props, **op.attrs}.items()}
    targets = [blocks[block] for block, _ in op.successors]
    counts = _operand_counts(op, len(targets))
    lifted = Op(op.name, operands[: len(operands) - sum(counts)], loc=op.loc, results=op.results)
    begin = len(lifted.operands)
    for target, count in zip(targets, counts):
        lifted.successors.append((target, operands[begin : begin + count]))
        begin += count
    attributes.pop("case_operand_segments", None)
    if op.name == "cf.switch":
        attributes["case_values"] = tuple(int(case) for case in attributes.get("case_values", ()))
    lifted.attrs = normalise(op.name, attributes)
    for value in op.results:
        value.owner = lifted
    lifted.regions = [lift(inner, things, check) for inner in op.regions]
    return lifted


def _operand_counts(op: RawOp, targets: int) -> tuple[int, ...]:
    """How many of the last operands go to each successor."""
    if op.name == "cf.br":
        return (len(op.operands),)
    if op.name == "cf.cond_br":
        return cast(tuple[int, ...], op.prop("operandSegmentSizes"))[1:]
    if op.name == "cf.switch":
        default = cast(tuple[int, ...], op.prop("operandSegmentSizes"))[1]
        return (default, *cast(tuple[int, ...], op.prop("case_operand_segments", ())))
    return (0,) * targets


def lower(region: Region, things: Mapping[Value, Value], end: str = "") -> Region:
    """The region as operations to print, ``end`` added to its last block if a terminator is missing there."""
    blocks = {block: Block() for block in region.blocks}
    values = dict(things)
    raw = _lower_blocks(blocks, values)
    if end and raw.blocks and (not raw.blocks[-1].ops or raw.blocks[-1].ops[-1].name != end):
        raw.blocks[-1].ops.append(RawOp(end))
    _check_defined(raw, set(things.values()))
    return raw


def _check_defined(region: Region, defined: set[Value]) -> None:
    for block in region.blocks:
        defined.update(block.args)
    ops = list(walk(region))
    for op in ops:
        defined.update(op.results)
        for block in (block for inner in op.regions for block in inner.blocks):
            defined.update(block.args)
    for op in ops:
        if not defined.issuperset(op.operands):
            raise DesignError(f"{op.name} at {op.loc} uses a value that nothing defines")


def _lower_blocks(blocks: dict[Block, Block], values: dict[Value, Value]) -> Region:
    for block, raw in blocks.items():
        raw.args = [values.setdefault(v, Value(v.type, raw)) for v in block.args]
    for block, raw in blocks.items():
        raw.ops += [_lower(op, values, blocks) for op in block.ops]
    return Region(list(blocks.values()))


def _lower(op: Op, values: dict[Value, Value], blocks: Mapping[Block, Block]) -> RawOp:
    raw = RawOp(op.name, loc=op.loc, props=typed(op))
    forwarded = [v for _, operands in op.successors for v in operands]
    raw.operands = tuple(_operand(v, values, op) for v in (*op.operands, *forwarded))
    raw.results = [values.setdefault(v, Value(v.type, raw)) for v in op.results]
    raw.successors = [(blocks[target], ()) for target, _ in op.successors]
    if op.name == "cf.switch":
        raw.props["case_operand_segments"] = DenseArray("i32", tuple(len(o) for _, o in op.successors[1:]))
    raw.regions = [_lower_blocks({b: Block() for b in inner.blocks}, values) for inner in op.regions]
    if op.name == "scf.if" and len(raw.regions) == 1:
        raw.regions.append(Region())
    if op.name == "aiex.dma_configure_task_for" and not any(o.name == "aie.end" for o in raw.regions[0].blocks[-1].ops):
        raw.regions[0].blocks[-1].ops.append(RawOp("aie.end"))
    return raw


def _operand(value: Value, values: dict[Value, Value], op: Op) -> Value:
    if value not in values and isinstance(value.owner, (Buffer, Lock)):
        thing = "buffer" if isinstance(value.owner, Buffer) else "lock"
        raise DesignError(f"{op.name} at {op.loc} uses {thing} {value.owner.name!r}, which the design does not list")
    return values.setdefault(value, Value(value.type))
