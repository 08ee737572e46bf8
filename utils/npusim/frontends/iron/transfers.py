"""``fill`` and ``drain``: transfers between host arrays and fifos in the host sequence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from npusim.errors import DesignError, UnsupportedError
from npusim.frontends.iron import sequence
from npusim.frontends.iron.endpoint import RuntimeEndpoint
from npusim.frontends.iron.hosttasks import dma_start_task, shim_dma_single_bd_task
from npusim.frontends.tracing import here
from npusim.messages import explain

if TYPE_CHECKING:
    from npusim.frontends.iron.handle import ObjectFifoHandle
    from npusim.frontends.iron.task import Task


class Pattern(NamedTuple):
    """What is walked of the host array: a tap, or sizes, strides, offset and length, or (all None) the whole array."""

    tap: Any
    sizes: Any
    strides: Any
    offset: Any
    transfer_len: Any

    @property
    def explicit(self) -> bool:
        return any(x is not None for x in self[1:])


def start(
    handle: ObjectFifoHandle,
    data: Any,
    pattern: Pattern,
    wait: bool,
    packet: Any,
    offset_parameter: Any,
    group: Any,
    managed: bool,
    verb: str,
) -> Task:
    """Start a transfer; a managed one is awaited (``wait``) and freed by its TaskGroup, or at the sequence's end."""
    from npusim.frontends.iron.task import Task, TaskGroup

    active = sequence.active(f"{verb}() of ObjectFifo {handle.name!r}")
    if packet is not None:
        raise UnsupportedError(
            f"{verb}() of {handle.name!r}: packet= needs packet-switched ObjectFifos (--packet-sw-objFifos), which are not "
            "served; use PacketFlow and TileDma, and a task of aie.dialects.aiex"
        )
    _check_direction(handle, verb)
    _check_data(active, data, handle, verb)
    if pattern.tap is not None and pattern.explicit:
        raise DesignError(f"{verb}() of {handle.name!r}: give a tap or sizes, strides, offset, transfer_len, not both")
    if not managed and group is not None:
        raise DesignError(f"{verb}() of {handle.name!r}: an unmanaged transfer is in no TaskGroup, so give no group=")
    if group is not None and not isinstance(group, TaskGroup):
        raise DesignError(f"{verb}() of {handle.name!r}: group= must be a TaskGroup, got {group!r}")
    if pattern.tap is None and not pattern.explicit:
        pattern = pattern._replace(tap=data.default_tap())
    _bind(handle, verb)
    active.runtime._fifos.setdefault(handle)
    task = shim_dma_single_bd_task(
        handle.name,
        data,
        tap=pattern.tap,
        offset=pattern.offset,
        sizes=pattern.sizes,
        strides=pattern.strides,
        transfer_len=pattern.transfer_len,
        issue_token=bool(wait),
        offset_parameter=active.parameter(offset_parameter),
    )
    dma_start_task(task)
    if managed:
        active.enroll(task, bool(wait), group)
    return Task(sequence.result(task))


def _check_direction(handle: ObjectFifoHandle, verb: str) -> None:
    if handle._is_prod != (verb == "fill"):
        right, call = ("producer", "prod()") if verb == "fill" else ("consumer", "cons()")
        raise DesignError(
            explain(
                f"{verb}() is called on the {handle.handle_type} handle of ObjectFifo {handle.name!r}.",
                phrase=f"{verb}() is only valid on a {right} ObjectFifoHandle",
                hint=f"give Runtime {handle.name}.{call}, and call {verb}() on that.",
                loc=here(),
            )
        )


def _check_data(active: sequence.ActiveSequence, data: Any, handle: ObjectFifoHandle, verb: str) -> None:
    from npusim.frontends.iron.runtime import RuntimeData

    if not isinstance(data, RuntimeData):
        raise DesignError(
            f"{verb}() of {handle.name!r} expected a RuntimeData (a host array: an argument of the sequence function that "
            f"Runtime declares by its type), got {data!r}"
        )
    if not any(data is known for known in active.runtime._rt_data):
        raise DesignError(
            f"{verb}() of {handle.name!r}: this RuntimeData does not belong to the Runtime being resolved"
        )


def _bind(handle: ObjectFifoHandle, verb: str) -> None:
    if handle.endpoint is None:
        handle.endpoint = RuntimeEndpoint(handle._shim_tile)
    elif not isinstance(handle.endpoint, RuntimeEndpoint):
        raise DesignError(
            f"{verb}() on the {handle.handle_type} handle of ObjectFifo {handle.name!r}, which is already used by a worker "
            "or a link: only an end that Runtime was given can be driven by the host"
        )
