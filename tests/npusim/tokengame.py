"""An abstract token game of a network: who can take what from where, without time, memory or an engine.

Everybody (host, workers, streams) is a list of moves; a move takes tokens from places and puts tokens into places, in one
go. A token is a free slot, a full slot, or a host transfer started or done. The question whether the host gets to its end is
answered by trying every order of moves (:func:`can_end`). What objects hold is worked out separately: the n-th object of a
fifo is what its producer wrote n-th, whatever the order was.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.npusim.networks import HOST, OBJECT, UNIT, Access, Junction, Network, Pipe, Program, Worker

TURNS, UNITS = 24, 96
"""Turns of an endless worker and units of a stream that are looked at: more than the host's transfers allow."""

Place = tuple[Any, ...]


@dataclass
class Step:
    """One move. ``event``: something that the data depends on (worker, access)."""

    takes: dict[Place, int]
    gives: dict[Place, int]
    event: tuple[int, Access] | None = None


@dataclass
class Game:
    """Moves of everybody, the host first, and the tokens that are there at the start."""

    actors: list[list[Step]] = field(default_factory=list)
    start: Counter[Place] = field(default_factory=Counter)

    def enabled(self, actor: int, at: tuple[int, ...], tokens: Counter[Place]) -> bool:
        steps = self.actors[actor]
        return at[actor] < len(steps) and all(tokens[p] >= n for p, n in steps[at[actor]].takes.items())


def game_of(network: Network, by_dma: set[str], *, endless_drains: bool = False) -> Game:
    """The game of a network, of which the pipes ``by_dma`` have buffers at both ends and a stream between them. With
    ``endless_drains`` the host starts everything, waits for nothing and takes all that comes."""
    game = Game()
    game.actors.append([] if endless_drains else list(_host(network)))
    for worker, program in network.programs.items():
        game.actors.append(list(_worker(network, by_dma, worker, program)))
    for pipe in network.pipes:
        rings = [("at producer", pipe.name)] if pipe.producer >= 0 else []
        if pipe.name in by_dma:
            game.actors.append(list(_stream(network, pipe, endless_drains)))
            rings += [("at consumer", pipe.name, c) for c in pipe.consumers if c >= 0]
        for ring in rings:
            depth = pipe.depths[0] if ring[0] == "at producer" else pipe.depths[1 + pipe.consumers.index(ring[2])]
            full = depth if pipe.credit and ring[0] == "at producer" else 0
            game.start.update({(*ring, "free"): depth - full, (*ring, "full"): full})
    for number, junction in enumerate(network.junctions):
        for part in range(_parts(junction)):
            game.start["junction", number, part, "free"] = junction.depth
    if endless_drains:
        game.start.update({("started", i): 1 for i in range(len(network.moves))})
    return game


def _parts(junction: Junction) -> int:
    return max(len(junction.inputs), len(junction.outputs))


def _host(network: Network) -> Iterator[Step]:
    started: set[int] = set()
    for number in network.order:
        yield Step({("done", number): 1}, {}) if number in started else Step({}, {("started", number): 1})
        started.add(number)


def _worker(network: Network, by_dma: set[str], worker: int, program: Program) -> Iterator[Step]:
    held: Counter[tuple[str, bool]] = Counter()
    for _ in range(TURNS if program.turns is None else program.turns):
        for step in program.steps:
            end = (step.pipe, step.produce)
            here = step.produce or step.pipe not in by_dma
            ring: Place = ("at producer", step.pipe) if here else ("at consumer", step.pipe, worker)
            wanted, given = ("free", "full") if step.produce else ("full", "free")
            if step.acquire:
                yield Step({(*ring, wanted): max(0, step.n - held[end])}, {}, (worker, step))
                held[end] = max(held[end], step.n)
            else:
                yield Step({}, {(*ring, given): step.n}, (worker, step))
                held[end] -= step.n


Piece = tuple[Place | None, Place | None, int]
"""What one end of a stream works on: the token it needs before, the one it gives after, units."""


def _stream(network: Network, pipe: Pipe, endless_drains: bool) -> Iterator[Step]:
    """One move a unit; an end takes its token before the first unit of a piece and gives after the last one."""
    ends = [_pieces(network, pipe, pipe.producer, True, endless_drains)]
    ends += [_pieces(network, pipe, c, False, endless_drains) for c in pipe.consumers]
    left = [0] * len(ends)
    now: list[Piece] = [(None, None, 0)] * len(ends)
    for _ in range(UNITS):
        step = Step({}, {})
        for i, pieces in enumerate(ends):
            if left[i] == 0:
                piece = next(pieces, None)
                if piece is None:
                    return
                now[i], left[i] = piece, piece[2]
                if piece[0] is not None:
                    step.takes[piece[0]] = 1
            left[i] -= 1
            done = now[i][1]
            if left[i] == 0 and done is not None:
                step.gives[done] = 1
        yield step


