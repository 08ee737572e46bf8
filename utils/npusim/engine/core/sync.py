"""ObjectFifo ends and locks: where a core waits and where it lets others go on."""

from __future__ import annotations

from npusim.engine.core.running import Site
from npusim.engine.core.writer import Writer, serves
from npusim.engine.state import LockState
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
    step = w.step("acquired", size, port.fifo)
    w.line(depth, f"if h{i} < {size}:")
    if port.acquire_lock is not None:
        count = "1" if size * port.factor == 1 else f"({size} - h{i}) * {port.factor}"
        _take(w, depth + 1, port.acquire_lock, count, Site(op.loc, port.acquire_lock, port, size))
        w.line(depth + 1, f"t += {w.ticks(w.around.clock.costs.lock_acquire.value)}")
    w.line(depth + 1, f"h{i} = {size}")
    w.line(depth, f"elif s{i} == {step}: ME.again.add({step})")
    w.line(depth, f"z = s{i} = {step}")


@serves("aie.objectfifo.release")
def release(w: Writer, op: Op, depth: int) -> None:
    """Give the oldest ``size`` objects on."""
    i, port = _port(w, op)
    size = int(op.attrs["size"])
    w.settle(depth)
    refusal = f"release({size}) of fifo {port.fifo!r}, of which fewer objects are held: release as many as are acquired"
    w.line(depth, f"if h{i} < {size}: raise ValueError({refusal!r})")
    w.line(depth, f"h{i} -= {size}; n{i} += {size}; s{i} = -1; z = {w.step('released', size, port.fifo)}")
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
    w.settle(depth)
    if action == RELEASE:
        _give(w, depth, lock, text)
        w.spend(w.around.clock.costs.lock_release.value)
    else:
        _take(w, depth, lock, text, Site(op.loc, lock, None, None), equal=action == ACQUIRE_EQUAL)
        w.spend(w.around.clock.costs.lock_acquire.value)
    w.done(depth, "released" if action == RELEASE else "acquired", None, f"lock {lock.name!r}")


def _take(w: Writer, depth: int, lock: MachineLock, count: str, site: Site, equal: bool = False) -> None:
    """Wait for a lock and take ``count`` of it (``equal``: wait for exactly that value and leave it)."""
    state = w.around.locks[lock]
    number = len(w.run.sites)
    w.run.sites.append(site)
    if state.shared:
        _take_shared(w, depth, state, count, number, equal)
    else:
        _take_tokens(w, depth, state, count, number)


def _take_tokens(w: Writer, depth: int, state: LockState, count: str, site: int) -> None:
    """The tokens carry the tick from which the core can go on."""
    lock, times = w.bind("L", state), w.bind("D", state.times)
    lacks = f"not {times}" if count == "1" else f"len({times}) < {count}"
    _block(w, depth, lacks, lock, site)
    w.line(depth, f"a = {times}.popleft()" if count == "1" else f"for _ in range({count}): a = {times}.popleft()")
    w.line(depth, f"if a > t: t = stalled(ME, {site}, t, a)")


def _take_shared(w: Writer, depth: int, state: LockState, count: str, site: int, equal: bool) -> None:
    """A lock that others take or set as well is looked at in the order of time."""
    lock = w.bind("L", state)
    w.line(depth, "ME.clock = t; yield (t, KEY)")
    _block(w, depth, f"{lock}.value != {count}" if equal else f"{lock}.value < {count}", lock, site)
    w.line(depth, f"if S.now > t: t = stalled(ME, {site}, t, S.now)")
    if not equal:
        w.line(depth, f"{lock}.value -= {count}")
        w.line(depth, f"if {lock}.waiters: wake({lock})")


def _block(w: Writer, depth: int, lacks: str, lock: str, site: int) -> None:
    """Wait while something lacks."""
    w.line(depth, f"if {lacks}:")
    w.line(depth + 1, f"ME.at = {site}; ME.clock = t")
    w.line(depth + 1, f"while {lacks}: yield {lock}")
    w.line(depth + 1, "ME.at = None")


def _give(w: Writer, depth: int, lock: MachineLock, count: str) -> None:
    state = w.around.locks[lock]
    name = w.bind("L", state)
    if state.shared:
        w.line(depth, "ME.clock = t; yield (t, KEY)")
        w.line(depth, f"{name}.value += {count}")
    elif count == "1":
        w.line(depth, f"{w.bind('D', state.times)}.append(t)")
    else:
        w.line(depth, f"{w.bind('D', state.times)}.extend([t] * {count})")
    w.line(depth, f"if {name}.waiters: wake({name})")
