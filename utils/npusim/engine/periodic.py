"""Rounds that repeat: run a few, know the rest.

A timing-only run is a deterministic system whose future depends only on its state and on what the host still does, and
which does not care what o'clock it is: shift every time by the same amount and everything that follows shifts with it
(it is a max-plus linear system). So when the state after one of the host's waits equals an earlier one, but for the time,
and the host's actions since then repeat from here on, every further repetition takes exactly as long and moves exactly as
much. Those repetitions are left out and added up. Nothing is estimated: where the states never become equal, everything
is run.

A time in the past of the host's present is as good as the present: whatever happens next happens at or after it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from types import GeneratorType
from typing import TYPE_CHECKING, Any

import numpy as np

from npusim.engine.channel import End, Task
from npusim.engine.core import CoreRun
from npusim.engine.plan import Action, signatures
from npusim.engine.stream import Stream
from npusim.report import LEVELS, CoreUse, Report

if TYPE_CHECKING:
    from npusim.engine.simulator import Simulator

State = tuple[Any, ...]


@dataclass
class Totals:
    """What a run adds up, as a flat list of numbers, so that rounds can be subtracted and multiplied."""

    ticks: int
    counts: Counter[tuple[Any, ...]]

    @classmethod
    def of(cls, sim: Simulator, now: int) -> Totals:
        """The sums so far."""
        counts: Counter[tuple[Any, ...]] = Counter()
        for channel, end in sim.ends.items():
            counts[channel, "bytes"] = end.use.bytes
            counts[channel, "transfers"] = end.use.transfers
            counts[channel, "busy"] = end.use.busy
        for run in sim.cores:
            for name, (calls, ticks) in run.counts.items():
                counts[run, "calls", name], counts[run, "ticks", name] = calls, ticks
            for name, waited in run.stalled_by(now).items():
                counts[run, "stall", name] = waited
        counts["cascade",] = sim.cascades.moved
        return cls(now, counts)

    def since(self, earlier: Totals) -> Totals:
        """What was added since then."""
        return Totals(self.ticks - earlier.ticks, _minus(self.counts, earlier.counts))

    def times(self, n: int) -> Totals:
        """The same, n times."""
        return Totals(n * self.ticks, Counter({key: n * value for key, value in self.counts.items()}))

    def add(self, other: Totals) -> None:
        self.ticks += other.ticks
        self.counts.update(other.counts)


def _minus(late: Counter[tuple[Any, ...]], early: Counter[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    return Counter({key: late[key] - early[key] for key in late.keys() | early.keys()})


class Periodicity:
    """Looks for repeating rounds of one run; :meth:`skip` is called after each wait of the host."""

    def __init__(self, sim: Simulator, actions: list[Action]) -> None:
        self._sim = sim
        numbers: dict[tuple[Any, ...], int] = {}
        self._signatures = np.array([numbers.setdefault(s, len(numbers)) for s in signatures(actions)], dtype=np.int64)
        self._anchor: tuple[int, State, Totals] | None = None
        self._patience, self._seen = 1, 0  # Brent's cycle search: the anchor moves on at powers of two
        self._shifts: list[tuple[int, int]] = []  # (from this action on, so many actions were left out before)
        self.skipped = Totals(0, Counter())
        self.rounds = 0

    def really(self, at: int) -> int:
        """The action that was run in place of action ``at``, which may have been left out."""
        for begin, amount in reversed(self._shifts):
            if at < begin:
                at -= amount
        return at

    def skip(self, at: int) -> int:
        """After a wait that was the last action before ``at``: the action to go on with, later if rounds repeat."""
        if self._anchor is not None:
            begin, state, totals = self._anchor
            period = at - begin
            repeats = self._repeats(begin, at, period)
            if repeats and state == self._state():
                return self._leave_out(at, period, repeats, totals)
        self._seen += 1
        if self._anchor is None or self._seen >= self._patience:
            self._anchor = (at, self._state(), Totals.of(self._sim, self._sim.loop.now))
            self._patience, self._seen = 2 * self._patience, 0
        return at

    def _state(self) -> State:
        return (_state(self._sim), self._more())

    def _more(self) -> State:
        """What else the future depends on, in a kind of simulator that has more."""
        return ()

    def _repeats(self, begin: int, at: int, period: int) -> int:
        """How often the actions since ``begin`` come again, without a break, from ``at`` on."""
        pattern = self._signatures[begin:at]
        rest = self._signatures[at:]
        whole = len(rest) // period
        same = (rest[: whole * period].reshape(whole, period) == pattern).all(axis=1)
        return int(whole if same.all() else np.argmin(same))

    def _leave_out(self, at: int, period: int, repeats: int, totals: Totals) -> int:
        now = Totals.of(self._sim, self._sim.loop.now)
        self.skipped.add(now.since(totals).times(repeats))
        self.rounds += repeats
        self._anchor, self._patience, self._seen = None, 1, 0
        self._shifts.append((at + repeats * period, repeats * period))
        return at + repeats * period


def _state(sim: Simulator) -> State:
    """Everything the future depends on, times relative to the host's present."""
    now = sim.loop.now
    cores = tuple(_core(run, process, now) for run, process in zip(sim.cores, sim.core_processes, strict=True))
    streams = tuple(_stream(s, p, now) for s, p in zip(sim.streams, sim.stream_processes, strict=True))
    locks = tuple(s.value if s.shared else tuple(max(0, t - now) for t in s.times) for s in sim.locks.values())
    cascades = tuple(
        (c.bytes, max(0, c.drained_at - now), tuple((o.nbytes, max(0, o.at - now)) for o in c.offers))
        for c in sim.cascades.links
    )
    waiting = tuple(sorted((max(0, entry[0] - now), entry[1], entry[2]) for entry in sim.loop.pending()))
    return cores, streams, locks, cascades, waiting, sim.ddr.state(now), sim.memory.contents()


