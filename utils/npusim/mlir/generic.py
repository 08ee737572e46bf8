"""A reader of MLIR's generic form (``mlir-opt --mlir-print-op-generic``), without knowledge of dialects.

``parse`` gives the same structures that the rest of npusim uses (:mod:`npusim.ir`): operations with regions, blocks and
successors, values as objects, each operation with the line it stands on. What only MLIR distinguishes, properties
``<{...}>`` and other attributes ``{...}``, is kept apart in :class:`RawOp`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn, cast

from npusim.errors import DesignError
from npusim.ir import Block, Loc, Op, Region, Value
from npusim.mlir.attributes import Attribute, FunctionType, plain
from npusim.mlir.text import Cursor
from npusim.mlir.values import dictionary_at, function_type_at, type_at, unquoted
from npusim.types import Type

_RESULTS = re.compile(r"%[\w$.-]+(?::\d+)?(?:\s*,\s*%[\w$.-]+(?::\d+)?)*\s*=")
_NAME = re.compile(r'"((?:[^"\\\n]|\\.)+)"\s*\(')
_OPERANDS = re.compile(r"\s*(%[\w$.-]+(?:#\d+)?(?:\s*,\s*%[\w$.-]+(?:#\d+)?)*)?\s*\)")
_SUCCESSORS = re.compile(r"\[\s*(\^[\w$.-]+(?:\s*,\s*\^[\w$.-]+)*)\s*\]")
_FLAT = re.compile(r'[^{}"]*(?:"[^"\\\n]*"[^{}"]*)*\}')  # a dictionary's rest, if no dictionary is in it
_LABEL = re.compile(r"(\^[\w$.-]+)\s*([:(])")
_ARGUMENT = re.compile(r"(%[\w$.-]+)\s*:")
_ALIAS = re.compile(r"([#!][\w$.]+)\s*=\s*([^\n]*)")
_REST = re.compile(r"[^\n]*")
_LOCATION = re.compile(r'loc\("((?:[^"\\\n]|\\.)*)":(\d+):\d+')
_OPERATION = 'an operation as --mlir-print-op-generic prints it, "dialect.name"(...)'
_FORWARD = "forward"  # owner of a value that is not yet defined


@dataclass
class _Pending:
    """A use before its definition: the stand-in, where it was first used, and in how deep a region."""

    value: Value
    at: int
    depth: int


@dataclass(eq=False)
class RawOp(Op):
    """An operation as read: ``props`` are its properties, ``attrs`` its other attributes, values of mlir.attributes."""

    props: dict[str, Attribute] = field(default_factory=dict)

    def prop(self, name: str, default: Any = None) -> Any:
        """The plain Python value of a property."""
        return plain(self.props[name]) if name in self.props else default

    def need(self, name: str) -> Any:
        """The same of a property that must be there; DesignError if it is not."""
        if name not in self.props:
            raise DesignError(f"{self.loc}: {self.name} lacks its property {name}")
        return plain(self.props[name])


@dataclass(eq=False)
class Module:
    """A file: the aliases it defines (``#map = affine_map<...>``), as text, and its top operation."""

    op: RawOp
    aliases: dict[str, str] = field(default_factory=dict)
    file: str = "<mlir>"


def parse(text: str, file: str = "<mlir>") -> Module:
    """Read one module in generic form. A DesignError names the line and the token that does not fit."""
    return _Reader(text, file).module()


def ops_of(op: Op) -> Iterator[RawOp]:
    """The operations directly inside an operation, all regions and blocks in order."""
    for region in op.regions:
        for block in region.blocks:
            yield from cast(list[RawOp], block.ops)


class _Reader:
    """The state of one parse: the cursor and the values in scope."""

    def __init__(self, text: str, file: str) -> None:
        self.at = Cursor(text, file)
        self.values: dict[str, Value] = {}  # "%0", and "%0#1" for the second result of "%0:2 ="
        self.pending: dict[str, _Pending] = {}  # used, but not yet defined
        self.depth = 0  # regions entered
        self.blocks: dict[str, tuple[Block, int]] = {}  # of the region being read, with the place of the first mention
        self.dictionaries: dict[str, dict[str, Attribute]] = {}
        self.function_types: dict[str, FunctionType] = {}

    def module(self) -> Module:
        aliases: dict[str, str] = {}
        while self.at.peek() in ("#", "!"):
            name, text = self.at.need(_ALIAS, "name = value of an alias").groups()
            aliases[name] = text.rstrip()
        op = self.operation()
        for name, use in self.pending.items():
            self.fail(use.at, f"a definition of {name}")
        while self.at.peek() == "#":  # locations are defined at the end
            self.at.need(_ALIAS, "the definition of a location")
        if self.at.peek():
            self.at.fail("the end of the module")
        return Module(op, aliases, self.at.file)

    def operation(self) -> RawOp:
        at = self.at
        results = self.result_names() if at.peek() == "%" else []
        begin = at.pos
        name = at.need(_NAME, _OPERATION).group(1)
        loc = Loc(at.file, at.line(begin))
        operands = self.operands()
        op = RawOp(name, operands, loc=loc)
        if at.peek() == "[":
            labels = at.need(_SUCCESSORS, "successors [^a, ^b]").group(1)
            op.successors = [(self.block(label.strip()), ()) for label in labels.split(",")]
        if at.take("<{"):
            op.props = self.dictionary()
            at.expect(">")
        if at.peek() == "(":
            op.regions = self.regions()
        if at.take("{"):
            op.attrs = self.dictionary()
        at.expect(":")
        signature = self.signature()
        if at.peek() == "l" and at.text.startswith("loc(", at.pos):
            op.loc = self.location(loc)
        self.check_operands(op, signature, begin)
        self.define_results(op, results, signature, begin)
        return op

    def result_names(self) -> list[tuple[str, int]]:
        text = self.at.need(_RESULTS, "results followed by '='").group()[:-1]
        names = []
        for part in text.split(","):
            name, _, count = part.strip().partition(":")
            names.append((name, int(count or 1)))
        return names

    def operands(self) -> tuple[Value, ...]:
        begin = self.at.pos
        names = self.at.need(_OPERANDS, "operands %a, %b followed by ')'").group(1)
        return tuple(self.use(n.strip(), begin) for n in names.split(",")) if names else ()

    def use(self, name: str, at: int) -> Value:
        """The value of that name, or a stand-in that its later definition fills."""
        value = self.values.get(name)
        if value is None:
            value = self.pending.setdefault(name, _Pending(Value("", _FORWARD), at, self.depth)).value
        return value

    def define(self, name: str, type: Type, owner: object, at: int) -> Value:
        if name in self.values:
            self.fail(at, f"a new name for a value; {name} is defined already")
        used = self.pending.get(name)
        if used is None or used.depth < self.depth:
            value = Value(type, owner)
        else:
            value = self.pending.pop(name).value
            if value.type != type:
                self.fail(at, f"{name} to have type {value.type}, as used above, not {type}")
            value.owner = owner
        self.values[name] = value
        return value

    def define_results(self, op: RawOp, names: list[tuple[str, int]], signature: FunctionType, at: int) -> None:
        types = signature.results
        if not names:
            op.results = [Value(t, op) for t in types]
            return
        if sum(count for _, count in names) != len(types):
            self.fail(at, f"as many results as types; {op.name} has {len(types)} types")
        keys = [n if c == 1 else f"{n}#{i}" for n, c in names for i in range(c)]
        op.results = [self.define(key, t, op, at) for key, t in zip(keys, types)]

    def check_operands(self, op: RawOp, signature: FunctionType, at: int) -> None:
        types = signature.inputs
        if len(types) != len(op.operands):
            self.fail(at, f"{len(types)} operands for the types of {op.name}, which has {len(op.operands)}")
        for i, (value, type) in enumerate(zip(op.operands, types)):
            if value.type is not type and value.type != type:
                if value.owner is not _FORWARD or value.type != "":
                    self.fail(at, f"operand {i} of {op.name} to have its type {value.type}, not {type}")
                value.type = type

    def fail(self, at: int, expected: str) -> NoReturn:
        """Fail at a place passed already."""
        self.at.pos = at
        self.at.fail(expected)

    def dictionary(self) -> dict[str, Attribute]:
        """Attributes after the opening brace. Modules repeat themselves much, so a text is read once."""
        match = _FLAT.match(self.at.text, self.at.pos)
        if match is None:
            return dictionary_at(self.at)
        known = self.dictionaries.get(match.group())
        if known is None:
            known = dictionary_at(self.at)
            if self.at.pos == match.end():
                self.dictionaries[match.group()] = known
        else:
            self.at.pos = match.end()
        return dict(known)

    def signature(self) -> FunctionType:
        """The function type that ends an operation, read once for each text that runs to the end of its line."""
        self.at.peek()
        match = _REST.match(self.at.text, self.at.pos)
        assert match is not None  # the pattern matches the empty text
        known = self.function_types.get(match.group())
        if known is not None:
            self.at.pos = match.end()
            return known
        read = function_type_at(self.at)
        if self.at.pos == match.end():
            self.function_types[match.group()] = read
        return read

    def location(self, loc: Loc) -> Loc:
        """Step over ``loc(...)``; the place it names if it names a file."""
        named = _LOCATION.match(self.at.text, self.at.pos)
        self.at.expect("loc")
        self.at.balanced()
        return Loc(unquoted(f'"{named.group(1)}"'), int(named.group(2))) if named else loc

    def regions(self) -> list[Region]:
        self.at.expect("(")
        regions = [self.region()]
        while self.at.take(","):
            regions.append(self.region())
        self.at.expect(")")
        return regions

    def region(self) -> Region:
        self.at.expect("{")
        outer = self.values, self.blocks
        self.values, self.blocks = dict(self.values), {}
        self.depth += 1
        region = Region()
        if self.at.peek() not in ("^", "}"):
            region.blocks.append(self.body(Block()))
        while not self.at.take("}"):
            region.blocks.append(self.body(self.label()))
        placed = set(map(id, region.blocks))
        for label, (block, at) in self.blocks.items():
            if id(block) not in placed:
                self.fail(at, f"a block {label} in this region")
        self.values, self.blocks = outer
        self.depth -= 1
        for use in self.pending.values():  # what this region did not define, an outer one may
            use.depth = min(use.depth, self.depth)
        return region

    def block(self, label: str) -> Block:
        if label not in self.blocks:
            self.blocks[label] = (Block(), self.at.pos)
        return self.blocks[label][0]

    def label(self) -> Block:
        begin = self.at.pos
        label, mark = self.at.need(_LABEL, "a block label").groups()
        block = self.block(label)
        if block.ops or block.args:
            self.fail(begin, f"a new label; {label} is defined already")
        while mark == "(" and not self.at.take(")"):
            if block.args:
                self.at.expect(",")
            name = self.at.need(_ARGUMENT, "a block argument").group(1)
            block.args.append(self.define(name, type_at(self.at), block, begin))
        if mark == "(":
            self.at.expect(":")
        return block

    def body(self, block: Block) -> Block:
        while self.at.peek() not in ("^", "}", ""):
            block.ops.append(self.operation())
        return block
