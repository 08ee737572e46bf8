"""Split, join and forward: the input and output sides of a link walk one ring of buffers.

The ring belongs to one end (its *owner*): the whole object's end for a split or join, the larger of the two for a forward.
In a split or join every part has its own lock pair, and the owner's end handles the parts of an object one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable

from npusim.errors import DesignError
from npusim.graph import Dims, Fifo, Link
from npusim.ir import UNKNOWN
from npusim.machine import Coord
from npusim.messages import count, explain
from npusim.place.draft import Draft, End, label
from npusim.types import MemRefType


def is_join(link: Link) -> bool:
    return len(link.inputs) > 1


def is_split(link: Link) -> bool:
    return len(link.outputs) > 1


def parts(link: Link) -> int:
    """How many parts an object of the owner has: 1 for a forward."""
    return max(len(link.inputs), len(link.outputs))


def repeats(link: Link) -> int:
    """How often the outputs send each object."""
    return next((f.repeat_count for f in link.outputs if f.repeat_count is not None), 1)


def cuts(link: Link) -> list[tuple[int, int]]:
    """(offset, length) in elements of every part within the whole object; lengths come from the offsets' differences."""
    whole = link.outputs[0].type if is_join(link) else _consumed(link.inputs[0])
    offsets = [*(link.src_offsets if is_join(link) else link.dst_offsets), whole.size]
    return [(start, stop - start) for start, stop in zip(offsets, offsets[1:], strict=False)]


def _consumed(fifo: Fifo) -> MemRefType:
    return fifo.consumer_type or fifo.type


def owner(link: Link, ends: dict[Fifo, End]) -> End:
    """The end whose buffers the whole link uses; ``ends`` are the link's ends on its tile, by fifo."""
    first, last = ends[link.inputs[0]], ends[link.outputs[0]]
    if is_join(link) or (not is_split(link) and last.fifo.init_values is not None):
        return last
    if is_split(link) or first.type.size >= last.type.size or last.fifo.pad:
        return first
    return last


def check_links(draft: Draft) -> None:
    """Raise DesignError for links that the real tools refuse."""
    seen: set[Fifo] = set()
    for link in draft.design.links:
        for fifo in (*link.inputs, *link.outputs):
            if fifo in seen:
                raise _refuse(
                    link,
                    f"fifo {fifo.name!r} takes part in two links; a fifo can be split, joined or forwarded only once.",
                    phrase="objectfifo cannot be in more than one ObjectFifoLinkOp",
                    hint="put a fifo of its own between the two links.",
                )
            seen.add(fifo)
        _check_shape(draft, link)
        _check_offsets(link)
        _warn_uneven(draft, link)
        _check_transforms(link)
        _check_repeats(link)


def _check_shape(draft: Draft, link: Link) -> None:
    names = f"{_names(link.inputs)} to {_names(link.outputs)}"
    if is_join(link) and is_split(link):
        raise _refuse(
            link,
            f"the link from {names} joins and splits at once.",
            phrase="ObjectFifoLinkOp does not support 'join' and 'distribute' at the same time",
            hint="join into one fifo, then split that fifo.",
        )
    tile = draft.at(link.outputs[0].producer)
    if not _shares_tile(draft, link, tile):
        raise _refuse(
            link,
            f"the link from {names} has no tile on which all its fifos meet.",
            phrase="ObjectFifoLinkOp must have a link point, i.e., a shared tile between objectFifos",
            hint="the inputs must end, and the outputs start, on the same MemTile.",
        )
    if tile.row != 1 and (is_join(link) or is_split(link)):
        raise _refuse(
            link,
            f"the link from {names} joins or splits on {label(tile)}.",
            phrase="ObjectFifoLinkOp join and distribute are unavailable on compute or shim tiles",
            hint="split and join on a MemTile.",
        )
    if tile.row == 0:
        raise _refuse(
            link, f"the link from {names} stands on {label(tile)}, which has no memory.", hint="use a MemTile."
        )


def _shares_tile(draft: Draft, link: Link, tile: Coord) -> bool:
    starts = all(draft.at(f.producer) == tile for f in link.outputs)
    if is_join(link) or is_split(link):
        return starts and all(draft.at(f.consumers[0]) == tile for f in link.inputs)
    return starts and any(draft.at(c) == tile for c in link.inputs[0].consumers)


