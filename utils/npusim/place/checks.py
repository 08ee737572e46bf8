"""Rules that a fifo must keep wherever it is placed.

Source: mlir-aie's ObjectFifoCreateOp and ObjectFifoAllocateOp verifiers (lib/Dialect/AIE/IR/AIEDialect.cpp, August 2026).
"""

from __future__ import annotations

from collections.abc import Iterable

from npusim.errors import DesignError
from npusim.graph import Design, Fifo
from npusim.messages import count, explain


def check_fifos(design: Design) -> None:
    """Raise DesignError for the first fifo that breaks a rule."""
    _check_names(design)
    for fifo in design.fifos:
        _check_ends(fifo)
        _check_depth(fifo)
        _check_transforms(fifo)
        _check_repeats(fifo)
        _check_initial(fifo)
        _check_padding(design, fifo)
        _check_consumer_type(fifo)
        _check_delegate(fifo)


def _refuse(
    fifo: Fifo, problem: str, *, phrase: str | None = None, hint: str, details: Iterable[str] = ()
) -> DesignError:
    return DesignError(
        explain(f"fifo {fifo.name!r} {problem}", details=details, phrase=phrase, hint=hint, loc=fifo.loc)
    )


def _check_names(design: Design) -> None:
    seen: dict[str, Fifo] = {}
    for fifo in design.fifos:
        if fifo.name in seen:
            raise _refuse(
                fifo,
                "exists twice; every fifo needs its own name.",
                details=[f"the other one: {seen[fifo.name].loc}"],
                hint="give one of them another name=.",
            )
        seen[fifo.name] = fifo


def _check_ends(fifo: Fifo) -> None:
    if not fifo.consumers:
        raise _refuse(
            fifo,
            "has no consumer.",
            phrase="Cons endpoint not set",
            hint="pass its cons() to a worker, or drain it in the host sequence.",
        )
    at_host = sum(tile.kind == "shim" for tile in fifo.consumers)
    if at_host > 1:
        raise _refuse(
            fifo,
            f"has {at_host} consumers on the host's side; a transfer names its fifo, so there can be one.",
            phrase=f"redefinition of symbol named '{fifo.name}_shim_alloc'",
            hint="drain one handle, or give the host two fifos.",
        )


def _check_depth(fifo: Fifo) -> None:
    depths = (fifo.depth,) if isinstance(fifo.depth, int) else fifo.depth
    if not isinstance(fifo.depth, int) and len(depths) != len(fifo.consumers) + 1:
        raise _refuse(
            fifo,
            f"gives {count(len(depths), 'depth')} for a producer and {count(len(fifo.consumers), 'consumer')}.",
            phrase="does not have enough depths specified for producer and for each consumer.",
            hint="give one depth, or one for the producer and one for each consumer.",
        )
    if any(d < 1 for d in depths):
        raise _refuse(
            fifo,
            f"has a depth of {min(depths)}; a fifo needs at least one buffer.",
            phrase=f"Default ObjectFifo depth must be > 0, but got {min(depths)}",
            hint="depth 1 is a single buffer, depth 2 (the default) lets both sides work at once.",
        )


def _check_transforms(fifo: Fifo) -> None:
    if fifo.producer.kind == "shim" and fifo.to_stream:
        raise _refuse(
            fifo,
            "has dims_to_stream, but its producer is the host.",
            phrase="`dimensionsToStream` data layout transformations are not supported on shim tile producers",
            hint="give the access pattern with the transfer: handle.fill(array, tap=...).",
        )
    for consumer, dims in zip(fifo.consumers, fifo.from_stream, strict=False):
        if consumer.kind == "shim" and dims:
            raise _refuse(
                fifo,
                "has dims_from_stream, but its consumer is the host.",
                phrase="`dimensionsFromStreamPerConsumer` data layout transformations are not supported on shim tile "
                "consumers",
                hint="give the access pattern with the transfer: handle.drain(array, tap=...).",
            )


