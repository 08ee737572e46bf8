"""What a run that ended shows to be probably wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

from npusim.engine.core.running import CoreRun, Step
from npusim.engine.packets import PacketStream
from npusim.ir import walk
from npusim.machine import MemBuffer
from npusim.messages import explain
from npusim.place.draft import label

if TYPE_CHECKING:
    from npusim.engine.simulator import Simulator

DRIVER_TIMEOUT = 60.0
"""Seconds after which the driver aborts a run (torvalds/linux drivers/accel/amdxdna HWCTX_MAX_TIMEOUT, 60,000 ms). Conf. M."""


def findings(sim: Simulator, seconds: float) -> list[str]:
    """Warnings about a run of that many simulated seconds."""
    return [*_unfinished(sim), *_idle(sim), *_again(sim), *_early(sim), *_strays(sim), *_slow(sim, seconds)]


def _unfinished(sim: Simulator) -> list[str]:
    assert sim.host is not None
    return [
        explain(
            f"the host sequence ended while the drain of fifo {task.name!r} was still running on {task.channel}: its "
            "data may be "
            "incomplete.",
            hint="drain with wait=True.",
            loc=task.op.loc,
        )
        for task in sim.host.unfinished()
        if task.channel.direction == "S2MM"
    ]


def _who(run: CoreRun) -> str:
    return f"worker {run.program.name!r} on {label(run.program.tile)}"


def _idle(sim: Simulator) -> list[str]:
    return [_idle_text(run) for run in sim.cores if run.idle]


def _idle_text(run: CoreRun) -> str:
    site = run.blocked
    assert site is not None
    what = "lock" if site.port is None else "free object of fifo" if site.port.produce else "object of fifo"
    name = site.lock.name if site.port is None else site.port.fifo
    return explain(
        f"{_who(run)} did nothing in the whole run: at its end it still waits for its first {what} {name!r}.",
        hint="give it work, or leave the worker out.",
        loc=site.loc,
    )


def _again(sim: Simulator) -> list[str]:
    return [
        _again_text(run, run.steps[number])
        for run in sim.cores
        for number in sorted(run.again)
        if _gives(run, run.steps[number])
    ]


def _gives(run: CoreRun, step: Step) -> bool:
    """Whether the core releases that fifo somewhere; that it never does is known before the run."""
    return any(
        op.name == "aie.objectfifo.release" and op.attrs["objFifo_name"] == step.what for op in walk(run.program.body)
    )


def _again_text(run: CoreRun, step: Step) -> str:
    objects = "the same object" if step.amount == 1 else "the same objects"
    return explain(
        f"{_who(run)} acquires from fifo {step.what!r} once more without having released anything since it last did: "
        f"it gets {objects} "
        "again, not the next.",
        hint="release when the object is done with, in every turn; or acquire it once, before the loop.",
        loc=step.loc,
    )


def _early(sim: Simulator) -> list[str]:
    assert sim.host is not None
    return [
        explain(
            f"{_who(run)} read the run-time parameter {buffer.name!r} before the host first wrote it, so it saw the "
            "old value.",
            hint="let it wait for a WorkerRuntimeBarrier that the host sets after writing.",
            loc=buffer.loc,
        )
        for run, buffer in sim.host.too_late
    ]


def readers(sim: Simulator, buffer: MemBuffer) -> list[CoreRun]:
    """The cores that have read a buffer so far, of those the host writes."""
    return [run for run in sim.cores if buffer in run.read]


def _strays(sim: Simulator) -> list[str]:
    strays = [item for stream in sim.streams if isinstance(stream, PacketStream) for item in stream.strays.items()]
    return [
        explain(
            f"{times} packet(s) of id {came} (stream {name!r}) came to {channel} when its descriptor was the one for "
            "packets of "
            f"id {expected}: the data of the two are in each other's buffers.",
            hint="the order in which packets arrive must be that of the descriptors: use a channel for each stream, "
            "or let the "
            "host start them in that order and wait in between.",
        )
        for (name, channel, came, expected), times in strays
    ]


def _slow(sim: Simulator, seconds: float) -> list[str]:
    if seconds <= DRIVER_TIMEOUT:
        return []
    busiest = max(sim.cores, key=lambda run: sum(c[1] for c in run.counts.values()), default=None)
    most = f" Most of it is {_who(busiest)}." if busiest else ""
    return [
        explain(
            f"the run takes {seconds:,.0f} s (simulated). It is slow, not stuck, but the driver gives up after "
            f"{DRIVER_TIMEOUT:.0f} s "
            f"and reports the same as for a hang.{most}",
            phrase="Kernel returned ert_cmd_state.ERT_CMD_STATE_TIMEOUT",
            hint="give each run less work, or use a faster kernel.",
        )
    ]
