"""Warm up, repeat, take the least."""

from __future__ import annotations

import pytest

from npulab import measure


def test_the_least_of_the_timed_ones_counts() -> None:
    times = [9.0, 9.0, 3.0, 2.0, 4.0]
    timing = measure.repeat(lambda: times.pop(0), warmup=2, iterations=3)
    assert timing.samples == (3.0, 2.0, 4.0) and timing.best == 2.0 and timing.median == 3.0
    assert timing.clock == "npu" and timing.noisy
    assert "measured" in str(timing) and "2 s" in str(timing)


def test_without_a_time_of_the_npu_the_host_clock_counts() -> None:
    timing = measure.repeat(lambda: None, warmup=0, iterations=4)
    assert timing.clock == "host" and len(timing.samples) == 4 and timing.best > 0


def test_the_clocks_are_not_mixed_in_silence() -> None:
    times: list[float | None] = [1.0, None]
    assert measure.repeat(lambda: times.pop(0), warmup=0, iterations=2).clock == "mixed"


@pytest.mark.parametrize("how", [{"iterations": 0}, {"warmup": -1}])
def test_nothing_to_time_is_refused(how: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="nothing to time"):
        measure.repeat(lambda: 1.0, **how)
