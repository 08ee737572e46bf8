"""Circles without the host: a fifo too shallow, or a loop that nobody begins."""

from __future__ import annotations

from npusim.engine.core.running import CoreRun, Site
from npusim.engine.host import Host
from npusim.engine.waits import Party, Waits
from npusim.place.draft import label


def too_shallow(waits: Waits) -> str | None:
    """A circle without the host, one of whom waits for a free buffer."""
    if any(isinstance(party, Host) for party in waits.circle) or waits.back is None:
        return None
    for party in waits.circle:
        state = waits.lock(party)
        if state is not None and state.lock.counts == "free":
            fifo = state.lock.fifo
            wanted = [
                s.count or 0 for p in waits.circle if isinstance(p, CoreRun) and (s := p.blocked) and _takes(s, fifo)
            ]
            depth = _depth(waits, party)
            least = f"of at least {max(wanted)}" if max(wanted, default=0) > depth else f"larger than {depth}"
            return (
                f"fifo {fifo!r} is full on {label(state.lock.tile)} before the circle has begun to turn: give that "
                f"end a depth {least} "
                "(prod(depth=...), cons(depth=...)), or take its objects before waiting for others that depend on them."
            )
    return None


def _depth(waits: Waits, party: Party) -> int:
    """Buffers of the end of a fifo at which somebody waits."""
    if isinstance(party, CoreRun):
        site = party.blocked
        return site.port.depth if site and site.port else 0
    blocked = waits.blocked(party)
    return 0 if blocked is None else len({id(transfer.bd.buffer) for transfer in blocked[0].program})


def _takes(site: Site, fifo: str | None) -> bool:
    return site.port is not None and not site.port.produce and site.port.fifo == fifo


def no_first_object(waits: Waits) -> str | None:
    """A circle of parties that all wait for objects."""
    if any(isinstance(party, Host) for party in waits.circle) or waits.back is None:
        return None
    fifos = list(
        dict.fromkeys(
            str(s.lock.fifo) for party in waits.circle if (s := waits.lock(party)) is not None and s.lock.fifo
        )
    )
    if not fifos:
        return None
    return (
        f"everybody waits for the first object of a loop ({', '.join(map(repr, fifos))}): give one of these fifos "
        "init_values, or let "
        "one worker produce before it takes."
    )