def _check_offsets(link: Link) -> None:
    for kind, given, fifos in (("join", link.src_offsets, link.inputs), ("split", link.dst_offsets, link.outputs)):
        if len(fifos) > 1 and len(given) != len(fifos):
            side = (
                "src offsets must be equal to the number of input"
                if kind == "join"
                else ("dst offsets must be equal to the number of output")
            )
            raise _refuse(
                link,
                f"the {kind} over {_names(fifos)} has {count(len(given), 'offset')} for {len(fifos)} fifos.",
                phrase=f"number of provided {side} objectFifos",
                hint="give one offset, in elements, for each fifo.",
            )
    if parts(link) > 1 and any(length <= 0 for _, length in cuts(link)):
        raise _refuse(
            link,
            f"the offsets of the link over {_names([*link.inputs, *link.outputs])} do not rise within the object.",
            details=[f"offsets {[at for at, _ in cuts(link)]} in an object of {sum(cuts(link)[-1])} elements"],
            hint="offsets are in elements of the whole object, each part ends where the next one starts.",
        )


def _warn_uneven(draft: Draft, link: Link) -> None:
    """The real lowering cuts by offsets and does not look at the part's own type."""
    if parts(link) == 1:
        return
    fifos = link.inputs if is_join(link) else link.outputs
    for fifo, (_, length) in zip(fifos, cuts(link), strict=True):
        object_size = fifo.type.size if is_split(link) else _consumed(fifo).size
        if object_size != length:
            draft.warn(
                explain(
                    f"fifo {fifo.name!r} has objects of {object_size} elements, but its part of the "
                    f"{'join' if is_join(link) else 'split'} is {length} elements long: objects will be cut at the wrong places.",
                    details=[f"{f.name!r}: elements {at} to {at + n - 1}" for f, (at, n) in zip(fifos, cuts(link))],
                    hint="part sizes come from the offsets; let them match the types. The real tools accept this silently.",
                    loc=fifo.loc,
                )
            )


def _check_transforms(link: Link) -> None:
    """A whole object's transform is applied to every part, so it must fit into the smallest one."""
    if is_join(link):
        whole, kind, side = link.outputs[0], "join", "join input"
        dims = whole.to_stream
    elif is_split(link) and link.inputs[0].from_stream:
        whole, kind, side = link.inputs[0], "split", "distribute output"
        dims = whole.from_stream[0]
    else:
        return
    smallest = min(length for _, length in cuts(link))
    last = last_index(dims)
    if dims and last >= smallest:
        word = "output" if is_join(link) else "input"
        raise _refuse(
            link,
            f"the layout transform of fifo {whole.name!r} reaches element {last}, but in a {kind} it is applied to each part, "
            f"and the smallest part has {smallest} elements.",
            details=[
                f"dims (size, stride): {list(dims)}",
                *(f"part {i}: {n} elements" for i, (_, n) in enumerate(cuts(link))),
            ],
            phrase=f"specified {word} stride(s) and size(s) result in out of bounds access in {side}, for index {last} "
            f"in transfer of length {smallest}.",
            hint="give dims for one part, not for the whole buffer.",
        )


def _check_repeats(link: Link) -> None:
    counts = {f.name: f.repeat_count for f in link.outputs}
    if len(set(counts.values())) > 1:
        raise _refuse(
            link,
            f"the outputs of the split repeat differently: {counts}.",
            phrase="repeat counts of output object FIFOs must be equal",
            hint="give all outputs of a split the same repeat_count.",
        )
    if is_join(link) and repeats(link) > 1:
        raise _refuse(
            link,
            f"fifo {link.outputs[0].name!r} joins several fifos and has a repeat_count: the real compiler does not lower "
            "that (it reads past the list of offsets).",
            hint="join without a repeat, then forward the joined data from another MemTile with the repeat_count.",
        )


def last_index(dims: Dims) -> int:
    """The largest element index that a layout transform touches."""
    return sum((size - 1) * stride for size, stride in dims)


def _names(fifos: Iterable[Fifo]) -> str:
    return ", ".join(repr(f.name) for f in fifos)


def _refuse(
    link: Link, problem: str, *, phrase: str | None = None, hint: str | None = None, details: Iterable[str] = ()
) -> DesignError:
    loc = link.loc if link.loc is not UNKNOWN else next((f.loc for f in link.outputs), UNKNOWN)
    return DesignError(explain(problem, details=details, phrase=phrase, hint=hint, loc=loc))
