"""The benchmark's workload is the same on npusim and on SimPy."""

from __future__ import annotations

from npusim import bench


def test_both_simulators_end_at_the_same_cycle(monkeypatch):
    monkeypatch.setattr(bench, "OBJECTS", 40)
    machine = bench.workload()
    _, _, full = bench.run_npusim(machine, data=True)
    _, _, timing = bench.run_npusim(machine, data=False)
    _, simpy = bench.run_simpy()
    assert full == timing == simpy


def test_npusim_is_several_times_as_fast(monkeypatch):
    monkeypatch.setattr(bench, "OBJECTS", 500)
    figures = bench.measure()
    assert figures["timing_ratio"] > 4  # ten and more on an idle machine
    assert figures["full_rate"] > 60_000
    assert figures["timing_rate"] > 200_000


def test_a_matrix_product_takes_less_than_a_second():
    (seconds, error), (again, _) = bench.matmul(), bench.matmul()
    assert min(seconds, again) < 1
    assert 0 < error < 0.02  # sums are rounded to bf16 eight times