def _core(run: CoreRun, process: GeneratorType[Any, Any, Any], now: int) -> State:
    frame = process.gi_frame
    if frame is None:
        return (run.at, run.waits_for)
    kept = tuple(sorted((k, _plain(v)) for k, v in frame.f_locals.items() if k not in run.uncounted))
    ahead = max(0, frame.f_locals["t"] - now)
    return (frame.f_lasti, ahead, kept, run.at, run.waits_for, _inner(process.gi_yieldfrom, now))


def _inner(process: Any, now: int) -> State:
    """A kernel call that is in the middle of its cascade: where it stands."""
    found: list[Any] = []
    while isinstance(process, GeneratorType) and process.gi_frame is not None:
        local = process.gi_frame.f_locals
        numbers = tuple(sorted((k, v) for k, v in local.items() if isinstance(v, int) and k not in ("now",)))
        found.append((process.gi_frame.f_lasti, max(0, local.get("now", now) - now), numbers))
        process = process.gi_yieldfrom
    return tuple(found)


def _stream(stream: Stream, process: GeneratorType[Any, Any, Any], now: int) -> State:
    frame = process.gi_frame
    if frame is None:
        return ()
    local = frame.f_locals
    times = tuple(max(0, local.get(k, 0) - now) for k in ("now", "begun", "tick"))
    ready = max(0, stream.ready - now)
    amounts = tuple(local.get(k, 0) for k in ("extra", "nbytes", "ticks"))
    return (frame.f_lasti, times, ready, amounts, tuple(_end(end, now) for end in stream.ends))


def _end(end: End, now: int) -> State:
    tasks = tuple(_task(task, now) for task in (end.task, *end.tasks) if task is not None)
    recent = tuple(max(0, task.started_at - now) for task in end.recent if task.started_at > now)
    where = tuple(_place(end, transfer) for transfer in (end.transfer, end.upcoming))
    return (where, end.left, end.passes, end.warm, end.task is None, max(0, end.finished_at - now), tasks, recent)


def _place(end: End, transfer: Any) -> int:
    chain = end.task.chain if end.task is not None else end.program
    return chain.index(transfer) if transfer in chain else -1


def _task(task: Task, now: int) -> State:
    moved = tuple((transfer.nbytes, transfer.burst) for transfer in task.chain)
    return (moved, task.passes, max(0, task.pushed_at - now), max(0, task.started_at - now))


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def completed(report: Report, found: Periodicity, runs: list[CoreRun]) -> Report:
    """The report of a run with what the rounds left out add."""
    skipped = found.skipped
    if not found.rounds:
        return report
    for use in report.channels:
        use.bytes += skipped.counts[use.channel, "bytes"]
        use.transfers += skipped.counts[use.channel, "transfers"]
        use.busy += skipped.counts[use.channel, "busy"]
        level = report.traffic[LEVELS[min(use.channel.tile.row, 2)]]
        moved = skipped.counts[use.channel, "bytes"]
        if use.channel.direction == "MM2S":
            level.read += moved
        else:
            level.written += moved
    report.cores = [_added(use, run, skipped) for use, run in zip(report.cores, runs, strict=True)]
    report.ticks += skipped.ticks
    report.cascade_bytes += skipped.counts["cascade",]
    report.extrapolated_periods = found.rounds
    return report


def _added(use: CoreUse, run: CoreRun, skipped: Totals) -> CoreUse:
    stalled, kernels = dict(use.stalled), dict(use.kernels)
    waited = 0
    for key, value in skipped.counts.items():
        if key[0] is run and key[1] == "stall":
            stalled[key[2]] = stalled.get(key[2], 0) + value
            waited += value
        elif key[0] is run and key[1] == "calls":
            calls, ticks = kernels.get(key[2], (0, 0))
            kernels[key[2]] = (calls + value, ticks + skipped.counts[run, "ticks", key[2]])
    return CoreUse(use.tile, use.name, use.busy + skipped.ticks - waited, stalled, kernels)
