"""The timeline of a run."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from npulab import draw
from npulab.draw.timeline import _coverage, _nice
from npulab.record import Run
from npusim.report import TraceEvent
from tests.npulab import machines
from tests.npulab.draw.pictures import hints, legible, texts, tree

EVERY = {
    "short": lambda: draw.timeline(machines.saxpy_report()),
    "zoomed": lambda: draw.timeline(machines.saxpy_report(), start=1500, stop=5000),
    "long": lambda: draw.timeline(machines.saxpy_report(300)),
    "32 cores": lambda: draw.timeline(machines.matmul_report()),
    "32 cores, zoomed": lambda: draw.timeline(machines.matmul_report(), tracks="cores", start=3000, stop=9000),
    "every channel": lambda: draw.timeline(machines.matmul_report(4), tracks="all"),
}


@pytest.mark.parametrize("name", EVERY)
def test_words_neither_overlap_nor_leave_the_picture(name: str) -> None:
    legible(EVERY[name]())


def test_tracks_are_host_then_tiles_from_below() -> None:
    labels = [t for t in texts(EVERY["short"]()) if t == "host" or ("(" in t and "window" not in t)]
    assert labels == [
        "host",
        "S2MM 0 (0,0)",
        "MM2S 0 (0,0)",
        "MM2S 1 (0,0)",
        "core (0,2)",
        "S2MM 0 (0,2)",
        "S2MM 1 (0,2)",
        "MM2S 0 (0,2)",
    ]


def test_events_tell_name_kind_and_cycles() -> None:
    found = [h for h in hints(EVERY["short"]()) if h.startswith("saxpy_bf16")]
    assert len(found) == 16
    assert found[0] == "saxpy_bf16 (saxpy_bf16): 400 cycles from 1,771"


def test_time_is_said_to_be_simulated() -> None:
    picture = EVERY["short"]()
    assert "simulated" in picture.title and picture.alt.startswith("Simulated cycles 0 to 18,131")
    assert any(t.startswith("simulated core cycles") and "18.13 µs at 1 GHz" in t for t in texts(picture))


def test_busy_shares() -> None:
    report = machines.saxpy_report()
    share = f"{report.core((0, 2)).busy / report.ticks:.0%}"
    assert f"core (0,2): busy {share}." in draw.timeline(report).alt
    zoomed = draw.timeline(report, start=1771, stop=2171)  # exactly one call of the kernel
    assert "core (0,2): busy 100%." in zoomed.alt


def test_many_channels_are_folded_by_kind_of_tile() -> None:
    labels = texts(EVERY["32 cores"]())
    folded = [t for t in labels if "channels)" in t]
    assert [t.rsplit(" (", 1)[0] for t in folded] == [
        "shim MM2S",
        "shim S2MM",
        "MemTile MM2S",
        "MemTile S2MM",
        "core MM2S",
        "core S2MM",
    ]
    assert sum(t.startswith("core (") for t in labels) == 32


def test_long_runs_stay_small() -> None:
    """A hundred times the events, and no more than a few times the picture."""
    short, long = (len(draw.timeline(machines.saxpy_report(n)).svg) for n in (16, 1600))
    assert long < 4 * short


def test_a_strip_chart_says_so() -> None:
    assert any("strip charts" in t for t in texts(EVERY["long"]()))
    assert not any("strip charts" in t for t in texts(EVERY["short"]()))


def test_kernels_have_their_own_colours() -> None:
    entries = texts(EVERY["32 cores"]())
    assert "matmul" in entries and "zero" in entries


def test_more_than_three_kernels_share_the_rest() -> None:
    report = machines.saxpy_report()
    for i in range(6):
        report.trace.append(TraceEvent("core (0,2)", f"kernel{i}", "kernel", 10 * i, 10))
    assert "4 other kernels" in texts(draw.timeline(report))


def test_chosen_tracks() -> None:
    report = machines.saxpy_report()
    assert not any(t.startswith("core") for t in texts(draw.timeline(report, tracks="dma")))
    assert [t for t in texts(draw.timeline(report, tracks=["host"])) if "(0," in t] == []


@pytest.mark.parametrize("window", [{"start": 10, "stop": 10}, {"start": 100, "stop": 5}, {"start": 10**9}])
def test_empty_windows_are_refused(window: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="empty"):
        draw.timeline(machines.saxpy_report(), **window)


def test_no_such_track_and_no_trace_are_refused() -> None:
    report = machines.saxpy_report()
    with pytest.raises(ValueError, match="no track"):
        draw.timeline(report, tracks=["(9,9)"])
    report.trace.clear()
    with pytest.raises(ValueError, match="trace=True"):
        draw.timeline(Run.of_report(report))


@given(st.lists(st.tuples(st.integers(0, 90), st.integers(0, 40)), max_size=12))
def test_coverage_is_the_time_covered_in_each_bin(spans: list[tuple[int, int]]) -> None:
    events = [TraceEvent("t", "n", "kernel", start, duration) for start, duration in spans]
    by_tick = np.zeros(200)
    for start, duration in spans:
        by_tick[start : start + duration] += 1
    got = _coverage(events, np.arange(0, 101, 10))
    assert np.allclose(got, by_tick[:100].reshape(10, 10).mean(axis=1))


@pytest.mark.parametrize(("step", "nice"), [(0.2, 1), (1, 1), (1.5, 2), (3, 5), (7, 10), (300, 500)])
def test_nice_steps(step: float, nice: float) -> None:
    assert _nice(step) == nice


def test_bars_stay_within_the_plot() -> None:
    for e in tree(EVERY["zoomed"]()).iter("{http://www.w3.org/2000/svg}rect"):
        assert float(e.get("x", 0)) >= 0 and float(e.get("x", 0)) + float(e.get("width", 0)) <= 166 + 640 + 1e-6
