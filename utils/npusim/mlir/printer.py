"""Prints operations in MLIR's generic form, numbered and laid out as ``mlir-opt --mlir-print-op-generic`` does."""

from __future__ import annotations

from collections.abc import Iterator

from npusim.ir import Block, Op, Region, Value
from npusim.mlir.attributes import FunctionType, entries
from npusim.mlir.generic import Module, RawOp


def print_module(module: Module) -> str:
    """The text of a module, its aliases first."""
    lines = [f"{name} = {text}" for name, text in module.aliases.items()]
    names = _names(module.op)
    lines += _op(module.op, names, "")
    return "\n".join(lines) + "\n"


def _names(top: Op) -> dict[Value, str]:
    """Names as MLIR gives them: a region's values in order, then the regions inside it, the last one first."""
    names: dict[Value, str] = {}
    numbers, arguments = iter(range(10**9)), iter(range(10**9))
    _name_results(top, names, numbers)
    waiting = list(top.regions)
    while waiting:
        region = waiting.pop()
        for index, block in enumerate(region.blocks):
            for value in block.args:
                names[value] = f"%arg{next(arguments)}" if index == 0 else f"%{next(numbers)}"
            for op in block.ops:
                _name_results(op, names, numbers)
        waiting += [inner for block in region.blocks for op in block.ops for inner in op.regions]
    return names


def _name_results(op: Op, names: dict[Value, str], numbers: Iterator[int]) -> None:
    if op.results:
        name = f"%{next(numbers)}"
        for index, value in enumerate(op.results):
            names[value] = f"{name}#{index}" if len(op.results) > 1 else name


def _op(op: Op, names: dict[Value, str], indent: str, labels: dict[Block, str] | None = None) -> list[str]:
    assert isinstance(op, RawOp)  # only these know their properties from their attributes
    begin = f'{indent}{_results(op, names)}"{op.name}"({", ".join(names[v] for v in op.operands)})'
    if op.successors:
        begin += f"[{', '.join((labels or {})[block] for block, _ in op.successors)}]"
    if op.props:
        begin += f" <{{{entries(op.props)}}}>"
    lines: list[str] = []
    for number, region in enumerate(op.regions):
        lines.append(f"{indent}}}, {{" if number else f"{begin} ({{")
        lines += _region(region, names, indent)
    end = f"{indent}}})" if op.regions else begin
    if op.attrs:
        end += f" {{{entries(op.attrs)}}}"
    signature = FunctionType(tuple(v.type for v in op.operands), tuple(v.type for v in op.results))
    lines.append(f"{end} : {signature}")
    return lines


def _results(op: Op, names: dict[Value, str]) -> str:
    if not op.results:
        return ""
    if len(op.results) == 1:
        return f"{names[op.results[0]]} = "
    return f"{names[op.results[0]].partition('#')[0]}:{len(op.results)} = "


def _region(region: Region, names: dict[Value, str], indent: str) -> list[str]:
    labels = {block: f"^bb{number}" for number, block in enumerate(region.blocks)}
    before: dict[Block, list[str]] = {block: [] for block in region.blocks}
    for block in region.blocks:
        for op in block.ops:
            for target, _ in op.successors:
                before[target].append(labels[block])
    lines: list[str] = []
    for number, block in enumerate(region.blocks):
        if number or block.args or not block.ops:
            lines.append(indent + _label(block, labels[block], before[block] if number else None, names))
        for op in block.ops:
            lines += _op(op, names, indent + "  ", labels)
    return lines


def _label(block: Block, label: str, before: list[str] | None, names: dict[Value, str]) -> str:
    args = ", ".join(f"{names[value]}: {value.type}" for value in block.args)
    head = f"{label}({args}):" if args else f"{label}:"
    if before is None:
        return head
    if not before:
        return f"{head}  // no predecessors"
    return f"{head}  // {'pred' if len(before) == 1 else f'{len(before)} preds'}: {', '.join(before)}"
