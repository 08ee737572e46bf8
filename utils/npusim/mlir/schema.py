"""What the reader drops from operations of bodies and the printer puts back: MLIR's defaults and the types of attributes.

Names and defaults are those of mlir-aie of 2026-08-14 (include/aie/Dialect/AIE/IR/AIEOps.td, AIEX/IR/AIEX.td) and of the
MLIR it is built on; the recorded modules in tests/data/reference show each of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from npusim.ir import Op
from npusim.mlir.attributes import Attribute, DenseArray, Elements, Float, Int, Pairs, Raw, Symbol
from npusim.types import Type, numpy_dtype

DIALECTS = frozenset({"arith", "math", "scf", "memref", "func", "cf", "index", "affine"})
"""Dialects of which bodies may use every operation; the core compiler says which it can run."""

CORE_OPS = frozenset(
    f"aie.{name}"
    for name in ("use_lock", "objectfifo.acquire", "objectfifo.release", "objectfifo.subview.access", "end")
) | {"aiex.read_scratchpad_parameter"}

SEQUENCE_OPS = frozenset(
    f"aiex.{name}"
    for name in (
        "dma_configure_task_for",
        "dma_start_task",
        "dma_await_task",
        "dma_free_task",
        "npu.rtp_write",
        "set_lock",
        "npu.dma_memcpy_nd",
        "npu.dma_wait",
        "npu.create_scratchpad",
        "npu.update_from_scratchpad",
        "sync_scratchpad_parameters_from_host",
    )
) | {"aie.dma_bd", "aie.next_bd", "aie.end"}

LOW_CORE_OPS = frozenset({"aie.use_lock", "aie.end", "aie.put_cascade", "aie.get_cascade"})
"""Of a compiled core."""

LOW_DIALECTS = frozenset({"vector", "aievec"})
"""The vector code of cores that MLIR-AIR compiled; read, so that the core compiler can name what it cannot run."""

LOW_SEQUENCE_OPS = SEQUENCE_OPS | {"aiex.npu.write32"}

LOW_DEVICE_OPS = frozenset({"aie.wire", "aie.external_buffer", "aie.end"})
"""Operations of a compiled device that carry nothing of the design and are passed over."""

PROPERTIES: dict[str, frozenset[str]] = {
    name: frozenset(known.split())
    for name, known in {
        "aie.logical_tile": "col row tile_type",
        "aie.tile": "col row",
        "aie.objectfifo": "sym_name elemNumber elemType consumerElemType dimensionsToStream via_DMA plio padValue "
        "dimensionsFromStreamPerConsumer disable_synchronization repeat_count iter_count prod_dma_channel "
        "cons_dma_channels initValues padDimensions operandSegmentSizes",
        "aie.objectfifo.allocate": "objFifo_name",
        "aie.objectfifo.link": "fifoIns fifoOuts src_offsets dst_offsets",
        "aie.flow": "source_bundle source_channel dest_bundle dest_channel",
        "aie.packet_flow": "ID keep_pkt_header priority_route",
        "aie.shim_dma_allocation": "sym_name channel_dir channel_index plio",
        "aie.cascade_flow": "",
        "aie.buffer": "sym_name address initial_value aligned",
        "aie.lock": "sym_name init lockID",
        "func.func": "function_type sym_name sym_visibility",
        "aie.core": "stack_size dynamic_objfifo_lowering",
        "aie.mem": "",
        "aie.memtile_dma": "",
        "aie.shim_dma": "",
        "aie.runtime_sequence": "sym_name",
        "aie.end": "",
    }.items()
}
"""The operations of a generated device and the properties that the reader understands."""

# Attributes that only repeat a default or what the operands tell; `typed` puts them back.
_DROPPED = frozenset({"overflowFlags", "fastmath", "loop_annotation", "operandSegmentSizes"})
_DROPPED_IF: dict[str, dict[str, Any]] = {
    "aie.use_lock": {"blocking": 1, "acq_en": True},
    "aie.dma_bd": {"bd_id": None, "next_bd_id": None},
}

# Defaults that a module in its own syntax leaves out and one made by the Python API spells: always there in npusim.
_FILLED: dict[str, dict[str, Any]] = {
    "aiex.dma_configure_task_for": {"issue_token": False, "repeat_count": 0},
    "aie.dma_bd": {"burst_length": 0},
}

_GROUPED = ("air.", "vector.")  # dialects whose operands come in groups; npusim counts them in the attribute "segments"

_INTEGER = frozenset(f"arith.{name}" for name in ("addi", "subi", "muli", "shli", "trunci"))
_FLOATING = frozenset(
    f"arith.{name}"
    for name in ("addf", "subf", "mulf", "divf", "remf", "negf", "cmpf", "maximumf", "minimumf", "maxnumf", "minnumf")
)

_I32, _I64, _UI32, _SYMBOL, _ARRAY = "i32", "i64", "ui32", "@", "array<i64>"
_KINDS: dict[str, dict[str, str]] = {
    "aie.objectfifo.acquire": {"objFifo_name": _SYMBOL, "port": _I32, "size": _I32},
    "aie.objectfifo.release": {"objFifo_name": _SYMBOL, "port": _I32, "size": _I32},
    "aie.objectfifo.subview.access": {"index": _I32},
    "aie.use_lock": {"action": _I32},
    "aie.dma_bd": {
        "burst_length": _I32,
        "static_len": _I32,
        "static_offset": _I32,
        "static_sizes": _ARRAY,
        "static_strides": _ARRAY,
        "pad_dimensions": "pads",
        "packet": "raw",
        "offset_parameter": _SYMBOL,
        "operandSegmentSizes": "array<i32>",
    },
    "aiex.dma_configure_task_for": {"alloc": _SYMBOL, "repeat_count": _I32},
    "aiex.npu.rtp_write": {"buffer": _SYMBOL, "index": _UI32},
    "aiex.set_lock": {"value": _I32},
    "aiex.read_scratchpad_parameter": {"parameter": _SYMBOL},
    "aiex.npu.dma_memcpy_nd": {
        "metadata": _SYMBOL,
        "packet": "raw",
        "offset_parameter": _SYMBOL,
        "operandSegmentSizes": "array<i32>",
    },
    "aiex.npu.dma_wait": {"symbol": _SYMBOL},
    "func.call": {"callee": _SYMBOL},
    "memref.collapse_shape": {"reassociation": "list"},
    "memref.expand_shape": {"reassociation": "list"},
    "affine.apply": {"map": "raw"},
    "affine.if": {"condition": "raw"},
    "air.channel.put": {"chan_name": _SYMBOL},
    "air.channel.get": {"chan_name": _SYMBOL},
    "vector.transfer_read": {"permutation_map": "raw", "in_bounds": "bools"},
    "vector.transfer_write": {"permutation_map": "raw", "in_bounds": "bools"},
    "cf.switch": {"case_values": "cases"},
}
_DYNAMIC = -(2**63)  # in an array of sizes or strides: this one is an operand


def normalise(name: str, attributes: dict[str, Any]) -> dict[str, Any]:
    """The attributes of an operation in plain values, without the defaults that say nothing and with those that do."""
    segments = attributes.get("operandSegmentSizes")
    kept = {key: value for key, value in attributes.items() if key not in _DROPPED}
    for key, default in _DROPPED_IF.get(name, {}).items():
        if default is None or kept.get(key) == default:
            kept.pop(key, None)
    if segments is not None and name in ("aie.dma_bd", "aiex.npu.dma_memcpy_nd") and sum(segments) > 1:
        kept["operandSegmentSizes"] = segments
    if segments is not None and name.startswith(_GROUPED):
        kept["segments"] = tuple(segments)
    return {**_FILLED.get(name, {}), **kept}


def typed(op: Op) -> dict[str, Attribute]:
    """The properties of an operation of a body as MLIR prints them, defaults included."""
    kinds = _KINDS.get(op.name, {})
    attributes = normalise(op.name, op.attrs)
    segments = attributes.pop("segments", None)
    props = {key: _typed(value, kinds.get(key), op) for key, value in attributes.items() if value is not None}
    if op.name in _INTEGER:
        props["overflowFlags"] = Raw("#arith.overflow<none>")
    elif op.name in _FLOATING or (op.name.startswith("math.") and "f" in str(op.result.type)):
        props["fastmath"] = Raw("#arith.fastmath<none>")
    if segments is None and "operandSegmentSizes" not in props and op.name in _SEGMENTS:
        segments = _SEGMENTS[op.name](op)
    if segments is not None:
        props["operandSegmentSizes"] = DenseArray("i32", tuple(segments))
    return props


def _typed(value: Any, kind: str | None, op: Op) -> Attribute:
    if op.name == "arith.constant":
        return constant(value, op.result.type)
    if kind == _SYMBOL:
        return Symbol(str(value))
    if kind == "raw":
        return Raw(str(value))
    if kind == "pads":
        return Pairs("bd_pad_layout_array", tuple(value))
    if kind == "bools":
        return tuple(bool(n) for n in value)
    if kind == "list":
        return tuple(tuple(Int(int(n)) for n in group) for group in value)
    if kind == "cases":
        flag = str(op.operands[0].type)
        return Elements(np.array(value, numpy_dtype(flag)), flag, "vector")
    if isinstance(value, (bool, str)):
        return value
    if isinstance(value, tuple):
        return DenseArray((kind or _ARRAY)[6:-1], tuple(int(n) for n in value))
    if isinstance(value, float):
        return Float(value)
    return Int(int(value), kind or _I64)


def constant(value: Any, type: Type) -> Attribute:
    """A constant of a scalar or vector type."""
    if isinstance(value, np.ndarray) and isinstance(type, str):
        return Elements(value, type.rpartition("x")[2].rstrip(">"), type.partition("<")[0])
    if type == "i1":
        return bool(value)
    if isinstance(type, str) and "f" in type:
        return Float(float(value), type)
    return Int(int(value), str(type))


def _dynamic(op: Op, *keys: str) -> tuple[int, ...]:
    return tuple(sum(n == _DYNAMIC for n in op.attrs.get(key, ())) for key in keys)


def _branch(op: Op) -> tuple[int, ...]:
    return (1, *(len(operands) for _, operands in op.successors))


_SEGMENTS: dict[str, Callable[[Op], tuple[int, ...]]] = {
    "aie.dma_bd": lambda op: (1, 0, 0, 0, 0),
    "aiex.npu.dma_memcpy_nd": lambda op: (1, 0, 0, 0),
    "memref.subview": lambda op: (1, *_dynamic(op, "static_offsets", "static_sizes", "static_strides")),
    "memref.reinterpret_cast": lambda op: (1, *_dynamic(op, "static_offsets", "static_sizes", "static_strides")),
    "memref.alloc": lambda op: (len(op.operands), 0),
    "memref.alloca": lambda op: (len(op.operands), 0),
    "scf.forall": lambda op: (0, 0, 0, 0),
    "cf.cond_br": _branch,
    "cf.switch": lambda op: (1, len(op.successors[0][1]), sum(len(args) for _, args in op.successors[1:])),
}
