"""The record of a run."""

from __future__ import annotations

import numpy as np
import pytest

from npulab.record import Run, counted, si
from npusim.devices import device
from npusim.report import Traffic
from tests.npulab import machines

MEASURED = Run("measured", device("npu2"), 2e-5, name="mine", samples=(3e-5, 2e-5))


def simulated(**more: object) -> Run:
    return Run.of_report(machines.saxpy_report(), [np.zeros(2)], name="saxpy", **more)


def test_a_simulated_run_knows_what_the_report_knows() -> None:
    run = simulated(flops=32768)
    report = run.report
    assert report is not None
    assert (run.kind, run.cycles, run.seconds) == ("simulated", report.cycles, report.seconds)
    assert run.machine is report.machine and run.trace is report.trace and run.cores is report.cores
    assert run.flops_per_cycle == pytest.approx(32768 / report.cycles)
    assert run.flops_per_second == pytest.approx(32768 / report.seconds)


def test_intensity_at_each_level_and_by_either_count() -> None:
    run = simulated(flops=98304)
    assert run.bytes("ddr") == 98304 and run.bytes("ddr", "each way") == 65536
    assert run.intensity("ddr") == 1.0 and run.intensity("l1", "each way") == 1.5
    assert run.bytes("ddr", "by level") == 98304 and run.intensity("l1", "by level") == 1.5
    assert run.intensity("memtile") is None


def test_busy_and_stalled_shares() -> None:
    run = simulated()
    assert run.busy() == run.busy((0, 2)) == pytest.approx(16 * 400 / 18131, rel=1e-3)
    assert 0 < (run.stalled() or 0) < 1 - (run.busy() or 0)
    with pytest.raises(KeyError):
        run.busy((3, 3))


def test_a_measured_run_does_not_pretend() -> None:
    assert MEASURED.cycles is None and MEASURED.bytes("ddr") is None and MEASURED.intensity("ddr") is None
    assert MEASURED.busy() is None and MEASURED.machine is None and not MEASURED.trace and MEASURED.channels == []
    assert MEASURED.having(flops=100).flops_per_cycle is None
    assert MEASURED.having(flops=100).flops_per_second == pytest.approx(5e6)


def test_the_caller_may_add_what_only_he_knows() -> None:
    traffic = {"ddr": Traffic(10, 20), "memtile": Traffic(), "l1": Traffic()}
    run = MEASURED.having(flops=60, traffic=traffic, name="other")  # type: ignore[arg-type]
    assert run.intensity("ddr") == 2.0 and run.name == "other" and run.seconds == MEASURED.seconds


@pytest.mark.parametrize("run", [simulated(flops=1), MEASURED], ids=["simulated", "measured"])
def test_every_way_to_show_a_run_says_which_it_is(run: Run) -> None:
    other = {"simulated": "measured", "measured": "simulated"}[run.kind]
    for shown in (repr(run), str(run), run._repr_html_()):
        assert run.kind in shown and other not in shown


def test_the_html_is_a_table_with_a_caption() -> None:
    html = Run("measured", device("npu1"), 1e-3, name="<b>")._repr_html_()
    assert "<caption" in html and "&lt;b&gt;" in html and 'scope="row"' in html


def test_one_output() -> None:
    assert simulated().output.shape == (2,)
    with pytest.raises(ValueError, match="0 outputs"):
        _ = MEASURED.output


def test_counted() -> None:
    assert (counted(Traffic(3, 5), "both ways"), counted(Traffic(3, 5), "each way")) == (8, 5)


@pytest.mark.parametrize(
    ("value", "text"),
    [(1.813e-5, "18.13 µs"), (3.622e12, "3.622 TFLOP/s"), (0, "0 x"), (999.0, "999 x"), (2e-12, "2e-12 x")],
)
def test_si(value: float, text: str) -> None:
    assert si(value, text.split()[1].lstrip("µT")) == text
