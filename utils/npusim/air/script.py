"""The transfers of a projection as a Python generator: loops run, indices computed, one tuple for each transfer.

A tuple is the number of the ``air.put`` or ``air.get`` in the projection, followed by the entries that were not known before.
For a core, the places where it lets go of a buffer (``air.release``) and where it takes another copy (``memref.alloc`` of a
doubled buffer) are followed as well, so that each get can say which copy of its buffer it fills, and how often that copy
must have been let go of before: these two numbers come first then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from npusim.air.moves import Moved
from npusim.air.project import Projection
from npusim.engine import arith
from npusim.errors import UnsupportedError
from npusim.ir import Block, Op, Value

Ids = tuple[int, ...]
Event = tuple[int, ...]
Script = Callable[[Any], Iterator[Event | None]]
"""Takes a queue of launch ids. Gives the transfers of one launch after the other, and None when the queue is empty."""

_MOVES = ("air.put", "air.get", "air.send", "air.receive")  # the last two along the cascade


def script(of: Projection, *, only: str | None = None, follow: Sequence[tuple[Value, int]] = ()) -> Script:
    """The generator function of a projection's transfers; ``only`` keeps puts or gets.

    ``follow`` are buffers (as values of the projection) with their number of copies. UnsupportedError if a transfer depends on
    what memory holds.
    """
    writer = _Writer(of, only, dict(follow))
    source = writer.source()
    code = compile(source, "<transfers>", "exec")
    space = dict(arith.HELPERS) | writer.constants
    exec(code, space)
    made: Script = space["transfers"]
    return made


class _Writer:
    def __init__(self, of: Projection, only: str | None, follow: dict[Value, int]) -> None:
        self.of, self.only = of, only
        self.numbers = {op: i for i, op in enumerate(of.moves)}
        self.names: dict[Value, str] = {}
        self.constants: dict[str, Any] = {}
        self.lines: list[str] = []
        self.follow = {value: (i, copies) for i, (value, copies) in enumerate(follow.items())}
        self.wanted = self._wanted()

    def source(self) -> str:
        entry = self.of.region.entry
        self.line(0, "def transfers(queue):")
        for i, copies in self.follow.values():
            self.line(1, f"c{i}, f{i}, r{i} = 0, [0] * {copies}, [0] * {copies}")
        self.line(1, "while True:")
        self.line(2, "if not queue:")
        self.line(3, "yield None")
        self.line(3, "continue")
        ids = [self.new(v) for v in entry.args]
        self.line(2, f"{', '.join(ids) + ', = ' if ids else ''}queue.popleft()")
        self.block(entry, 2)
        return "\n".join(self.lines)

    def line(self, depth: int, text: str) -> None:
        self.lines.append(" " * depth + text)

    def new(self, value: Value) -> str:
        self.names[value] = f"v{len(self.names)}"
        return self.names[value]

    def name(self, value: Value, op: Op) -> str:
        if value in self.names:
            return self.names[value]
        owner = value.owner
        if isinstance(owner, Op) and owner.name == "arith.constant":
            number = arith.constant(owner)
            if isinstance(number, int):
                return str(number)
            self.constants[f"k{len(self.constants)}"] = number
            self.names[value] = f"k{len(self.constants) - 1}"
            return self.names[value]
        raise UnsupportedError(
            f"{op.attrs.get('move', op.name)} at {op.loc} depends on what memory holds, which is not "
            "served: what moves must be known from loop counters and ids"
        )

    # -- which scalars are needed

    def _wanted(self) -> set[Value]:
        wanted: set[Value] = set()
        for op in self._every(self.of.region.entry):
            if op.name in _MOVES and self._keeps(op):
                wanted.update(op.attrs["move"].dynamic)
            elif op.regions and self._relevant(op):
                wanted.update(op.operands)
        work = list(wanted)
        while work:
            owner = work.pop().owner
            if isinstance(owner, Op) and owner.name in arith.SERVED:
                fresh = set(owner.operands) - wanted
                wanted |= fresh
                work += fresh
        return wanted

    def _every(self, block: Block) -> Iterator[Op]:
        for op in block.ops:
            yield op
            for region in op.regions:
                for inner in region.blocks:
                    yield from self._every(inner)

    def _keeps(self, op: Op) -> bool:
        return op in self.numbers and (self.only is None or op.name == f"air.{self.only}")

    def _relevant(self, op: Op) -> bool:
        """Whether an operation has something in it that this script follows."""
        if op.name in _MOVES:
            return self._keeps(op)
        if op.name == "air.release" or op.name == "memref.alloc":
            value = op.operands[0] if op.operands else op.result
            return value in self.follow
        return any(self._relevant(inner) for region in op.regions for block in region.blocks for inner in block.ops)

    # -- writing

    def block(self, block: Block, depth: int) -> None:
        begin = len(self.lines)
        for op in block.ops:
            self.op(op, depth)
        if len(self.lines) == begin:
            self.line(depth, "pass")

    def op(self, op: Op, depth: int) -> None:
        if op.name in arith.SERVED:
            if op.result in self.wanted:
                names = [self.name(v, op) for v in op.operands]
                self.line(depth, f"{self.new(op.result)} = {arith.expression(op, names)}")
        elif not self._relevant(op):
            return
        elif op.name in _MOVES:
            self._transfer(op, depth)
        elif op.name == "air.release":
            i, copies = self.follow[op.operands[0]]
            self.line(depth, f"if f{i}[c{i}]: f{i}[c{i}] = 0; r{i}[c{i}] += 1")
        elif op.name == "memref.alloc":
            i, copies = self.follow[op.result]
            if copies > 1:
                self.line(depth, f"c{i} = (c{i} + 1) % {copies}")
        elif op.name == "scf.for":
            self._loop(op, depth)
        elif op.name == "scf.if":
            self._branch(op, depth)
        else:
            raise UnsupportedError(f"transfers inside of {op.name} at {op.loc} are not served")

    def _transfer(self, op: Op, depth: int) -> None:
        move: Moved = op.attrs["move"]
        parts = [str(self.numbers[op])]
        if move.memref in self.follow:
            i, _ = self.follow[move.memref]
            parts += [f"c{i}", f"r{i}[c{i}]"]
            if op.name == "air.get":
                self.line(depth, f"f{i}[c{i}] = 1")
        elif self.follow:
            parts += ["0", "0"]
        parts += [self.name(v, op) for v in move.dynamic]
        self.line(depth, f"yield ({', '.join(parts)},)")

    def _loop(self, op: Op, depth: int) -> None:
        if op.results and any(v in self.wanted for v in (*op.results, *op.regions[0].entry.args[1:])):
            raise UnsupportedError(f"transfers that depend on what the loop at {op.loc} carries are not served")
        bounds = ", ".join(self.name(v, op) for v in op.operands[:3])
        self.line(depth, f"for {self.new(op.regions[0].entry.args[0])} in range({bounds}):")
        self.block(op.regions[0].entry, depth + 1)

    def _branch(self, op: Op, depth: int) -> None:
        self.line(depth, f"if {self.name(op.operands[0], op)}:")
        self.block(op.regions[0].entry, depth + 1)
        if op.regions[1].blocks and any(map(self._relevant, op.regions[1].entry.ops)):
            self.line(depth, "else:")
            self.block(op.regions[1].entry, depth + 1)
