"""Random fifo networks either end with the right data or are reported as deadlocks, as an abstract token game says.

The game (tokengame.py) knows nothing of the engine: it tries every order in which the host, the workers and the streams
could move. NPUSIM_FUZZ=2000 looks at so many new networks; without it the same ones are tried each time.
"""

from __future__ import annotations

import os
import random
import warnings
from collections import Counter

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from npusim.errors import DeadlockError
from npusim.place import place
from npusim.run import simulate
from tests.npusim.networks import HOST, UNIT, Network, design_of, hosted, kernels_of, networks
from tests.npusim.tokengame import Contents, Game, can_end, game_of, play

EXAMPLES = int(os.environ.get("NPUSIM_FUZZ", "0"))
POSITIONS = 3000
"""Positions of a game that are looked at before a few random orders must do."""


@st.composite
def designs(draw):
    """A network with a host that mostly asks for what it can get."""
    network = draw(networks())
    everything = {p.name for p in network.pipes}
    _, _, tokens = play(game_of(network, everything, endless_drains=True))
    produced = {p.name: tokens["out", p.name] for p in network.pipes if HOST in p.consumers}
    return draw(hosted(network, produced))


def run(network: Network, machine, filled: dict[int, np.ndarray]) -> dict[int, np.ndarray] | DeadlockError:
    """What each drain got, by the number of the move, or the deadlock."""
    started = list(dict.fromkeys(network.order))
    arrays = {i: filled.get(i, np.zeros(network.moves[i].units * UNIT, np.int32)) for i in started}
    try:
        simulate(machine, [arrays[i] for i in started], kernels=kernels_of(network))
    except DeadlockError as error:
        return error
    return {i: array for i, array in arrays.items() if not network.moves[i].fill}


def ends(game: Game) -> bool:
    """Whether the host gets to its end, in every order that was tried the same."""
    at, _, _ = play(game)
    for seed in range(3):
        assert play(game, random.Random(seed))[0] == at, "the order of moves decides, which fifos do not allow"
    ended = at[0] == len(game.actors[0])
    searched = can_end(game, POSITIONS)
    assert searched in (ended, None)
    return ended


def check(network: Network) -> str:
    rng = np.random.default_rng(1)
    filled = {i: rng.integers(-99, 99, m.units * UNIT).astype(np.int32) for i, m in enumerate(network.moves) if m.fill}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        machine = place(design_of(network))
        outcome = run(network, machine, filled)
    game = game_of(network, {route.name for route in machine.routes})
    if isinstance(outcome, DeadlockError):
        assert not ends(game), f"the game ends, the engine says {outcome}"
        assert "Hint: " in str(outcome) and "1. the host sequence waits" in str(outcome)
        return "deadlock"
    assert ends(game), "the engine ends, the game cannot"
    _, log, _ = play(game)
    streams: dict[str, list[np.ndarray]] = {}
    for i in dict.fromkeys(network.order):
        if network.moves[i].fill:
            streams.setdefault(network.moves[i].pipe, []).append(filled[i])
    contents = Contents(network, log, {name: np.concatenate(pieces) for name, pieces in streams.items()})
    taken: Counter[str] = Counter()
    for i, got in outcome.items():
        move = network.moves[i]
        np.testing.assert_array_equal(got, contents.stretch(move.pipe, taken[move.pipe], move.units))
        taken[move.pipe] += move.units
    return "data" if outcome else "nothing drained"


def test_networks_end_with_the_right_data_or_are_known_to_hang():
    seen: Counter[str] = Counter()

    @settings(
        max_examples=EXAMPLES or 250,
        derandomize=not EXAMPLES,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
    )
    @given(designs())
    def each(network):
        seen[check(network)] += 1

    each()
    assert seen["data"] > 40 and seen["deadlock"] > 40, seen
