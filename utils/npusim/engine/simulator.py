"""One machine loaded on the simulated NPU: its state, and runs of its host sequence.

State survives a run, as on the NPU: buffers, lock values, the position of every descriptor ring and the point each core
has reached. A second run goes on from there.
"""

from __future__ import annotations

import traceback
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from npusim import kernels as kernel_models
from npusim.costs import Clockwork, Costs
from npusim.engine.cascade import CascadePorts
from npusim.engine.channel import End
from npusim.engine.control import Touched
from npusim.engine.core import CoreRun, Surroundings, compile_core
from npusim.engine.deadlock import explain
from npusim.engine.failure import failure
from npusim.engine.findings import findings
from npusim.engine.host import Host
from npusim.engine.loop import Loop
from npusim.engine.packets import PacketStream, Turnstile
from npusim.engine.periodic import Periodicity, completed
from npusim.engine.plan import Action, plan
from npusim.engine.state import Ddr, LockState, Memory
from npusim.engine.stream import Stream
from npusim.engine.transfer import Transfer
from npusim.engine.users import Users, common_buffers
from npusim.errors import DeadlockError, DesignError
from npusim.ir import walk
from npusim.kernels import KernelModel
from npusim.machine import DmaChannel, Machine, MemBuffer, Route
from npusim.report import LEVELS, ChannelUse, CoreUse, Level, Report, Trace, Traffic
from npusim.types import numpy_dtype


