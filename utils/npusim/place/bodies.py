"""What a core's body does with its fifos: ports that exist, windows that fit, releases that match.

The over-release rule is the real one (mlir-aie's objectFifo transform, August 2026): within one loop body, acquires and
releases that stand directly in it must balance; a fifo whose accesses are spread over nested loops is left to the run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from npusim.errors import DesignError
from npusim.ir import Op, Region, walk
from npusim.machine import CoreProgram, FifoPort
from npusim.messages import explain
from npusim.place.draft import Draft, label
from npusim.place.loops import trips

ACQUIRE, RELEASE = "aie.objectfifo.acquire", "aie.objectfifo.release"
_End = tuple[str, bool]  # (fifo name, produce)


def check_body(draft: Draft, program: CoreProgram) -> None:
    """Raise DesignError for fifo accesses that cannot work; warn about objects that are never given back."""
    for op in _accesses(program.body):
        port = _port(draft, program, op)
        if op.name == ACQUIRE and op.attrs["size"] > port.depth:
            raise _window_too_large(program, op, port)
    for loop in _loops(program.body):
        _check_balance(program, loop.regions[0])
    _warn_unreleased(draft, program)


def used_ends(region: Region) -> set[_End]:
    """The fifo ends that a body acquires or releases."""
    return {_end(op) for op in _accesses(region)}


def _accesses(region: Region) -> Iterator[Op]:
    return (op for op in walk(region) if op.name in (ACQUIRE, RELEASE))


def _end(op: Op) -> _End:
    return op.attrs["objFifo_name"], op.attrs["port"] == 0


def _port(draft: Draft, program: CoreProgram, op: Op) -> FifoPort:
    name, produce = _end(op)
    if (name, produce) in program.ports:
        return program.ports[name, produce]
    linked = any(name in {f.name for f in (*link.inputs, *link.outputs)} for link in draft.design.links)
    role = "producer" if produce else "consumer"
    if linked:
        problem = (
            f"worker {program.name!r} on {label(program.tile)} accesses fifo {name!r}, which is split, joined or forwarded "
            "there."
        )
        phrase = "currently cannot access objectFifo used in ObjectFifoLinkOp"
        hint = "the tile's DMA handles the objects of a link; let the worker use the fifo at the other side of it."
    else:
        problem = (
            f"worker {program.name!r} on {label(program.tile)} uses fifo {name!r} as its {role}, but that end is "
            "elsewhere."
        )
        phrase = f"{role} port of objectFifo accessed by core running on non-{role} tile"
        hint = "pass the worker the handle that it uses: prod() to produce, cons() to consume."
    raise DesignError(explain(problem, phrase=phrase, hint=hint, loc=op.loc))


def _window_too_large(program: CoreProgram, op: Op, port: FifoPort) -> DesignError:
    size = op.attrs["size"]
    return DesignError(
        explain(
            f"worker {program.name!r} acquires {size} objects of fifo {port.fifo!r} at once, but its depth there is "
            f"{port.depth}.",
            phrase=f"Number of elements to acquire {size} must be smaller than depth {port.depth}",
            hint=f"give the fifo a depth of {size} or more.",
            loc=op.loc,
        )
    )


def _check_balance(program: CoreProgram, region: Region) -> None:
    inner = {_end(op) for loop in _loops(region) for op in _accesses(loop.regions[0])}
    acquired, released = Counter[_End](), Counter[_End]()
    where: dict[_End, Op] = {}
    for op in _direct(region):
        counter = acquired if op.name == ACQUIRE else released
        counter[_end(op)] += op.attrs["size"]
        where[_end(op)] = op
    for end, n in released.items():
        if end not in inner and n > acquired[end]:
            raise _over_release(program, end, n, acquired[end], where[end])


def _loops(region: Region) -> list[Op]:
    return [op for op in walk(region) if op.name == "scf.for"]


def _direct(region: Region) -> Iterator[Op]:
    """Fifo accesses of a body that stand in no further loop (a branch is no loop)."""
    for block in region.blocks:
        for op in block.ops:
            if op.name in (ACQUIRE, RELEASE):
                yield op
            elif op.name != "scf.for":
                for inner in op.regions:
                    yield from _direct(inner)


def _over_release(program: CoreProgram, end: _End, released: int, acquired: int, op: Op) -> DesignError:
    return DesignError(
        explain(
            f"worker {program.name!r} on {label(program.tile)} releases {released} objects of fifo {end[0]!r} in one "
            "turn but acquires "
            f"{acquired}.",
            phrase="cannot release more elements than are already acquired",
            hint="release as many objects as the turn acquires.",
            loc=op.loc,
        )
    )


def _warn_unreleased(draft: Draft, program: CoreProgram) -> None:
    released = {_end(op) for op in walk(program.body) if op.name == RELEASE}
    warned: set[_End] = set()
    for loop in _loops(program.body):
        if _runs_once(loop):
            continue
        for op in _accesses(loop.regions[0]):
            end = _end(op)
            if end in released or end in warned:
                continue
            warned.add(end)
            again = "sees the same object in every turn" if not end[1] else "overwrites the same object in every turn"
            draft.warn(
                explain(
                    f"worker {program.name!r} on {label(program.tile)} acquires from fifo {end[0]!r} in a loop and "
                    "never releases: it "
                    f"{again}, and the other side waits.",
                    hint="call release() when the object is done with.",
                    loc=op.loc,
                )
            )


def _runs_once(loop: Op) -> bool:
    turns = trips(loop)
    return turns is not None and turns <= 1