def _pieces(network: Network, pipe: Pipe, end: int, produce: bool, endless_drains: bool) -> Iterator[Piece]:
    wanted, given = ("full", "free") if produce else ("free", "full")
    if end == HOST:
        if endless_drains and not produce:
            return itertools.repeat((None, ("out", pipe.name), 1))
        mine = [
            i for i in dict.fromkeys(network.order or range(len(network.moves))) if network.moves[i].pipe == pipe.name
        ]
        return iter([(("started", i), ("done", i), network.moves[i].units) for i in mine])
    if end >= 0:
        ring: Place = ("at producer", pipe.name) if produce else ("at consumer", pipe.name, end)
        return itertools.repeat(((*ring, wanted), (*ring, given), pipe.units))
    number, junction = next((i, j) for i, j in enumerate(network.junctions) if pipe.name in (*j.inputs, *j.outputs))
    side = junction.outputs if produce else junction.inputs
    parts = [side.index(pipe.name)] if len(side) > 1 else range(_parts(junction))
    rings = [("junction", number, part) for part in parts]
    return itertools.cycle([((*r, wanted), (*r, given), OBJECT // UNIT) for r in rings])


# -- playing


def play(game: Game, order: random.Random | None = None) -> tuple[tuple[int, ...], list[Step], Counter[Place]]:
    """Move until nobody can: (how far everybody got, the moves in order, the tokens left)."""
    at, tokens, log = [0] * len(game.actors), Counter(game.start), []
    while True:
        able = [i for i in range(len(at)) if game.enabled(i, tuple(at), tokens)]
        if not able:
            return tuple(at), log, tokens
        chosen = able[0] if order is None else order.choice(able)
        step = game.actors[chosen][at[chosen]]
        tokens.subtract(step.takes)
        tokens.update(step.gives)
        at[chosen] += 1
        log.append(step)


def can_end(game: Game, most: int) -> bool | None:
    """Whether any order of moves brings the host to its end; None if there are more than ``most`` positions to look at.

    All positions that can be reached are visited, without a thought about which orders matter.
    """
    first = (0,) * len(game.actors)
    seen, todo = {first}, [(first, dict(game.start))]
    while todo:
        at, tokens = todo.pop()
        if at[0] == len(game.actors[0]):
            return True
        if len(seen) > most:
            return None
        counted = Counter(tokens)
        for i in range(len(at)):
            if not game.enabled(i, at, counted):
                continue
            after = (*at[:i], at[i] + 1, *at[i + 1 :])
            if after not in seen:
                seen.add(after)
                left = Counter(counted)
                left.subtract(game.actors[i][at[i]].takes)
                left.update(game.actors[i][at[i]].gives)
                todo.append((after, dict(left)))
    return False


# -- what the objects hold


class Contents:
    """The objects of every pipe, worked out from the moves of a game and what the host puts in."""

    def __init__(self, network: Network, log: list[Step], filled: dict[str, np.ndarray[Any, Any]]) -> None:
        self._network, self._filled = network, filled
        self._made: dict[str, list[np.ndarray[Any, Any]]] = {
            p.name: [np.full(OBJECT, i, np.int32) for i in range(p.depths[0])] if p.credit else []
            for p in network.pipes
        }
        workers = {w: Worker(w) for w in network.programs}
        given: Counter[tuple[int, str]] = Counter()
        for step in log:
            if step.event is None:
                continue
            number, access = step.event
            if access.produce and not access.acquire:
                for _ in range(access.n):
                    made = np.zeros(OBJECT, np.int32)
                    workers[number].make(made)
                    self._made[access.pipe].append(made)
            elif not access.produce and access.acquire:
                for i in range(access.n):
                    workers[number].eat(self.object(access.pipe, given[number, access.pipe] + i))
            elif not access.produce:
                given[number, access.pipe] += access.n

    def object(self, name: str, index: int) -> np.ndarray[Any, Any]:
        """The object ``index`` of a pipe."""
        size = self._network.pipe(name).units
        return self.stretch(name, index * size, size)

    def stretch(self, name: str, start: int, units: int) -> np.ndarray[Any, Any]:
        """``units`` of a pipe from unit ``start`` on."""
        return np.concatenate([self._unit(name, i) for i in range(start, start + units)])

    def _unit(self, name: str, index: int) -> np.ndarray[Any, Any]:
        pipe, each = self._network.pipe(name), OBJECT // UNIT
        if pipe.producer == HOST:
            return self._filled[name][index * UNIT : (index + 1) * UNIT]
        if pipe.producer >= 0:
            return self._made[name][index // each][index % each * UNIT :][:UNIT]
        junction = next(j for j in self._network.junctions if name in j.outputs)
        parts = _parts(junction)
        if len(junction.inputs) > 1:
            whole, inside = divmod(index, parts * each)
            return self._unit(junction.inputs[inside // each], whole * each + inside % each)
        part = junction.outputs.index(name)
        return self._unit(junction.inputs[0], (index // each * parts + part) * each + index % each)
