"""The cost table: sourced, replaceable, and exact in integer time."""

from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from npusim.costs import SCALAR, Clockwork, Costs
from npusim.devices import DEVICES, Device, device
from npusim.errors import DesignError


def test_every_constant_is_sourced() -> None:
    for name, fact in [*Costs().facts(), *SCALAR.items()]:
        assert fact.unit in ("cycles", "ns", "tasks"), name
        assert fact.source, name
        assert fact.confidence in ("H", "M", "L"), name
        assert fact.value >= 0, name
    assert Costs().scalar == {kind: fact.value for kind, fact in SCALAR.items()}


def test_having() -> None:
    changed = Costs().having(lock_acquire=0, task_push=1)
    assert (changed.lock_acquire.value, changed.task_push.value) == (0, 1)
    assert changed.lock_acquire.note == "chosen by the caller"
    assert changed.lock_release == Costs().lock_release
    assert Costs().lock_acquire.value == 14
    for unknown in ("lock", "scalar", "facts"):
        with pytest.raises(DesignError, match=f"no cost constant '{unknown}'"):
            Costs().having(**{unknown: 1})


@given(st.integers(0, 10_000), st.integers(10**8, 3 * 10**9))
def test_times_become_whole_cycles(ns: int, clock: int) -> None:
    table = Costs().having(task_push=ns).in_cycles(clock)
    assert table.task_push.unit == "cycles"
    assert table.task_push.value == ceil(Fraction(ns * clock, 10**9))
    assert table.lock_acquire == Costs().lock_acquire
    assert not any(fact.unit == "ns" for _, fact in table.facts())
    assert table.in_cycles(2 * clock) == table


def test_measured_cycles_survive_the_measured_clock() -> None:
    table = Costs().in_cycles(1.028e9)
    found = (table.shim_read_start.value, table.shim_write_start.value, table.task_push.value)
    assert found == pytest.approx((747, 171, 3050), abs=1)


@pytest.mark.parametrize("of", DEVICES.values(), ids=lambda d: d.name)
@pytest.mark.parametrize("stream", [4, 8])
def test_integer_time_is_exact(of: Device, stream: int) -> None:
    clock = Clockwork.of(of.with_options(stream_bytes_per_cycle=stream), Costs())
    cycle = Fraction(clock.ticks_per_cycle)
    assert clock.cycles(3) == 3 * cycle
    assert clock.stream / cycle == Fraction(1, stream)
    for ticks, fact in (
        (clock.ddr_read, of.ddr_read), (clock.ddr_write, of.ddr_write), (clock.ddr_total, of.ddr_total)
    ):  # fmt: skip
        assert ticks / cycle == Fraction(of.clock_hz) / Fraction(fact.value)


def test_time_outside_the_array_does_not_follow_its_clock() -> None:
    slow, fast = (Clockwork.of(device("npu1").with_options(clock_hz=hz), Costs()) for hz in (1.0e9, 2.0e9))
    assert fast.costs.task_push.value == 2 * slow.costs.task_push.value
    assert fast.costs.lock_acquire == slow.costs.lock_acquire
    assert (slow.ddr_read / slow.ticks_per_cycle) * 2 == fast.ddr_read / fast.ticks_per_cycle
