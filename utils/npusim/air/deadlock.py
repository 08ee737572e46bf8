"""Explains an AIR design that stands still: who waits for whom, with the places in the source."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from npusim.air.corecode import NEXT_LAUNCH, AirSite
from npusim.air.memory import far
from npusim.air.parts import CoreParty
from npusim.air.parts import End as AirEnd
from npusim.air.transfers import BufferState, FedEnd, PutTransfer, Ticks
from npusim.engine.channel import End, Task
from npusim.engine.core import CoreRun
from npusim.engine.host import Host
from npusim.engine.stream import Stream
from npusim.errors import DeadlockError
from npusim.messages import explain as worded
from npusim.place.draft import label

if TYPE_CHECKING:
    from npusim.air.simulator import AirSimulator

SHOWN = 6
"""Who waits beside the chain of waits and is listed."""

Who = Host | CoreRun | Stream


def explain(sim: AirSimulator) -> DeadlockError:
    """The error for a simulator whose loop ran dry."""
    waits = Waits(sim)
    cycles = sim.loop.now // sim.clock.ticks_per_cycle
    text = worded(
        f"deadlock after {cycles:,} cycles: nothing can run any more, and the host has not done its launches. Each waits for the "
        "next:",
        details=[*_chain(waits), *_others(waits)],
        phrase="Kernel returned ert_cmd_state.ERT_CMD_STATE_TIMEOUT",
        hint=_hint(waits),
    )
    return DeadlockError(text)


def _chain(waits: Waits) -> Iterator[str]:
    for number, who in enumerate(waits.path, 1):
        yield f"{number}. {waits.text(who)}"
    if waits.back is not None:
        yield f"   and {waits.back + 1} would have to act first: a circle in which nobody can begin"


def _others(waits: Waits) -> Iterator[str]:
    every: list[Who] = [*waits.sim.cores, *waits.sim.streams]
    others = [who for who in every if who not in waits.path and waits.stuck(who)]
    if others:
        yield "besides:"
    for who in others[:SHOWN]:
        yield f"- {waits.text(who)}"
    if len(others) > SHOWN:
        yield f"- and {len(others) - SHOWN} more"


def _hint(waits: Waits) -> str:
    if waits.back is not None:
        return (
            "in every circle somebody must be able to begin: let puts come before gets that wait for their answer, and gets on "
            "one channel (or one cascade) in the order of the puts."
        )
    return "as many elements must be put on each index of a channel as are got from it, launch for launch."


class Waits:
    """The wait-for graph: ``path`` leads from the host to somebody who waits for nobody, or round (to place ``back``)."""

    def __init__(self, sim: AirSimulator) -> None:
        assert sim.host is not None
        self.sim, self.host = sim, sim.host
        self._streams: dict[End, list[Stream]] = {}
        for stream in sim.streams:
            for end in stream.every:
                self._streams.setdefault(end, []).append(stream)
        self._cores = {run.program.tile: run for run in sim.cores}
        self._states = {
            ticks: (self._cores[party.tile], state)
            for party, states in ((f.party, f.states) for f in sim.core_feeds)
            for copies in states.values()
            for state in copies
            for ticks in (state.released, state.sent)
        }
        self.path: list[Who] = [self.host]
        self.back: int | None = None
        while needed := self.needs(self.path[-1]):
            onward = [who for who in needed if who not in self.path]
            if not onward:
                self.back = min(self.path.index(who) for who in needed)
                break
            self.path.append(onward[0])

    def stuck(self, who: Who) -> bool:
        """Whether it waits with work begun or to do."""
        if isinstance(who, CoreRun):
            return bool(who.waiting) and who.waits_for != NEXT_LAUNCH
        return isinstance(who, Stream) and any(end.left or end.upcoming is not None for end in who.every)

    # -- who is needed

    def needs(self, who: Who) -> list[Who]:
        """Those of whom one would have to act before it can go on."""
        if isinstance(who, Host):
            return [] if who.waiting is None else [*self._streams[self.sim.ends[who.waiting[1].channel]]]
        return self._core_needs(who) if isinstance(who, CoreRun) else self._stream_needs(who)

    def _core_needs(self, run: CoreRun) -> list[Who]:
        if run.waits_for:
            return self._cascade_peers(run)
        end = self._end_of(run)
        return [*self._streams[end]] if end is not None else []

    def _end_of(self, run: CoreRun) -> End | None:
        """The DMA channel that a core waits for."""
        site = run.blocked
        if not isinstance(site, AirSite):
            return None
        at: FedEnd | None = run.variables.get("e") if site.what == "get" else site.end
        return at

    def _cascade_peers(self, run: CoreRun) -> list[Who]:
        links = self.sim.machine.cascades
        if run.waits_for == "cascade input":
            tiles = [link.source for link in links if link.dest == run.program.tile]
        elif run.waits_for == "cascade output":
            tiles = [link.dest for link in links if link.source == run.program.tile]
        else:
            return []
        return [self._cores[tile] for tile in tiles]

    def _stream_needs(self, stream: Stream) -> list[Who]:
        if stream.blocked is None:
            return []
        end, what = stream.blocked
        if not isinstance(end, FedEnd):
            return [self.host]
        if what is end.passed:
            return [other for other in self._streams[end] if other is not stream and self._holds(other, end)]
        if not isinstance(what, Ticks):
            return [self._cores[end.channel.tile]] if self._asks(end) else []
        if what in self._states:
            run, state = self._states[what]
            return [run] if what is state.released else [*self._streams[self._out_of(state)]]
        return [s for other in self.sim.fed.values() if other.ended is what for s in self._streams[other]]

    def _holds(self, stream: Stream, end: FedEnd) -> bool:
        """Whether what a shared channel moves, or comes to, belongs to a stream."""
        transfer = end.transfer if end.left else end.upcoming
        return getattr(transfer, "route", None) is stream.route

    def _asks(self, end: FedEnd) -> bool:
        """Whether it is up to a core that a transfer comes: a put, or a get that is not known beforehand."""
        party = end.feed.party if end.feed is not None else None
        return end.channel.tile.row > 1 and (
            end.channel.direction == "MM2S" or (isinstance(party, CoreParty) and not party.foreseen)
        )

    def _out_of(self, state: BufferState) -> End:
        """The channel that a put from a buffer is still to leave on."""
        for end in self.sim.fed.values():
            for transfer in (end.transfer, end.upcoming, *(t for t, _ in end.pending)):
                if (
                    isinstance(transfer, PutTransfer)
                    and transfer.state is state
                    and (transfer is not end.transfer or end.left)
                ):
                    return end
        raise AssertionError("a put that is not out is on its way")

    # -- in words

    def text(self, who: Who) -> str:
        """What somebody waits for."""
        if isinstance(who, Host):
            return self._host_text()
        return self._core_text(who) if isinstance(who, CoreRun) else self._stream_text(who)

    def _host_text(self) -> str:
        if self.host.waiting is None:
            return "the host does not wait"
        op, task = self.host.waiting
        end = self.sim.ends[task.channel]
        verb = "get" if end.channel.direction == "S2MM" else "put"
        moved = _moved(end, task) if end.task is task else 0
        return (
            f"the host waits for its {verb} on {task.name} at {op.loc}: {moved:,} of {task.nbytes:,} bytes have moved"
        )

    def _core_text(self, run: CoreRun) -> str:
        who = f"core {run.program.name} on {label(run.program.tile)}"
        if run.waits_for == NEXT_LAUNCH:
            return f"{who} has done its body and waits for the next launch"
        if run.waits_for:
            what = "data on its cascade input" if run.waits_for == "cascade input" else "room on its cascade output"
            return f"{who} waits at {run.line} for {what}"
        site = run.blocked
        if not isinstance(site, AirSite):
            return f"{who} is at {run.line} and does not wait"
        name = f"channel {site.name!r}" if site.name and not site.name.startswith("dma") else f"the {site.name}"
        if site.what == "get":
            return f"{who} waits for its get on {name} at {site.loc}"
        return f"{who} wants to write to a buffer that its put on {name} at {site.loc} has not sent yet"

    def _stream_text(self, stream: Stream) -> str:
        puts, gets = self._sides(stream)
        name = f"{puts[0].name} (put at {puts[0].where}, got at {', '.join(dict.fromkeys(g.where for g in gets))})"
        if stream.blocked is None:
            return f"{name} moves nothing"
        end, what = stream.blocked
        part = self._part(stream)
        if not isinstance(end, FedEnd):
            side = puts[0] if end.channel.direction == "MM2S" else gets[0]
            return f"{name} waits for the host to come to the {side.side} at {side.where}{part}"
        if what is end.passed:
            return f"{name} waits for {end.channel}, which it shares and whose next transfer is another stream's{part}"
        if isinstance(what, Ticks):
            next_one = getattr(end.upcoming, "what", "its next transfer")
            return f"{name}: {next_one} waits until {self._cause(what)}{part}"
        mine = next(e for e in (*puts, *gets) if self.sim.air.channel_of.get(e) is end.channel)
        if self._asks(end):
            return f"{name} waits for {mine.party.name} to come to its {mine.side} at {mine.where}{part}"
        return f"{name} waits for another {mine.side} by {mine.party.name} (at {mine.where}), but there is none in this launch{part}"

    def _part(self, stream: Stream) -> str:
        half = [end for end in stream.ends if end.left and end.moved]
        return f", with {half[0].moved:,} of {half[0].moved + half[0].left:,} bytes moved" if half else ""

    def _cause(self, what: Ticks) -> str:
        if what in self._states:
            run, state = self._states[what]
            if what is state.released:
                return f"core {run.program.name} has done with buffer {state.buffer.name!r}"
            return f"what was put from buffer {state.buffer.name!r} is out"
        for other in self.sim.fed.values():
            if other.ended is what:
                transfer = other.transfer if other.left else other.upcoming
                return f"{getattr(transfer, 'what', f'a transfer on {other.channel}')} has ended"
        return "another transfer has ended"

    def _sides(self, stream: Stream) -> tuple[list[AirEnd], list[AirEnd]]:
        put = next(end for end, route in self.sim.air.route_of.items() if route is stream.route)
        return [put], far(self.sim.parties, put)


def _moved(end: End, task: Task) -> int:
    """Bytes of the task that an end is at."""
    done = task.chain[: task.chain.index(end.transfer)] if end.transfer in task.chain else []
    return end.moved + sum(transfer.nbytes for transfer in done)