class Simulator:
    """A loaded machine. ``data=False`` runs only its timing: the cycles are the same, nothing is computed.

    ``periodic`` lets such a run leave out rounds that repeat exactly (default: whenever there is neither data nor trace).
    ``kernels`` maps kernel names to models and wins over registered ones. UnsupportedError names an operation or kernel
    that cannot be run.
    """

    patient = False
    """Whether the host waits where a task would find its channel's queue full."""

    def __init__(
        self,
        machine: Machine,
        *,
        kernels: Mapping[str, KernelModel] | None = None,
        costs: Costs | None = None,
        data: bool = True,
        trace: bool = True,
        periodic: bool | None = None,
    ) -> None:
        self._periodic = not (data or trace) if periodic is None else periodic
        if self._periodic and (data or trace):
            raise DesignError("rounds can be left out only without data and without a trace")
        self.machine, self.data = machine, data
        self.clock = Clockwork.of(machine.device, costs or Costs())
        self.loop = Loop()
        self.memory = Memory()
        users = Users(machine)
        self.locks = {lock: LockState(lock, users.shared(lock)) for lock in machine.locks}
        self.trace: list[Any] | None = [] if trace else None
        self.scratchpad = {s.name: numpy_dtype(s.element).type(0) for s in machine.scratchpads}
        self.cascades = CascadePorts(machine.cascades, self.loop, self.clock, self.trace, data)
        self.ends = {channel: self._end(channel) for channel in machine.channels}
        self.ddr = Ddr(self.clock)
        self.streams: list[Stream] = []
        self.stream_processes: list[Any] = []
        self.cores: list[CoreRun] = []
        self.core_processes: list[Any] = []
        self.host: Host | None = None
        self.written: set[MemBuffer] = set()  # run-time parameters that the host has written
        self._load_streams()
        self._load_cores(kernels)

    def _end(self, channel: DmaChannel) -> End:
        dimensions = self.machine.device.limits(channel.tile.row).dims.value
        program = []
        for bd in channel.descriptors:
            assert isinstance(bd.buffer, MemBuffer)
            array = self.memory[bd.buffer] if self.data else None
            program.append(Transfer(bd, array, self.locks, dimensions))
        return End(channel, ChannelUse(channel), program)

    def _load_streams(self) -> None:
        common = self.loop, self.clock, self.ddr, self.trace, self.data
        packets: dict[DmaChannel, list[Route]] = defaultdict(list)
        for route in self.machine.routes:
            if route.packet_id is None:
                ends = [self.ends[channel] for channel in (route.source, *route.dests)]
                self.streams.append(Stream(route, ends, *common))
            else:
                packets[route.source].append(route)
        turnstiles: dict[DmaChannel, Turnstile] = defaultdict(Turnstile)
        self.streams += [PacketStream(routes, self.ends, turnstiles, *common) for routes in packets.values()]
        self._periodic = self._periodic and not packets
        self.stream_processes = [stream.process() for stream in self.streams]
        for process in self.stream_processes:
            self.loop.start(process)

    def _surroundings(self, given: Mapping[str, KernelModel] | None) -> Surroundings:
        """What the cores are compiled against."""
        called = {
            str(op.attrs["callee"]) for core in self.machine.cores for op in walk(core.body) if op.name == "func.call"
        }
        return Surroundings(
            machine=self.machine,
            loop=self.loop,
            clock=self.clock,
            memory=self.memory,
            locks=self.locks,
            models={
                name: kernel_models.lookup(self.machine.kernels[name], given, self.machine.device)
                for name in sorted(called)
            },
            cascades=self.cascades,
            scratchpad=self.scratchpad,
            touched=Touched.of(self.machine),
            common=common_buffers(self.machine),
            trace=self.trace,
            data=self.data,
        )

    def _load_cores(self, given: Mapping[str, KernelModel] | None) -> None:
        around = self._surroundings(given)
        for core in self.machine.cores:
            process, run = compile_core(core, around)
            self.cores.append(run)
            self.core_processes.append(process)
            self.loop.start(process)

    def record(self, track: str, name: str, kind: str, begun: int, ended: int) -> None:
        """Trace an interval."""
        if self.trace is not None and ended > begun:
            self.trace.append((track, name, kind, begun, ended - begun))

    def run(self, args: Sequence[Any]) -> Report:
        """Run the host sequence once over ``args`` (its arrays, written in place, and scalars).

        Raises DeadlockError that says who waits for whom, and DesignError with file and line for what goes wrong in a
        core (an index outside, a kernel model that fails).
        """
        if self.machine.sequence is None:
            raise DesignError("the design has no host sequence, so nothing moves data in or out")
        begun, counted, cascaded = self.loop.now, self.loop.resumptions, self.cascades.moved
        self._reset(begun)
        actions = self._actions(args)
        periodicity = self._periodicity(actions) if self._periodic else None
        self.host = Host(self, actions, periodicity)
        self.loop.stopped = False
        self.loop.start(self.host.process())
        try:
            with np.errstate(all="ignore"):
                ended = self.loop.run()
        except Exception as error:
            raise self._located(error) from error
        if not ended:
            raise self._explain()
        report = self._report(begun, self.loop.resumptions - counted, self.cascades.moved - cascaded)
        return report if periodicity is None else completed(report, periodicity, self.cores)

    def _actions(self, args: Sequence[Any]) -> list[Action]:
        """What the host does in a run."""
        assert self.machine.sequence is not None
        return plan(self, self.machine.sequence, list(args))

    def _periodicity(self, actions: list[Action]) -> Periodicity:
        """What looks for rounds that repeat."""
        return Periodicity(self, actions)

    def _explain(self) -> DeadlockError:
        return explain(self)

    def _reset(self, begun: int) -> None:
        """Start counting anew; the state of the array stays."""
        if self.trace is not None:
            self.trace.clear()
        for end in self.ends.values():
            end.use = ChannelUse(end.channel)
            end.warm = False
        for run in self.cores:
            run.restart(begun)
            for counts in run.counts.values():
                counts[:] = [0, 0]

    def _located(self, error: Exception) -> Exception:
        """The same failure with the core and the line of the design it happened at."""
        runs = {run.filename: run for run in self.cores}
        for frame in traceback.extract_tb(error.__traceback__):
            run = runs.get(frame.filename)
            if run is not None:
                return failure(run.program, run.locs[(frame.lineno or 1) - 1], error)
        return error

    def _report(self, begun: int, resumptions: int, cascaded: int) -> Report:
        traffic: dict[Level, Traffic] = {level: Traffic() for level in LEVELS}
        for channel, end in self.ends.items():
            level = traffic[LEVELS[min(channel.tile.row, 2)]]
            if channel.direction == "MM2S":
                level.read += end.use.bytes
            else:
                level.written += end.use.bytes
        clock = self.machine.device.clock_hz
        return Report(
            machine=self.machine,
            ticks=self.loop.now - begun,
            ticks_per_cycle=self.clock.ticks_per_cycle,
            clock_hz=clock,
            traffic=traffic,
            channels=[end.use for end in self.ends.values()],
            cores=[self._core_use(run, begun) for run in self.cores],
            trace=Trace((self.trace or []).copy(), begun, self.loop.now),
            cascade_bytes=cascaded,
            resumptions=resumptions,
            warnings=[
                *self.machine.warnings,
                *findings(self, (self.loop.now - begun) / self.clock.ticks_per_cycle / clock),
            ],
        )

    def _core_use(self, run: CoreRun, begun: int) -> CoreUse:
        """Busy is what is not stalled, up to the end of the run."""
        stalled = run.stalled_by(self.loop.now)
        worked = self.loop.now if run.waiting else min(run.clock, self.loop.now)
        busy = worked - begun - sum(stalled.values())
        kernels = {name: (calls, ticks) for name, (calls, ticks) in run.counts.items()}
        return CoreUse(run.program.tile, run.program.name, max(busy, 0), stalled, kernels)
