"""How fast the simulator is: process resumptions a second, and the same workload on SimPy.

The workload is four pipelines of four cores each, all of npu1, joined by ObjectFifos in shared memory, fed and drained by the shim:
a design as readers write them. SimPy runs the same pipelines, one process a core and a DMA, one container a lock.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np

from npusim.costs import Clockwork, Costs
from npusim.devices import NPU1
from npusim.frontends.finder import simulated
from npusim.kernels import KernelModel
from npusim.load import as_design
from npusim.machine import Machine
from npusim.place import place

PIPELINES, STAGES, OBJECTS, SIZE = 4, 4, 2000, 256
CYCLES = (180, 240, 200, 220)  # core cycles of the stages' kernels


def build() -> Any:
    """The workload as an IRON program (with the simulated packages active)."""
    from aie.iron import Kernel, ObjectFifo, Program, Runtime, Worker
    from aie.iron.controlflow import range_
    from aie.iron.device import NPU1 as Phoenix
    from aie.iron.device import Tile

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
    return Program(Phoenix(), runtime, workers).resolve_program()


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
    """(wall seconds, simulated cycles) of the same workload on SimPy: the same locks, DMAs, DDR and costs, so that it ends
    at the same cycle. It has no data and no trace."""
    import simpy

    clock = Clockwork.of(NPU1, Costs())
    env = simpy.Environment()
    ddr = simpy.Resource(env)
    costs, cycles = clock.costs, clock.cycles
    latency = cycles(costs.stream_hop.value)

    def core(take: list[Any], give: list[Any], kernel: int) -> Any:
        for _ in range(OBJECTS):
            for lock in take:
                yield lock.get(1)
                yield env.timeout(cycles(costs.lock_acquire.value))
            yield env.timeout(cycles(costs.kernel_call.value + kernel))
            for lock in give:
                yield lock.put(1)
                yield env.timeout(cycles(costs.lock_release.value))
            yield env.timeout(cycles(costs.scalar["loop"]))

    def stream(pushed: Any, start: int, hops: int, take: Any, give: Any) -> Any:
        ready = (yield pushed) + start
        for _ in range(OBJECTS):
            waited = env.now
            yield take.get(1)
            begun = env.now
            if begun > waited or not waited:
                ready = max(ready, begun + hops * latency)
            ticks = 4 * SIZE * clock.stream + cycles(costs.bd_switch.value) + max(0, ready - begun)
            request = ddr.request()
            yield request
            yield env.timeout(4 * SIZE * clock.ddr_total)
            ddr.release(request)
            yield env.timeout(begun + ticks - env.now)
            yield give.put(1)

    def host(pushes: list[Any], ends: list[Any]) -> Any:
        for i, pushed in enumerate(pushes):
            yield env.timeout(cycles((costs.task_push_first if i < 2 else costs.task_push).value))
            pushed.succeed(env.now)
        for end in ends:
            yield end
            yield env.timeout(cycles(costs.task_token.value))

    pushes = [env.event() for _ in range(2 * PIPELINES)]
    ends = []
    for p in range(PIPELINES):
        free = [simpy.Container(env, 2, 2) for _ in range(STAGES + 1)]
        full = [simpy.Container(env, 2, 0) for _ in range(STAGES + 1)]
        env.process(stream(pushes[p], cycles(costs.shim_read_start.value), 3, free[0], full[0]))
        for s in range(STAGES):
            env.process(core([free[s + 1], full[s]], [free[s], full[s + 1]], CYCLES[s]))
        start = cycles(costs.shim_write_start.value)
        ends.append(env.process(stream(pushes[PIPELINES + p], start, STAGES + 2, full[-1], free[-1])))
    begun = time.perf_counter()
    env.run(env.process(host(pushes, ends)))
    return time.perf_counter() - begun, env.now / clock.ticks_per_cycle


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


def matmul() -> tuple[float, float]:
    """(wall seconds, largest error relative to the largest element) of a 512 x 512 x 512 bf16 product with data and trace on
    npu1's 4 x 4 compute tiles; making and placing the design not counted."""
    from ml_dtypes import bfloat16

    from npusim.accuracy.gemm import Shape, gemm
    from npusim.accuracy.running import built
    from npusim.run import simulate

    machine = place(built(partial(gemm, shape=Shape(512, 512, 512, 64, 64, 64)), NPU1))
    a, b = np.random.default_rng(0).standard_normal((2, 512, 512)).astype(bfloat16)
    c = np.zeros(512 * 512, bfloat16)
    begun = time.perf_counter()
    simulate(machine, [a.reshape(-1), b.reshape(-1), c])
    seconds = time.perf_counter() - begun
    want = a.astype(np.float32) @ b.astype(np.float32)
    return seconds, float(np.abs(c.astype(np.float32).reshape(want.shape) - want).max() / np.abs(want).max())


def main() -> None:
    """Print the figures."""
    figures = measure()
    print(f"workload: {PIPELINES} pipelines of {STAGES} cores, {OBJECTS} objects of {4 * SIZE} B each")
    print(f"with data and trace: {figures['full_rate']:>12,.0f} process resumptions/s")
    print(f"timing only:         {figures['timing_rate']:>12,.0f} process resumptions/s")
    print(f"SimPy, the same pipelines without data: {figures['simpy_seconds']:.2f} s")
    print(f"npusim is {figures['timing_ratio']:.1f} times as fast, with data and trace {figures['full_ratio']:.1f} times")
    print(f"512 x 512 x 512 bf16 matrix product on 16 cores, with data and trace: {matmul()[0]:.2f} s")
