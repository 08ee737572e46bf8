"""Where the DMA channels of an AIR design get their transfers from: the scripts of MemTiles and cores, launch by launch."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from npusim.air.moves import Moved, Walk
from npusim.air.order import Orderer
from npusim.air.parts import CoreParty, End, MemParty
from npusim.air.script import Event, script
from npusim.air.transfers import AskedTransfer, BufferState, FedEnd, GetTransfer, PutTransfer, RelayTransfer
from npusim.errors import UnsupportedError
from npusim.ir import Op, Value
from npusim.machine import BufferDescriptor, MemBuffer

if TYPE_CHECKING:
    from npusim.air.simulator import AirSimulator

Launches = deque[tuple[int, ...]]


class MemFeed:
    """Feeds the MemTiles of one segment instance. What one launch does is worked out once for equal launches."""

    def __init__(self, sim: AirSimulator, party: MemParty) -> None:
        self._sim, self.party = sim, party
        self.launches: Launches = deque()
        self._run = party.script()
        self._ids = self.asks_for_ids = _matters(party)
        self._known: dict[tuple[int, ...], dict[FedEnd, list[RelayTransfer]]] = {}
        self.ends = [sim.fed[end] for end in sim.air.channel_of if end.party is party]
        self._earlier: dict[MemBuffer, dict[tuple[FedEnd, Walk, bool], None]] = {}

    def pull(self, end: FedEnd) -> bool:
        """Hand out the transfers of launches until there is one for this end."""
        while not end.pending:
            if not self.launches:
                return False
            ids = self.launches.popleft()
            plan = self._plan(ids)
            before = {e: e.issued for e in self.ends}
            for other, transfers in plan.items():
                other.pending.extend((t, before) for t in transfers)
                other.issued += len(transfers)
        return True

    def _plan(self, ids: tuple[int, ...]) -> dict[FedEnd, list[RelayTransfer]]:
        key = ids if self._ids else ()
        if key not in self._known:
            if not self._ids:  # twice, so that what one launch touches counts as touched before it
                self._work_out(ids)
            self._known[key] = self._work_out(ids)
        return self._known[key]

    def _work_out(self, ids: tuple[int, ...]) -> dict[FedEnd, list[RelayTransfer]]:
        orderer = Orderer({buffer: list(accesses) for buffer, accesses in self._earlier.items()})
        plan: dict[FedEnd, list[RelayTransfer]] = {}
        copies: dict[Value, int] = {}
        for event in self._run(deque([ids])):
            if event is None:
                break
            for transfer, buffer, at in self._make(event, copies):
                writes = transfer.end.channel.direction == "S2MM"
                orderer.add(transfer, buffer, at, writes)
                plan.setdefault(transfer.end, []).append(transfer)
                self._earlier.setdefault(buffer, {})[transfer.end, at, writes] = None
        return plan

    def _make(self, event: Event, copies: dict[Value, int]) -> list[tuple[RelayTransfer, MemBuffer, Walk]]:
        move: Moved = self.party.projection.moves[event[0]].attrs["move"]
        indices, at = move.filled(event[1:])
        found = []
        for end, value, part in self._sim.resolve(self.party, move, indices, at):
            buffers = self.party.buffers[value]
            buffer = buffers[self._copy(move, value, copies) if len(buffers) > 1 else 0]
            bd = BufferDescriptor(buffer, part.offset, part.length, part.dims)
            array = self._sim.memory[buffer] if self._sim.data else None
            transfer = RelayTransfer(self._sim.fed[end], bd, array, move.loc, str(move))
            transfer.route = self._sim.sharing.get(end)
            found.append((transfer, buffer, part))
        return found

    def _copy(self, move: Moved, value: Value, copies: dict[Value, int]) -> int:
        """Which copy of a doubled buffer: each get begins another."""
        if move.side == "get":
            copies[value] = copies.get(value, 1) ^ 1
        return copies.get(value, 0)


class CoreFeed:
    """Feeds the S2MM channels of one core with the gets of its program, as far as they are known beforehand."""

    def __init__(self, sim: AirSimulator, party: CoreParty, states: dict[Value, list[BufferState]]) -> None:
        self._sim, self.party, self.states = sim, party, states
        self.launches: Launches = deque()
        filled = {op.operands[0] for op in party.projection.moves if op.name == "air.get"}
        follow = [(value, len(copies)) for value, copies in states.items() if value in filled]
        run = script(party.projection, only="get", follow=follow) if party.foreseen and filled else None
        self._events = run(self.launches) if run else None
        self.taken = 0  # events so far
        self.events_of_launch = _count(run(deque(list(sim.parties.launches)[:1]))) if run else 0
        self._transfers: dict[Event, GetTransfer] = {}

    def pull(self, end: FedEnd) -> bool:
        """Run the script until it comes to a get of this end."""
        events, known = self._events, self._transfers
        if events is None:
            return False
        while not end.pending:
            event = next(events)
            if event is None:
                return False
            self.taken += 1
            number, copy, released, *rest = event
            key = (number, copy, *rest)
            transfer = known.get(key)
            if transfer is None:
                transfer = known[key] = self.get(number, copy, tuple(rest))
            transfer.end.pending.append((transfer, released))
        return True

    def get(self, number: int, copy: int, rest: tuple[int, ...]) -> GetTransfer:
        """A get of the program."""
        made = self._made(GetTransfer if self.party.foreseen else AskedTransfer, number, copy, rest)
        assert isinstance(made, GetTransfer)
        return made

    def put(self, number: int, copy: int, rest: tuple[int, ...]) -> PutTransfer:
        """A put of the program."""
        made = self._made(PutTransfer, number, copy, rest)
        assert isinstance(made, PutTransfer)
        return made

    def _made(self, kind: Callable[..., Any], number: int, copy: int, rest: tuple[int, ...]) -> Any:
        op: Op = self.party.projection.moves[number]
        move: Moved = op.attrs["move"]
        indices, at = move.filled(rest)
        ((end, value, part),) = self._sim.resolve(self.party, move, indices, at)
        state = self.states[value][copy]
        bd = BufferDescriptor(state.buffer, part.offset, part.length, part.dims)
        array = self._sim.memory[state.buffer] if self._sim.data else None
        transfer = kind(self._sim.fed[end], bd, array, move.loc, str(move), state)
        transfer.route = self._sim.sharing.get(end)
        return transfer


def _count(events: Iterator[Event | None]) -> int:
    """How many events a script has for what it was given."""
    return sum(1 for _ in iter(lambda: next(events), None))


def _matters(party: MemParty) -> bool:
    """Whether what the MemTiles do depends on the ids of the launch."""
    ids = set(party.projection.region.entry.args)
    if not ids:
        return False
    work = list(party.projection.region.entry.ops)
    while work:
        op = work.pop()
        if ids & set(op.operands):
            return True
        work += [inner for region in op.regions for block in region.blocks for inner in block.ops]
    return False


def known_end(ends: dict[Any, End], key: Any, what: Moved) -> End:
    """The end behind a key that a script gave; it was seen when the design was placed, or the design is beyond us."""
    if key not in ends:
        raise UnsupportedError(f"{what}: an index of the channel that only some launches use is not served")
    return ends[key]
