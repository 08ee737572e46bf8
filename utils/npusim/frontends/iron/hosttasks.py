"""DMA tasks of the host sequence, as ``aie.dialects.aiex`` has them: configure, start, await, free.

A task is an operation with one buffer descriptor: ``sizes`` and ``strides`` in elements, outermost first, at most four,
filled up with ones; the outermost size is the number of times the descriptor runs (``repeat_count`` + 1), so the length
counts the inner three. Numbers may be run-time values of the sequence: i64 for sizes and strides, i32 for the rest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from npusim.errors import DesignError, UnsupportedError
from npusim.frontends import operators as ops
from npusim.frontends.tracing import DesignTypeError, emit, inside, need
from npusim.frontends.values import TracedValue
from npusim.frontends.views import DYNAMIC
from npusim.ir import Op, Region, Value
from npusim.types import MemRefType

IN_SEQUENCE = "a DMA task"


def shim_dma_single_bd_task(
    alloc: Any,
    mem: Any,
    tap: Any = None,
    offset: Any = None,
    sizes: Any = None,
    strides: Any = None,
    transfer_len: Any = None,
    issue_token: bool = False,
    burst_length: int = 0,
    packet: Any = None,
    offset_parameter: str | None = None,
) -> Op:
    """Configure (not start) the transfer of a host array through the shim channel that ``alloc`` (a fifo's name) means."""
    need(IN_SEQUENCE, "sequence")
    offset, sizes, strides = _pattern("shim_dma_single_bd_task", tap, offset, sizes, strides, fill_up=True)
    repeat = 0
    repeat_value: tuple[Value, ...] = ()
    if sizes and ops.is_scalar(sizes[0]):
        repeat_value = (_minus_one(sizes[0]).value,)
    elif sizes and sizes[0] > 1:
        repeat = int(sizes[0]) - 1
    name = alloc if isinstance(alloc, str) else alloc.name
    task = emit(
        "aiex.dma_configure_task_for",
        repeat_value,
        ("index",),
        regions=[Region.single()],
        alloc=name,
        issue_token=bool(issue_token),
        repeat_count=repeat,
    )
    with inside(task, task.regions[0]):
        shim_dma_bd(mem, None, offset, sizes, strides, transfer_len, burst_length, packet, offset_parameter)
        emit("aie.end")
    return task


def _minus_one(size: Any) -> Any:
    """The repeat count of a run-time number of passes, as i32."""
    if size.dtype != "i32":
        size = ops.cast("trunci", size, "i32")
    return ops.binary("sub", size, 1)


def shim_dma_bd(
    mem: Any,
    tap: Any = None,
    offset: Any = None,
    sizes: Any = None,
    strides: Any = None,
    transfer_len: Any = None,
    burst_length: int = 0,
    packet: Any = None,
    offset_parameter: str | None = None,
) -> None:
    """The buffer descriptor of a shim task: what is walked of the host array ``mem``."""
    buffer = _host_array(mem)
    offset, sizes, strides = _pattern("shim_dma_bd", tap, offset, sizes, strides, fill_up=False)
    if sizes is None:
        raise UnsupportedError(
            "a shim transfer without sizes is not served (the real one moves nothing): give sizes=[1, 1, 1, n], or a tap"
        )
    strides = [0, 0, 0, 1][-len(sizes) :] if strides is None else strides
    if len(sizes) != len(strides):
        raise DesignError(f"a transfer needs as many strides as sizes, got sizes {sizes} and strides {strides}")
    length = _product(sizes[-3:]) if transfer_len is None else transfer_len
    moving: list[Value] = []
    attrs: dict[str, Any] = {
        "static_offset": _static(0 if offset is None else offset, moving, "i32"),
        "static_len": _static(length, moving, "i32"),
        "static_sizes": tuple(_static(s, moving, "i64", DYNAMIC) for s in sizes),
        "static_strides": tuple(_static(s, moving, "i64", DYNAMIC) for s in strides),
        "burst_length": burst_length,
    }
    if packet is not None:
        kind, number = packet
        attrs["packet"] = f"#aie.packet_info<pkt_type = {int(kind)}, pkt_id = {int(number)}>"
    if offset_parameter is not None:
        attrs["offset_parameter"] = offset_parameter
    if moving:
        counts = [1, *(int(ops.is_scalar(x)) for x in (offset, length))]
        attrs["operandSegmentSizes"] = (*counts, *(sum(map(ops.is_scalar, each)) for each in (sizes, strides)))
    emit("aie.dma_bd", (buffer, *moving), **{k: v for k, v in attrs.items() if v is not None})


def _pattern(who: str, tap: Any, offset: Any, sizes: Any, strides: Any, *, fill_up: bool) -> tuple[Any, Any, Any]:
    """Offset, sizes and strides of a pattern given as a tap or one by one; with ``fill_up``, of four dimensions."""
    if tap is not None:
        if not (offset is None and sizes is None and strides is None):
            raise DesignError(f"{who} takes a tap or sizes, strides and offset, not both")
        offset, sizes, strides = int(tap.offset), list(tap.sizes), list(tap.strides)
    sizes = None if sizes is None else [_entry(s, "size") for s in sizes]
    strides = None if strides is None else [_entry(s, "stride") for s in strides]
    if fill_up and sizes is not None:
        if len(sizes) > 4:
            raise DesignError(f"a shim transfer has at most 4 dimensions, got {len(sizes)}: sizes {sizes}")
        missing = 4 - len(sizes)
        sizes = [1] * missing + sizes
        strides = None if strides is None else [0] * missing + strides
    return None if offset is None else _entry(offset, "offset"), sizes, strides


def _entry(x: Any, what: str) -> Any:
    if ops.is_scalar(x):
        return x
    if isinstance(x, bool) or not isinstance(x, (int, np.integer)):
        raise DesignTypeError(f"the {what} {x!r} of a transfer must be an int or a run-time integer of the sequence")
    return int(x)


def _product(sizes: Sequence[Any]) -> Any:
    if not any(ops.is_scalar(s) for s in sizes):
        return math.prod(sizes)
    product, *rest = sizes
    for size in rest:
        product = product * size
    return product


def _static(x: Any, moving: list[Value], kind: str, mark: int | None = None) -> int | None:
    """A number for its attribute; a run-time value goes to the operands and leaves ``mark`` (None: no attribute)."""
    if not ops.is_scalar(x):
        return int(x)
    if x.dtype != kind:
        raise DesignError(
            f"a run-time {x.dtype} in a transfer: offset and length must be i32, sizes and strides i64; convert it with "
            f"arith.index_cast(x, to={kind}), arith.extsi or arith.trunci from aie.extras.dialects"
        )
    moving.append(x.value)
    return mark


def _host_array(mem: Any) -> Value:
    value = getattr(mem, "op", mem)
    if not isinstance(value, TracedValue) or not isinstance(value.type, MemRefType):
        raise DesignError(f"expected a host array (an argument of the sequence that is a tensor), got {mem!r}")
    return value.value


def _tasks(tasks: tuple[Any, ...], what: str) -> list[Value]:
    if not tasks:
        raise DesignError(f"{what} needs at least one task")
    return [_task_value(t, what) for t in tasks]


def _task_value(task: Any, what: str) -> Value:
    if isinstance(task, Op) and task.results:
        return task.result
    if isinstance(task, TracedValue):
        return task.value
    raise DesignTypeError(f"{what} needs a task that was configured in this sequence, got {task!r}")


def dma_start_task(*args: Any) -> None:
    """Push tasks on their channels' queues."""
    for task in _tasks(args, "dma_start_task"):
        emit("aiex.dma_start_task", (task,))


def dma_await_task(*args: Any) -> None:
    """Wait until tasks are done; they must have been configured with a token."""
    for task in _tasks(args, "dma_await_task"):
        _check_token(task)
        emit("aiex.dma_await_task", (task,))


def dma_free_task(*args: Any) -> None:
    """Give the buffer descriptors of tasks back."""
    for task in _tasks(args, "dma_free_task"):
        emit("aiex.dma_free_task", (task,))


def _check_token(task: Value) -> None:
    """Refuse to wait for a task that issues no token, or twice in one block."""
    owner = task.owner
    if not isinstance(owner, Op) or not owner.name.startswith("aiex.dma_configure_task"):
        return
    if not owner.attrs.get("issue_token"):
        raise DesignError(
            f"the transfer started at {owner.loc} is awaited but issues no token: start it with wait=True "
            "(issue_token=True in aiex)"
        )
    block = need(IN_SEQUENCE, "sequence").block
    if any(op.name == "aiex.dma_await_task" and op.operands[0] is task for op in block.ops):
        raise DesignError(f"the transfer started at {owner.loc} is awaited twice: its token comes once")
