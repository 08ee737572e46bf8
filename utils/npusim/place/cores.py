"""Core programs, with the fifo ports, buffers and locks that their bodies name bound to the machine's."""

from __future__ import annotations

from npusim.errors import DesignError
from npusim.graph import Buffer, Core, Lock
from npusim.ir import walk
from npusim.machine import Coord, CoreProgram, FifoPort
from npusim.messages import explain
from npusim.place.bodies import check_body
from npusim.place.draft import Draft, End, label
from npusim.place.memory import DEFAULT_STACK
from npusim.place.neighbours import reaches


def bind_cores(draft: Draft) -> list[CoreProgram]:
    """A CoreProgram for every core. Raises DesignError for what a core names but cannot use from its tile."""
    ports = _ports(draft)
    seen: dict[Coord, Core] = {}
    programs = []
    for core in draft.design.cores:
        tile = draft.at(core.tile)
        if tile in seen:
            raise _two_workers(tile, seen[tile], core)
        seen[tile] = core
        program = CoreProgram(
            tile, core.body, core.name, DEFAULT_STACK if core.stack_size is None else core.stack_size, loc=core.loc
        )
        program.ports = {(name, produce): port for (name, produce, at), port in ports.items() if at == tile}
        _bind_values(draft, program)
        check_body(draft, program)
        programs.append(program)
    return programs


def _two_workers(tile: Coord, first: Core, second: Core) -> DesignError:
    return DesignError(
        explain(
            f"two workers are placed on {label(tile)}; a compute tile runs one core.",
            details=[f"worker {first.name!r} ({first.loc})", f"worker {second.name!r} ({second.loc})"],
            phrase="the other core is here",
            hint="give one of the workers another tile=, or leave it out to have one chosen.",
            loc=second.loc,
        )
    )


def _ports(draft: Draft) -> dict[tuple[str, bool, Coord], FifoPort]:
    """The fifo ports that cores may use, by fifo, side and tile. A link's own ends are for its DMA alone."""
    found: dict[tuple[str, bool, Coord], FifoPort] = {}
    for end in draft.shared:
        found[end.fifo.name, True, draft.at(end.fifo.producer)] = _port(end, True)
        found[end.fifo.name, False, draft.at(end.fifo.consumers[0])] = _port(end, False)
    for stream in draft.streams:
        for end in stream.ends:
            if end.link is None and end.tile.row > 1:
                found[end.fifo.name, end.produce, end.tile] = _port(end, end.produce)
    return found


def _port(end: End, produce: bool) -> FifoPort:
    assert end.ring is not None
    free, full = end.ring.pairs[0] if end.ring.pairs else (None, None)
    return FifoPort(
        fifo=end.fifo.name,
        produce=produce,
        buffers=end.ring.buffers,
        acquire_lock=free if produce else full,
        release_lock=full if produce else free,
        depth=end.depth,
        factor=(end.fifo.repeat_count or 1) if produce else 1,
    )


def _bind_values(draft: Draft, program: CoreProgram) -> None:
    for op in walk(program.body):
        for value in op.operands:
            thing = value.owner
            if isinstance(thing, Buffer) and thing in draft.own_buffers:
                mine = draft.own_buffers[thing]
                _check_reach(draft, program, mine.tile, f"buffer {mine.name!r}", thing.loc)
                program.buffers[value] = mine
            elif isinstance(thing, Lock) and thing in draft.own_locks:
                lock = draft.own_locks[thing]
                _check_reach(draft, program, lock.tile, f"lock {lock.name!r}", thing.loc)
                program.locks[value] = lock


def _check_reach(draft: Draft, program: CoreProgram, other: Coord, what: str, loc: object) -> None:
    if reaches(draft.design.device, program.tile, other):
        return
    raise DesignError(
        explain(
            f"worker {program.name!r} on {label(program.tile)} uses {what} of {label(other)}, whose memory it does not reach.",
            phrase="in Column " + f"{other.col} and Row {other.row} is accessed from an unreachable tile in Column "
            f"{program.tile.col} and Row {program.tile.row}",
            hint="a core reaches its own memory and those of its west, north and south neighbours: pin the worker or the "
            "buffer next to the other.",
            loc=program.loc,
        )
    )
