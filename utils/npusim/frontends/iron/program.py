"""``Program``: a device, a runtime and its workers, resolved into one design."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from npusim import graph
from npusim.errors import DesignError
from npusim.frontends.iron.context import resolving, warn
from npusim.frontends.iron.current import note_resolved
from npusim.frontends.iron.device import Device, Tile
from npusim.frontends.iron.enums import TraceMode
from npusim.frontends.iron.handle import ObjectFifoHandle
from npusim.frontends.iron.module import Module
from npusim.frontends.iron.objectfifo import ObjectFifo
from npusim.frontends.iron.resolvable import Resolvable
from npusim.frontends.iron.runtime import Runtime
from npusim.frontends.iron.scratchpad import ScratchpadParameter
from npusim.frontends.iron.verify import verify
from npusim.frontends.iron.worker import Worker
from npusim.frontends.tracing import DesignTypeError, here


class Program:
    """A whole design. It can be resolved once; build everything anew for another time."""

    def __init__(self, device: Device | None, rt: Runtime, workers: list[Any] | None = None) -> None:
        self._loc = here()
        if device is None:
            raise DesignError(
                "Program needs a device, but none was selected: pass one, such as NPU2(), or choose one with "
                "iron.set_current_device()"
            )
        if not isinstance(device, Device):
            raise DesignTypeError(f"Program's device is one of aie.iron.device, such as NPU2(), got {device!r}")
        if not isinstance(rt, Runtime):
            raise DesignTypeError(f"Program needs a Runtime as its second argument, got {rt!r}")
        self._device = device
        self._rt = rt
        self._workers: list[Worker] = [_worker(w) for w in workers or []]
        self._resolved = False

    def enable_trace(
        self,
        trace_size: int | None = None,
        workers: list[Any] | None = None,
        reuse_output_buffer: bool = False,
        coretile_events: list[Any] | None = None,
        coremem_events: list[Any] | None = None,
        memtile_events: list[Any] | None = None,
        shimtile_events: list[Any] | None = None,
        egress_shim_col: int = 0,
        core_trace_mode: Any = TraceMode.EventTime,
    ) -> None:
        """Accepted without effect: the simulated NPU always records its own trace, at no cost in the simulated time."""

    def resolve_program(self, device_name: str = "main") -> Module:
        """Trace everything into one design. DesignError for a rule broken, UnsupportedError for what is not served."""
        if self._resolved:
            raise DesignError(
                f"this Program (made at {self._loc}) was resolved already, and a Program can be resolved once: build fifos, "
                "workers, Runtime and Program anew"
            )
        self._resolved = True
        fresh: Callable[[], Device] = type(self._device)  # a device class of aie.iron.device takes no arguments
        self._device = fresh()
        into = graph.Design(self._device.facts, device_name)
        with resolving(into):
            self._resolve(into)
            self._warn_about_absent_workers()
        verify(into)
        module = Module(into)
        note_resolved(module)
        return module

    def _resolve(self, into: graph.Design) -> None:
        """In the order of the real package, so that everything has the same place in the module."""
        rt, args = self._rt, [(w, w.flat_fn_args) for w in self._workers]
        for each in (a for _, flat in args for a in flat if isinstance(a, ScratchpadParameter)):
            each.resolve()
        fifos = self._handles()
        self._resolve_tiles(fifos, into)
        for handle in fifos:
            handle.resolve()
        for thing in (*rt.flows, *rt.locks):
            thing.resolve()
        for dma in rt.tile_dmas:
            for buffer in dma.all_buffers_and_locks()[0]:
                buffer._tile = dma.tile if buffer._tile is None else buffer._tile
                buffer.resolve()
        for _, flat in args:
            for arg in flat:
                if isinstance(arg, Resolvable):
                    arg.resolve()
        for worker in self._workers:
            worker.resolve()
        for worker in self._workers:
            for cascade in worker._outgoing_cascades:
                cascade.resolve()
        for dma in rt.tile_dmas:
            dma.resolve()
        rt.resolve()
        for parameter in rt._scratchpad_parameters.values():
            parameter.resolve()

    def _handles(self) -> list[ObjectFifoHandle]:
        """A handle of every fifo that workers or the runtime use, in the order of the fifos' names."""
        handles = {*self._rt.fifos, *(h for w in self._workers for h in w.fifos)}
        by_name: dict[str, ObjectFifo] = {}
        for handle in handles:
            fifo = handle._object_fifo
            other = by_name.setdefault(fifo.name, fifo)
            if other is not fifo:
                places = " and ".join(sorted((str(other._loc), str(fifo._loc))))
                raise DesignError(f"two ObjectFifos are named {fifo.name!r} (made at {places}): give each its own name")
        return sorted(handles, key=lambda h: h.name)

    def _resolve_tiles(self, fifos: list[ObjectFifoHandle], into: graph.Design) -> None:
        for tile in self._tiles(fifos):
            self._device.resolve_tile(tile)
            if tile.op not in into.tiles:
                into.tiles.append(tile.op)

    def _tiles(self, fifos: list[ObjectFifoHandle]) -> list[Tile]:
        """Every tile of the design, in order of appearance."""
        tiles: list[Tile] = []
        for worker in self._workers:
            tiles.append(worker.tile)
            for arg in worker.flat_fn_args:
                if isinstance(arg, Resolvable):
                    tiles += arg.tiles()
        for handle in fifos:
            tiles += handle._object_fifo.tiles()
            delegate = handle._object_fifo._delegate_tile
            tiles += [] if delegate is None else [delegate]
        for thing in (*self._rt.flows, *self._rt.tile_dmas):
            tiles += thing.all_tiles()
        return [*tiles, *(lock.tile for lock in self._rt.locks)]

    def _warn_about_absent_workers(self) -> None:
        """The real tools leave such a core empty."""
        for fifo in dict.fromkeys(h._object_fifo for h in self._handles()):
            for end in fifo.endpoints():
                if isinstance(end, Worker) and end not in self._workers:
                    warn(
                        f"{end.what} uses ObjectFifo {fifo.name!r} but is not in Program(workers=[...]): its core stays "
                        "empty and the fifo's other end will wait for ever"
                    )


def _worker(w: Any) -> Worker:
    if isinstance(w, (list, tuple)):
        raise DesignTypeError("Program's workers are a flat list: flatten a grid with [w for row in grid for w in row]")
    if not isinstance(w, Worker):
        raise DesignTypeError(f"Program's workers are Workers, got {w!r}")
    return w
