"""How fast the simulator is: process resumptions a second, and the same workload on SimPy.

The workload is four pipelines of three cores each, joined by ObjectFifos in shared memory, fed and drained by the shim:
a design as readers write them. SimPy runs the same pipelines, one process a core and a DMA, one container a lock.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from npusim.frontends.finder import simulated
from npusim.kernels import KernelModel
from npusim.load import as_design
from npusim.machine import Machine
from npusim.place import place

PIPELINES, STAGES, OBJECTS, SIZE = 4, 3, 2000, 256
CYCLES = (180, 240, 200)  # core cycles of the stages' kernels


def build() -> Any:
    """The workload as an IRON program (with the simulated packages active)."""
    from aie.iron import Kernel, ObjectFifo, Program, Runtime, Worker
    from aie.iron.controlflow import range_
    from aie.iron.device import NPU1, Tile

    host = np.ndarray[(OBJECTS * SIZE,), np.dtype[np.int32]]
    obj = np.ndarray[(SIZE,), np.dtype[np.int32]]
    kernels = [Kernel(f"stage{s}", "bench.o", [obj, obj]) for s in range(STAGES)]
    fifos = [[ObjectFifo(obj, name=f"f{p}_{s}") for s in range(STAGES + 1)] for p in range(PIPELINES)]

    def stage(source: Any, target: Any, kernel: Any) -> None:
        for _ in range_(OBJECTS):
            out = target.acquire(1)
            kernel(source.acquire(1), out)
            source.release(1)
            target.release(1)

    workers = [
        Worker(stage, [fifos[p][s].cons(), fifos[p][s + 1].prod(), kernels[s]], tile=Tile(p, 2 + s))
        for p in range(PIPELINES)
        for s in range(STAGES)
    ]

    def sequence(*args: Any) -> None:
        arrays, ends = args[: 2 * PIPELINES], args[2 * PIPELINES]
        for p in range(PIPELINES):
            ends[p].fill(arrays[p])
        for p in range(PIPELINES):
            ends[PIPELINES + p].drain(arrays[PIPELINES + p], wait=True)

    handles = [f[0].prod() for f in fifos] + [f[-1].cons() for f in fifos]
    runtime = Runtime(sequence, [host] * (2 * PIPELINES) + [handles])
    return Program(NPU1(), runtime, workers).resolve_program()


def models() -> dict[str, KernelModel]:
    """Each stage adds one."""

    def add_one(source: Any, target: Any) -> None:
        np.add(source, 1, out=target)

    return {f"stage{s}": KernelModel(add_one, lambda *a, device, n=n: n) for s, n in enumerate(CYCLES)}


def workload() -> Machine:
    """The placed workload."""
    with simulated():
        return place(as_design(build()))


def run_npusim(machine: Machine, data: bool) -> tuple[int, float, float]:
    """(resumptions, wall seconds, simulated cycles) of one run, with data and trace or timing only."""
    from npusim.engine import Simulator

    arrays = [np.zeros(OBJECTS * SIZE, np.int32) for _ in range(2 * PIPELINES)]
    simulator = Simulator(machine, kernels=models(), data=data, trace=data)
    begun = time.perf_counter()
    report = simulator.run(arrays)
    return report.resumptions, time.perf_counter() - begun, report.cycles


def run_simpy() -> tuple[float, float]:
    """(wall seconds, simulated cycles) of the same pipelines on SimPy."""
    import simpy

    env = simpy.Environment()

    def process(take: list[Any], give: list[Any], cycles: int) -> Any:
        for _ in range(OBJECTS):
            for lock in take:
                yield lock.get(1)
            yield env.timeout(cycles)
            for lock in give:
                yield lock.put(1)

    ends = []
    for _ in range(PIPELINES):
        free = [simpy.Container(env, 2, 2) for _ in range(STAGES + 1)]
        full = [simpy.Container(env, 2, 0) for _ in range(STAGES + 1)]
        env.process(process([free[0]], [full[0]], SIZE))
        for s in range(STAGES):
            env.process(process([free[s + 1], full[s]], [free[s], full[s + 1]], CYCLES[s]))
        ends.append(env.process(process([full[-1]], [free[-1]], SIZE)))
    begun = time.perf_counter()
    env.run(simpy.AllOf(env, ends))
    return time.perf_counter() - begun, env.now


def measure(repeat: int = 3) -> dict[str, float]:
    """The best of ``repeat`` runs: resumptions a second with data and trace, timing only, and the ratio to SimPy's time."""
    machine = workload()
    full = min((run_npusim(machine, True) for _ in range(repeat)), key=lambda r: r[1])
    timing = min((run_npusim(machine, False) for _ in range(repeat)), key=lambda r: r[1])
    simpy_seconds = min(run_simpy()[0] for _ in range(repeat))
    return {
        "resumptions": full[0],
        "full_rate": full[0] / full[1],
        "timing_rate": timing[0] / timing[1],
        "simpy_seconds": simpy_seconds,
        "full_ratio": simpy_seconds / full[1],
        "timing_ratio": simpy_seconds / timing[1],
    }


def main() -> None:
    """Print the figures."""
    figures = measure()
    print(f"workload: {PIPELINES} pipelines of {STAGES} cores, {OBJECTS} objects of {4 * SIZE} B each")
    print(f"with data and trace: {figures['full_rate']:>12,.0f} process resumptions/s")
    print(f"timing only:         {figures['timing_rate']:>12,.0f} process resumptions/s")
    print(f"SimPy, the same pipelines without data: {figures['simpy_seconds']:.2f} s")
    print(f"npusim is {figures['timing_ratio']:.1f} times as fast, with data and trace {figures['full_ratio']:.1f} times")
