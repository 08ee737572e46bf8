"""ObjectFifo ends and locks: where a core waits and where it lets others go on."""

from __future__ import annotations

from npusim.engine.core.writer import Site, Writer, serves
from npusim.errors import DesignError
from npusim.ir import Op
from npusim.machine import FifoPort, MachineLock

RELEASE = 1
ACQUIRE_EQUAL = 0


def _port(w: Writer, op: Op) -> tuple[str, FifoPort]:
    key = (str(op.attrs["objFifo_name"]), int(op.attrs["port"]) == 0)
    port = w.core.ports.get(key)
    if port is None:
        end = "producer" if key[1] else "consumer"
        raise DesignError(f"core {w.core.name!r} at {op.loc} is not the {end} of fifo {key[0]!r}")
    return w.ports.setdefault(key, str(len(w.ports))), port


@serves("aie.objectfifo.acquire")
def acquire(w: Writer, op: Op, depth: int) -> None:
    """Hold ``size`` objects in all: wait for those not yet held."""
    i, port = _port(w, op)
    size = int(op.attrs["size"])
    w.windows[op.result] = (i, port)
    w.settle(depth)
    w.line(depth, f"if h{i} < {size}:")
    count = f"({size} - h{i})" if port.factor == 1 else f"({size} - h{i}) * {port.factor}"
    if port.acquire_lock is not None:
        _wait(w, depth + 1, port.acquire_lock, count, Site(op.loc, port.acquire_lock, port, size))
        w.line(depth + 1, f"c += {w.ticks(w.around.clock.costs.lock_acquire.value)}")
    w.line(depth + 1, f"h{i} = {size}")


@serves("aie.objectfifo.release")
def release(w: Writer, op: Op, depth: int) -> None:
    """Give the oldest ``size`` objects on. Releases in a row go at one time, their costs come after."""
    i, port = _port(w, op)
    size = int(op.attrs["size"])
    if not w.released:
        w.flush(depth)
        w.released = True
    refusal = f"release({size}) of fifo {port.fifo!r} while fewer are held"
    w.line(depth, f"if h{i} < {size}: raise ValueError({refusal!r})")
    w.line(depth, f"h{i} -= {size}")
    if w.around.data and len(port.buffers) > 1:
        w.line(depth, f"p{i} = (p{i} + {size}) % {len(port.buffers)}")
    if port.release_lock is not None:
        _give(w, depth, port.release_lock, str(size * port.factor))
        w.spend(w.around.clock.costs.lock_release.value)


@serves("aie.objectfifo.subview.access")
def element(w: Writer, op: Op, depth: int) -> None:
    """One object of the window that an acquire gave."""
    if not w.around.data:
        return
    i, port = w.windows[op.operands[0]]
    if port not in w.rings:
        w.rings[port] = tuple(w.around.memory[buffer] for buffer in port.buffers)
    ring, n = w.bind("R", w.rings[port]), len(port.buffers)
    index = f"(p{i} + {int(op.attrs['index'])}) % {n}" if n > 1 else "0"
    w.line(depth, f"{w.new(op.result)} = {ring}[{index}]")


@serves("aie.use_lock")
def use_lock(w: Writer, op: Op, depth: int) -> None:
    """An explicit lock operation: acquire (at least, or exactly) or release."""
    lock = w.core.locks.get(op.operands[0])
    if lock is None:
        raise DesignError(f"core {w.core.name!r} at {op.loc} uses a lock that its design does not have")
    count = w.constant(op.operands[1])
    text = str(int(count)) if count is not None else f"int({w.name(op.operands[1])})"
    action = int(op.attrs["action"])
    if action == RELEASE:
        w.flush(depth)
        _give(w, depth, lock, text)
        w.spend(w.around.clock.costs.lock_release.value)
        return
    w.settle(depth)
    _wait(w, depth, lock, text, Site(op.loc, lock, None, None), equal=action == ACQUIRE_EQUAL)
    w.spend(w.around.clock.costs.lock_acquire.value)


def _wait(w: Writer, depth: int, lock: MachineLock, count: str, site: Site, equal: bool = False) -> None:
    """Wait for a lock and take ``count`` of it (``equal``: wait for exactly that value and leave it)."""
    state = w.bind("L", w.around.locks[lock])
    lacks = f"{state}.value != {count}" if equal else f"{state}.value < {count}"
    number = len(w.run.sites)
    w.run.sites.append(site)
    w.line(depth, f"if {lacks}:")
    w.line(depth + 1, "if c: U[0] += c; yield c; c = 0")
    w.line(depth + 1, f"if {lacks}:")
    w.line(depth + 2, f"ME.at = {number}; ME.since = S.now")
    w.line(depth + 2, f"while {lacks}: yield {state}")
    w.line(depth + 2, "stalled(ME)")
    if not equal:
        w.line(depth, f"{state}.value -= {count}")
        if site.port is None:  # somebody may wait for an exact value
            w.line(depth, f"if {state}.waiters: wake({state})")


def _give(w: Writer, depth: int, lock: MachineLock, count: str) -> None:
    state = w.bind("L", w.around.locks[lock])
    w.line(depth, f"{state}.value += {count}")
    w.line(depth, f"if {state}.waiters: wake({state})")
