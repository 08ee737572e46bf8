"""``split`` and ``join``: making the fifos on the other side of a link."""

from __future__ import annotations

from typing import Any

from npusim.errors import DesignError
from npusim.frontends.iron.handle import ObjectFifoHandle
from npusim.frontends.iron.link import ObjectFifoLink
from npusim.frontends.iron.objectfifo import ObjectFifo


def split(
    whole: ObjectFifoHandle,
    offsets: list[int],
    tile: Any,
    plio: bool,
    depths: Any,
    obj_types: Any,
    names: Any,
    dims_to_stream: Any,
    dims_from_stream: Any,
    repeat_counts: Any,
    pad_dimensions: Any,
    pad_value: Any,
) -> list[ObjectFifo]:
    """See :meth:`ObjectFifoHandle.split`; DesignError if a list does not have one entry for each offset."""
    if whole._is_prod:
        raise DesignError(f"split() works on a consumer's handle: write {whole.name}.cons().split(...)")
    count, parent = len(offsets), whole._object_fifo
    columns = {
        "depth": _each("depths", depths, [whole.depth] * count, whole),
        "obj_type": _each("obj_types", obj_types, [parent.obj_type] * count, whole),
        "name": _each("names", names, [f"{whole.name}_split{i}" for i in range(count)], whole),
        "dims_to_stream": _each("dims_to_stream", dims_to_stream, [[]] * count, whole),
        "dims_from_stream_per_cons": _each("dims_from_stream", dims_from_stream, [[]] * count, whole),
        "repeat_count": _each("repeat_counts", repeat_counts, [None] * count, whole),
        "pad_dimensions": _each("pad_dimensions", pad_dimensions, [None] * count, whole),
        "pad_value": _each("pad_value", pad_value, [0] * count, whole),
    }
    parts = [ObjectFifo(plio=plio, **{key: column[i] for key, column in columns.items()}) for i in range(count)]
    ObjectFifoLink(whole, [part.prod() for part in parts], tile, [], offsets)
    return parts


def join(
    whole: ObjectFifoHandle,
    offsets: list[int],
    tile: Any,
    depths: Any,
    obj_types: Any,
    names: Any,
    dims_to_stream: Any,
    dims_from_stream: Any,
    plio: bool,
    repeat_counts: Any,
) -> list[ObjectFifo]:
    """See :meth:`ObjectFifoHandle.join`; DesignError if a list does not have one entry for each offset."""
    if not whole._is_prod:
        raise DesignError(f"join() works on the producer's handle: write {whole.name}.prod().join(...)")
    count, parent = len(offsets), whole._object_fifo
    columns = {
        "depth": _each("depths", depths, [whole.depth] * count, whole),
        "obj_type": _each("obj_types", obj_types, [parent.obj_type] * count, whole),
        "name": _each("names", names, [f"{whole.name}_join{i}" for i in range(count)], whole),
        "dims_to_stream": _each("dims_to_stream", dims_to_stream, [[]] * count, whole),
        "repeat_count": _each("repeat_counts", repeat_counts, [None] * count, whole),
    }
    incoming = _each("dims_from_stream", dims_from_stream, [[]] * count, whole)
    parts = [ObjectFifo(plio=plio, **{key: column[i] for key, column in columns.items()}) for i in range(count)]
    ends = [part.cons(depth=columns["depth"][i], dims_from_stream=incoming[i]) for i, part in enumerate(parts)]
    ObjectFifoLink(ends, whole, tile, offsets, [])
    return parts


def _each(name: str, given: Any, default: list[Any], whole: ObjectFifoHandle) -> list[Any]:
    if given is None:
        return default
    if len(given) != len(default):
        raise DesignError(
            f"{name} of a split or join of {whole.name!r} has {len(given)} entries for {len(default)} offsets: give one each"
        )
    return list(given)
