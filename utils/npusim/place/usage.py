"""Fifo ends that nobody uses: an output that is never taken is refused, an input that is never fed is warned about."""

from __future__ import annotations

from npusim.errors import DesignError
from npusim.graph import Fifo, LogicalTile
from npusim.ir import walk
from npusim.messages import explain
from npusim.place.bodies import used_ends
from npusim.place.draft import Draft, label

TASK = "aiex.dma_configure_task_for"


def check_usage(draft: Draft) -> None:
    """Raise DesignError for a fifo whose objects nobody takes; warn about one that nobody fills."""
    ends = _Ends(draft)
    for fifo in draft.design.fifos:
        for index, consumer in enumerate(fifo.consumers):
            why = ends.unused(fifo, consumer, produce=False)
            if why:
                raise _never_drained(fifo, index, why)
        why = ends.unused(fifo, fifo.producer, produce=True)
        if why:
            draft.warn(_never_filled(fifo, why))


class _Ends:
    """Who uses which end of which fifo."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        design = draft.design
        self.used = {(draft.at(core.tile), *end) for core in design.cores for end in used_ends(core.body)}
        self.tasks = (
            {op.attrs["alloc"] for op in walk(design.sequence.body) if op.name == TASK} if design.sequence else None
        )
        self.linked = {(f, draft.at(link.outputs[0].producer)) for link in design.links for f in link.inputs}
        self.linked |= {(f, draft.at(f.producer)) for link in design.links for f in link.outputs}

    def unused(self, fifo: Fifo, tile: LogicalTile, *, produce: bool) -> str | None:
        """Why an end is not used, or None if it is."""
        spot = self.draft.at(tile)
        if (fifo, spot) in self.linked:
            return None
        if spot.row == 0:
            verb = "fills" if produce else "drains"
            missing = self.tasks is not None and fifo.name not in self.tasks
            return f"the host sequence never {verb} it" if missing else None
        if spot.row == 1:
            given = produce and fifo.init_values is not None
            return (
                None
                if given
                else f"it {'starts' if produce else 'ends'} on {label(spot)}, where nothing is linked to it"
            )
        core = self.draft.core_at(spot)
        if core is None:
            return f"no worker runs on {label(spot)}, where it {'starts' if produce else 'ends'}"
        used = (spot, fifo.name, produce) in self.used
        return None if used else f"worker {core.name!r} on {label(spot)} never acquires from it"


def _never_drained(fifo: Fifo, index: int, why: str) -> DesignError:
    which = f"consumer {index} of fifo {fifo.name!r}" if len(fifo.consumers) > 1 else f"fifo {fifo.name!r}"
    return DesignError(
        explain(
            f"the output of {which} is never taken: {why}. Its producer would stop when the fifo is full.",
            hint=_hint(why, "drain it in the host sequence: handle.drain(array, wait=True)"),
            loc=fifo.loc,
        )
    )


def _never_filled(fifo: Fifo, why: str) -> str:
    return explain(
        f"nothing is ever put into fifo {fifo.name!r}: {why}. Whoever takes from it waits for ever.",
        hint=_hint(why, "fill it in the host sequence: handle.fill(array)"),
        loc=fifo.loc,
    )


def _hint(why: str, host: str) -> str:
    if "host sequence" in why:
        return f"{host}."
    if "no worker" in why:
        return "was the worker left out of Program(..., workers=[...])? The real tools accept that silently."
    if "nothing is linked" in why:
        return "forward, split or join it there."
    return "acquire and release it in the worker, or leave the fifo out."