def _check_repeats(fifo: Fifo) -> None:
    if fifo.repeat_count is not None and fifo.producer.kind == "shim":
        raise _refuse(
            fifo,
            "has a repeat_count, but its producer is the host.",
            phrase="`repeat_count` unavailable for shim tiles",
            hint="forward it through a MemTile and give the forwarded fifo the repeat_count.",
        )
    if fifo.repeat_count is not None and fifo.repeat_count < 1:
        raise _refuse(fifo, f"has a repeat_count of {fifo.repeat_count}.", hint="send each object at least once.")
    if fifo.iter_count is None:
        return
    if not 1 <= fifo.iter_count <= 256:
        raise _refuse(
            fifo,
            f"has an iter_count of {fifo.iter_count}.",
            phrase="`iter_count` must be between 1 and 256",
            hint="leave it out for a chain that runs for ever.",
        )
    if not any(tile.kind == "mem" for tile in (fifo.producer, *fifo.consumers)):
        raise _refuse(
            fifo,
            "has an iter_count, but no end on a MemTile.",
            phrase="`iter_count` is currently only supported on MemTiles",
            hint="forward it through a MemTile, or leave iter_count out.",
        )


def _check_initial(fifo: Fifo) -> None:
    if fifo.init_values is None:
        return
    depth = fifo.depth if isinstance(fifo.depth, int) else fifo.depth[0]
    if fifo.producer.kind == "shim":
        raise _refuse(
            fifo,
            "has initial values, but its producer is the host.",
            phrase="`init_values` unavailable for shim tiles",
            hint="fill it from the host sequence instead.",
        )
    if len(fifo.init_values) != depth:
        raise _refuse(
            fifo,
            f"has {count(len(fifo.init_values), 'initial value')} for a depth of {depth}.",
            phrase="`init_values` does not initialize all objects",
            hint="give one array for each of the producer's buffers.",
        )
    for value in fifo.init_values:
        if value.size != fifo.type.size:
            raise _refuse(
                fifo,
                f"has an initial value of {value.size} elements for objects of {fifo.type.size}.",
                hint="each initial value must have the object's shape.",
            )


def _check_padding(design: Design, fifo: Fifo) -> None:
    if fifo.pad_value and not fifo.pad:
        raise _refuse(
            fifo,
            "has a pad value but no padding.",
            phrase="`padValue` requires `padDimensions`",
            hint="give pad_dimensions.",
        )
    if fifo.pad_value and design.device.family == "npu1":
        raise _refuse(
            fifo,
            f"pads with {fifo.pad_value}, but {design.device.name} pads with zeros only.",
            phrase="`padValue` requires the CONSTANT_PAD_VALUE register, unavailable on this target",
            hint="leave pad_value out, or choose an npu2 device.",
        )
    if fifo.pad and fifo.producer.kind != "mem":
        raise _refuse(
            fifo,
            "is padded, but its producer is no MemTile.",
            phrase="Padding is only supported by memtile dma bds.",
            hint="forward it through a MemTile and pad there.",
        )
    if fifo.pad and not fifo.to_stream:
        raise _refuse(
            fifo,
            "is padded without dims_to_stream; padding is given for each dimension of the layout transform.",
            phrase="Padding requires n-d data layouts expressed as wrap(s) and stride(s).",
            hint="give dims_to_stream with as many dimensions as pad_dimensions.",
        )


def _check_consumer_type(fifo: Fifo) -> None:
    theirs, ours = fifo.consumer_type, fifo.type
    if theirs is None:
        return
    if theirs.element != ours.element:
        raise _refuse(
            fifo,
            f"has producer elements {ours.element} and consumer elements {theirs.element}.",
            phrase=f"producer and consumer must have the same scalar element type, but got {ours.element} vs "
            f"{theirs.element}",
            hint="only the size may differ.",
        )
    if ours.size % theirs.size:
        raise _refuse(
            fifo,
            f"has objects of {ours.size} elements, which the consumer's {theirs.size} do not divide.",
            phrase=f"producer element size ({ours.size}) must be an integer multiple of consumer element size ({theirs.size})",
            hint="let the consumer take an equal part of each object.",
        )


def _check_delegate(fifo: Fifo) -> None:
    if fifo.delegate_tile is None:
        return
    reasons = {
        "several consumers": len(fifo.consumers) != 1,
        "via_DMA": fifo.via_dma,
        "a repeat_count": fifo.repeat_count is not None,
        "dims_to_stream": bool(fifo.to_stream),
    }
    for reason, holds in reasons.items():
        if holds:
            raise _refuse(
                fifo,
                f"has a delegate tile and {reason}; a delegate tile holds the buffers of a fifo in shared memory.",
                phrase="cannot allocate a shared memory module to objectfifo",
                hint="leave one of them out.",
            )
