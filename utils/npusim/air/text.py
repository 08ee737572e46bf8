"""MLIR-AIR modules as text: printed in generic form, as the real bindings print them, and read back."""

from __future__ import annotations

from collections.abc import Iterator

from npusim.air.affine import AffineMap, IntegerSet, parse_map, parse_set
from npusim.air.graph import Channel, Program
from npusim.devices import device
from npusim.errors import DesignError, UnsupportedError
from npusim.graph import Design, KernelDecl, Sequence
from npusim.ir import Op, Region, Value, walk
from npusim.mlir.attributes import Attribute, FunctionType, Int, Raw, TypeValue
from npusim.mlir.bodies import lift, lower, refuse_unknown
from npusim.mlir.emit import _kernel
from npusim.mlir.generic import Module, RawOp, ops_of, parse
from npusim.mlir.printer import print_module
from npusim.types import MemRefType

KINDS = ("launch", "segment", "herd")
OPS = frozenset(
    f"air.{name}"
    for name in (
        *(kind + end for kind in KINDS for end in ("", "_terminator")),
        "channel.put",
        "channel.get",
        "dma_memcpy_nd",
    )
)
MAPS = {"affine.apply": "map", "affine.if": "condition", "vector.transfer_read": "permutation_map"} | {
    "vector.transfer_write": "permutation_map"
}
"""Operations with an affine map or set, and the attribute that holds it."""


def print_air(design: Design) -> str:
    """The module of an AIR design in generic form."""
    assert design.air is not None
    program = design.air
    body = Region.single()
    body.entry.ops += [_kernel(k) for k in design.kernels]
    body.entry.ops += [_channel(c) for c in program.channels.values()]
    body.entry.ops.append(_function(program))
    aliases = _aliases(program.function)
    return print_module(Module(RawOp("builtin.module", regions=[body]), aliases))


def _channel(channel: Channel) -> RawOp:
    props: dict[str, Attribute] = {
        "channel_type": channel.kind,
        "size": tuple(Int(n) for n in channel.size),
        "sym_name": channel.name,
    }
    op = RawOp("air.channel", props=props)
    if channel.broadcast:
        op.attrs["broadcast_shape"] = tuple(Int(n, "index") for n in channel.broadcast)
    if channel.buffer_resources is not None:
        op.attrs["buffer_resources"] = Int(channel.buffer_resources)
    return op


def _function(program: Program) -> RawOp:
    inputs = tuple(v.type for v in program.function.entry.args)
    props: dict[str, Attribute] = {"function_type": TypeValue(FunctionType(inputs, ())), "sym_name": program.name}
    names = {text: alias for alias, text in _aliases(program.function).items()}
    op = RawOp("func.func", props=props, regions=[lower(program.function, {})])
    for inner in walk(op.regions[0]):
        assert isinstance(inner, RawOp)
        key = MAPS.get(inner.name)
        if key is not None and key in inner.props:
            inner.props[key] = Raw(names[str(inner.props[key])])
    return op


def _maps(function: Region) -> Iterator[str]:
    for op in walk(function):
        key = MAPS.get(op.name)
        if key is not None and key in op.attrs:
            yield str(op.attrs[key])


def _aliases(function: Region) -> dict[str, str]:
    """``#map``, ``#map1``, ... for maps and ``#set``, ... for sets, in the order of their first use."""
    aliases: dict[str, str] = {}
    texts = list(dict.fromkeys(_maps(function)))
    for kind in ("map", "set"):
        for i, text in enumerate(t for t in texts if t.startswith(f"affine_{kind}")):
            aliases[f"#{kind}{i or ''}"] = text
    return aliases


def read_air(text: str, on: str = "npu2", file: str = "<mlir>") -> Design:
    """The design of an AIR module in generic form, for a device.

    DesignError: the text is wrong. UnsupportedError: it uses something that npusim has no notion of, by name.
    """
    module = parse(text, file)
    if module.op.name != "builtin.module":
        raise DesignError(f"{module.op.loc}: expected builtin.module, found {module.op.name}")
    channels: dict[str, Channel] = {}
    kernels: list[KernelDecl] = []
    function: tuple[str, Region] | None = None
    for op in ops_of(module.op):
        if op.name == "air.channel":
            channels[op.need("sym_name")] = _read_channel(op)
        elif op.name == "func.func" and not op.regions[0].blocks:
            kernels.append(_read_kernel(op))
        elif op.name == "func.func" and function is None:
            function = op.need("sym_name"), _read_body(op, module.aliases)
        else:
            raise UnsupportedError(f"{op.loc}: operation {op.name} is not read in a module of MLIR-AIR")
    if function is None:
        raise DesignError("the module has no function")
    name, body = function
    program = Program(channels, body, name)
    return Design(device(on), name, kernels=kernels, sequence=Sequence(body, name), air=program)


def _read_channel(op: RawOp) -> Channel:
    plain = {key: getattr(value, "value", value) for key, value in op.attrs.items()}
    broadcast = tuple(int(n.value) for n in op.attrs.get("broadcast_shape", ()))
    depth = plain.get("buffer_resources")
    kind = str(plain.get("channel_type", op.prop("channel_type", "npu_dma_stream")))
    return Channel(op.need("sym_name"), tuple(op.prop("size", ())), broadcast, kind, depth, op.loc)


def _read_kernel(op: RawOp) -> KernelDecl:
    signature = op.need("function_type")
    link = op.attrs.get("link_with")
    return KernelDecl(op.need("sym_name"), tuple(signature.inputs), str(link) if link else None, loc=op.loc)


def _read_body(op: RawOp, aliases: dict[str, str]) -> Region:
    body = lift(op.regions[0], {}, refuse_unknown(OPS, frozenset({"vector"})))
    for inner in walk(body):
        key = MAPS.get(inner.name)
        if key is not None and key in inner.attrs:
            inner.attrs[key] = _read_map(str(inner.attrs[key]), aliases)
        if inner.name in ("air.launch", "air.segment", "air.herd") and not inner.regions[0].blocks[0].args:
            _check_arguments(inner)
    return body


def _read_map(text: str, aliases: dict[str, str]) -> AffineMap | IntegerSet:
    text = aliases.get(text, text)
    return parse_set(text) if text.startswith("affine_set") else parse_map(text)


def _check_arguments(op: Op) -> None:
    if op.operands:
        raise DesignError(f"{op.loc}: the body of {op.name} has no arguments for its {len(op.operands)} operands")


def memrefs(region: Region) -> list[Value]:
    """The arguments of a function that are arrays."""
    return [v for v in region.entry.args if isinstance(v.type, MemRefType)]
