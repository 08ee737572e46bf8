"""Rules that the real tools check as soon as a program is resolved, before anything is placed.

What depends on placement, lowering or the hardware's limits is the placer's business, for designs read from MLIR as well.
"""

from __future__ import annotations

from collections import Counter

from npusim import graph
from npusim.errors import DesignError
from npusim.messages import explain


def verify(design: graph.Design) -> None:
    """Raise a DesignError for the first rule that the design breaks."""
    _one_core_a_tile(design)
    _unique_symbols(design)
    _links(design)
    for cascade in design.cascades:
        _cascade(cascade)


def _one_core_a_tile(design: graph.Design) -> None:
    seen: dict[tuple[int, int], graph.Core] = {}
    objects: dict[int, graph.Core] = {}
    for core in design.cores:
        place = (core.tile.col, core.tile.row)
        other = objects.setdefault(id(core.tile), core)
        if other is core and place[0] is not None and place[1] is not None:
            other = seen.setdefault((place[0], place[1]), core)
        if other is not core:
            raise DesignError(
                explain(
                    f"two workers stand on one tile, {core.tile}, which has one core.",
                    details=[f"worker {c.name!r} (made at {c.loc})" for c in (other, core)],
                    phrase="the other core is here",
                    hint="give each worker its own tile=Tile(col, row), or leave tile= out to have one chosen.",
                )
            )


def _unique_symbols(design: graph.Design) -> None:
    """Fifos, buffers, locks, kernels and the sequence share one space of names."""
    named: list[tuple[str, str, object]] = [(f.name, "an ObjectFifo", f.loc) for f in design.fifos]
    named += [(b.name, "a Buffer", b.loc) for b in design.buffers]
    named += [(k.name, "a kernel", k.loc) for k in design.kernels]
    named += [(lock.name, "a Lock", lock.loc) for lock in design.locks if lock.name is not None]
    named += [(f.shim_symbol, "a shim channel", f.loc) for f in design.flows if f.shim_symbol is not None]
    if design.sequence is not None:
        named.append((design.sequence.name, "the host sequence", design.sequence.loc))
    counts = Counter(name for name, _, _ in named)
    for name, count in counts.items():
        if count > 1:
            what = " and ".join(f"{kind} (made at {loc})" for n, kind, loc in named if n == name)
            raise DesignError(
                f"redefinition of symbol {name!r}: it names {what}; give each thing its own name, and make one Kernel "
                "for "
                "all workers that call it"
            )


def _links(design: graph.Design) -> None:
    ends: dict[graph.Fifo, graph.Link] = {}
    for link in design.links:
        for fifo in (*link.inputs, *link.outputs):
            other = ends.setdefault(fifo, link)
            if other is not link:
                raise DesignError(
                    f"ObjectFifo {fifo.name!r} (made at {fifo.loc}) takes part in two links (made at {other.loc} and "
                    f"{link.loc}): a fifo can be split, joined or forwarded once, and the result not again; put a "
                    "worker "
                    "between, or link on one MemTile only"
                )
        if len(link.inputs) > 1:
            _join(link)


def _join(link: graph.Link) -> None:
    """On a join's target, ``dims_to_stream`` walks each part, so it must stay inside the part."""
    whole = link.outputs[0]
    if not whole.to_stream:
        return
    reach = sum((size - 1) * stride for size, stride in whole.to_stream)
    for fifo, offset in zip(link.inputs, link.src_offsets):
        if reach >= fifo.type.size:
            raise DesignError(
                explain(
                    f"dims_to_stream of ObjectFifo {whole.name!r} reaches element {reach}, but on the target of a "
                    "join it is applied "
                    f"to each joined part, and part {fifo.name!r} has {fifo.type.size} elements.",
                    details=[
                        f"dims_to_stream (size, stride): {list(whole.to_stream)}",
                        f"whole object: {whole.type.size} elements; {fifo.name!r} starts at element {offset}",
                    ],
                    phrase="specified output stride(s) and size(s) result in out of bounds access in join input, for "
                    "index "
                    f"{reach} in transfer of length {fifo.type.size}.",
                    hint="write dims_to_stream for one part.",
                    loc=whole.loc,
                )
            )


def _cascade(cascade: graph.Cascade) -> None:
    """Both tiles placed: they must be neighbours (which of them may send is checked when the design is placed)."""
    a, b = cascade.source, cascade.dest
    if a.col is None or a.row is None or b.col is None or b.row is None:
        return
    if abs(a.col - b.col) + abs(a.row - b.row) != 1:
        raise DesignError(
            explain(
                f"a cascade goes from {a} to {b}, which are no neighbours.",
                phrase="'aie.cascade_flow' op tiles must be adjacent",
                hint="a cascade runs from a core to its neighbour in the south (the row below) or in the east: pin "
                "the two workers "
                "accordingly.",
                loc=cascade.loc,
            )
        )
