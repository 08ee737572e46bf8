"""Lock ids: those that the design gives, then the lowest free ones in the order of the module."""

from __future__ import annotations

from npusim.errors import CapacityError, DesignError
from npusim.ir import UNKNOWN
from npusim.machine import Coord, MachineLock
from npusim.messages import count, explain
from npusim.place.draft import NOWHERE, Draft, label


def assign_locks(draft: Draft) -> None:
    """Give every lock an id. Raises CapacityError if a tile runs out, DesignError if two locks want the same id."""
    by_tile: dict[Coord, list[MachineLock]] = {}
    for lock in draft.locks:
        by_tile.setdefault(lock.tile, []).append(lock)
    for tile, locks in by_tile.items():
        _assign(draft, tile, locks)


def _assign(draft: Draft, tile: Coord, locks: list[MachineLock]) -> None:
    limit = draft.limits(tile).locks.value
    if len(locks) > limit:
        raise _too_many(draft, tile, locks, limit)
    taken: dict[int, MachineLock] = {}
    for lock in locks:
        if lock.lock_id == NOWHERE:
            continue
        if lock.lock_id in taken or not 0 <= lock.lock_id < limit:
            raise _bad_id(tile, lock, taken.get(lock.lock_id), limit)
        taken[lock.lock_id] = lock
    free = iter(sorted(set(range(limit)) - set(taken)))
    for lock in locks:
        if lock.lock_id == NOWHERE:
            lock.lock_id = next(free)
    _check_values(draft, tile, locks)


def _check_values(draft: Draft, tile: Coord, locks: list[MachineLock]) -> None:
    top = draft.limits(tile).lock_max.value
    for lock in locks:
        if lock.init > top:
            text = explain(
                f"lock {lock.name!r} of {label(tile)} would start at {lock.init}, but a lock counts to {top} at most.",
                details=[f"it belongs to fifo {lock.fifo!r}: depth times repeat_count"] if lock.fifo else [],
                hint="use a smaller depth or repeat_count.",
            )
            raise CapacityError(text)


def _too_many(draft: Draft, tile: Coord, locks: list[MachineLock], limit: int) -> CapacityError:
    users: dict[str, int] = {}
    for lock in locks:
        what = f"fifo {lock.fifo!r}" if lock.fifo else f"lock {lock.name!r}"
        users[what] = users.get(what, 0) + 1
    text = explain(
        f"{label(tile)} needs {len(locks)} locks but has {limit}.",
        details=[f"{what}: {count(n, 'lock')}" for what, n in users.items()],
        phrase=(
            "'aie.lock' op not allocated a lock.",
            f"because only {limit} locks available in this tile.",
            "No more locks to allocate!",
        ),
        hint="every fifo end takes two locks (two for each part of a split or join); use fewer fifos on this tile, or "
        "move a worker to another one.",
        loc=next((f.loc for f in draft.design.fifos for lock in locks if lock.fifo == f.name), UNKNOWN),
    )
    return CapacityError(text)


def _bad_id(tile: Coord, lock: MachineLock, other: MachineLock | None, limit: int) -> DesignError:
    if other is None:
        problem = f"lock {lock.name!r} asks for id {lock.lock_id}, but {label(tile)} has locks 0 to {limit - 1}."
        return DesignError(explain(problem, hint="leave the id out to have a free one chosen."))
    text = explain(
        f"locks {other.name!r} and {lock.name!r} of {label(tile)} both ask for id {lock.lock_id}.",
        phrase=f"is assigned to the same lock ({lock.lock_id}) as another op.",
        hint="leave the id out to have a free one chosen.",
    )
    return DesignError(text)
