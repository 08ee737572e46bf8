"""The picture of the tile array."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

import npulab
from designs import attention_iron
from designs.attention.parameters import Parameters
from npulab import draw
from npulab.draw.contents import channel_names, fifo_hues, legend_names, parts
from npulab.draw.svg import text_width
from npulab.draw.wires import busiest, family, letters, neighbours, wires
from npulab.record import Run
from npusim.frontends import finder
from npusim.machine import Coord
from tests.npulab import machines
from tests.npulab.draw.pictures import count, hints, legible, texts, tree

EVERY = {
    "one core": lambda: draw.array(machines.saxpy_machine()),
    "one core, run": lambda: draw.array(machines.saxpy_report()),
    "whole array": lambda: draw.array(machines.matmul_machine()),
    "whole array, run": lambda: draw.array(machines.matmul_report()),
    "two columns": lambda: draw.array(machines.matmul_report(), columns=(2, 3)),
    "neighbours and cascade": lambda: draw.array(machines.attention_machine()),
}


@pytest.mark.parametrize("name", EVERY)
def test_words_neither_overlap_nor_leave_the_picture(name: str) -> None:
    legible(EVERY[name]())


def test_every_tile_of_the_device_is_there() -> None:
    for machine in (machines.saxpy_machine(), machines.matmul_machine()):
        labels = [t for t in texts(draw.array(machine)) if re.fullmatch(r"\d,\d", t)]
        assert len(labels) == machine.device.columns * 6


def test_whole_array_is_no_wider_than_a_page_can_show() -> None:
    width = float((tree(draw.array(machines.matmul_machine())).get("viewBox") or "").split()[2])
    assert width <= 1000


def test_memory_is_shown_against_capacity() -> None:
    picture = draw.array(machines.saxpy_machine())
    assert "13 KiB of 64 KiB" in texts(picture)
    assert any(h.startswith("compute tile (0,2) runs saxpy") and "13312 of 65536 B" in h for h in hints(picture))


@pytest.fixture
def _simulated() -> Iterator[None]:
    npulab.use("sim", "npu2", quiet=True)
    yield
    finder.deactivate()


@pytest.mark.usefixtures("_simulated")
def test_memory_and_the_busy_share_fit_side_by_side_in_a_narrow_box() -> None:
    """33.5 KiB is shown as 34 beside two digits of a share, and whole where nothing is beside it."""
    run = attention_iron.run(Parameters(lq=512, num_heads=1), "npu2").run
    shown = texts(draw.array(run))
    pairs = [(a, b) for a, b in zip(shown, shown[1:]) if a.endswith("KiB") and b.endswith("%")]
    assert len(pairs) == 24 and {a for a, _ in pairs} == {"49 KiB", "34 KiB"}
    assert all(text_width(a, 9) + text_width(b, 9) <= 54 for a, b in pairs)
    assert run.machine is not None and "33.5 KiB" in texts(draw.array(run.machine))


def test_too_much_memory_is_said() -> None:
    machine = machines.saxpy_machine()
    machine.buffers[0].type = machines.MemRefType((40000,), "bf16")
    assert any("too much" in t for t in texts(draw.array(machine)))


def test_streams_and_their_ends() -> None:
    picture = draw.array(machines.saxpy_machine())
    streams = [h for h in hints(picture) if ": stream" in h]
    assert streams == ["x: stream (0,0) to (0,2)", "y: stream (0,0) to (0,2)", "z: stream (0,2) to (0,0)"]


def test_a_run_adds_busy_cores_and_busy_streams() -> None:
    static, run = draw.array(machines.saxpy_machine()), draw.array(machines.saxpy_report())
    assert "35% busy" in texts(run) and not any("busy" in t for t in texts(static))
    assert any(re.search(r"x: stream .*, busy 9\d%", h) for h in hints(run))
    assert "Simulated: 18,131 cycles" in run.alt and "simulated" in run.title


def test_the_bytes_of_the_run_are_at_the_host() -> None:
    assert "DDR (host memory): the array reads 64 KiB and writes 32 KiB" in texts(draw.array(machines.saxpy_report()))


def test_shared_memory_and_cascade_are_arrows_between_tiles() -> None:
    picture = draw.array(machines.attention_machine())
    assert "scores: shared memory, (0,2) to (0,3)" in hints(picture)
    assert "cascade, (0,3) to (1,3)" in hints(picture)
    assert "1 fifos in shared memory" in picture.alt and "1 cascade links" in picture.alt


def test_a_part_of_the_columns() -> None:
    picture = draw.array(machines.matmul_machine(), columns=(2, 3))
    assert {t.split(",")[0] for t in texts(picture) if re.fullmatch(r"\d,\d", t)} == {"2", "3"}


@pytest.mark.parametrize("columns", [(0, 8), (-1, 2), (3, 2)])
def test_columns_outside_the_device_are_refused(columns: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="columns"):
        draw.array(machines.matmul_machine(), columns=columns)


def test_a_measured_run_cannot_be_drawn() -> None:
    run = Run("measured", machines.saxpy_machine().device, 1e-3)
    with pytest.raises(TypeError, match="measured"):
        draw.array(run)


def test_machine_report_and_run_draw_the_same_machine() -> None:
    report = machines.saxpy_report()
    assert parts(report) == parts(Run.of_report(report)) == (report.machine, report)
    assert parts(report.machine) == (report.machine, None)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("memA_0", "memA"),
        ("memA_3_cons", "memA"),
        ("x", "x"),
        ("in_split2", "in"),
        ("of12", "of"),
        ("_", "_"),
        ("7", "7"),
    ],
)
def test_family(name: str, kind: str) -> None:
    assert family(name) == kind


def test_letters() -> None:
    assert (letters("C01_l1"), letters("_x"), letters("of12")) == ("C", "_x", "of")


def test_few_fifos_have_each_their_hue_many_share_one_by_family() -> None:
    few, many = fifo_hues(machines.saxpy_machine()), fifo_hues(machines.matmul_machine())
    assert len(set(few.values())) == len(few) == 3
    assert many["memA_0"] == many["memA_3"] != many["memB_0_0"]
    assert ("f-" + many["memB_0_0"], "memB… (32 fifos)") in legend_names(many)


def test_a_channel_without_a_fifo_is_named_after_its_stream() -> None:
    machine = machines.saxpy_machine()
    machine.channels[0].fifo = None
    assert channel_names(machine)[machine.channels[0].tile, "MM2S", 0] == "x"


def test_streams_that_run_side_by_side_have_their_own_lanes() -> None:
    found, lanes_x, lanes_y = wires(machines.matmul_machine())
    for col in range(8):
        taken: dict[int, list[tuple[int, int]]] = {}
        for wire in found:
            if runs := wire.up.get(col):
                taken.setdefault(wire.lane_x[col], []).append((min(r[0] for r in runs), max(r[1] for r in runs)))
        for spans in taken.values():
            spans.sort()
            assert all(a[1] < b[0] for a, b in zip(spans, spans[1:])), f"column {col}"
    assert lanes_x <= 12 and lanes_y == 1


def test_a_machine_without_routes_is_drawn_with_straight_ones() -> None:
    machine = machines.saxpy_machine()
    machine.routes[0].hops = ()
    (x, _, _), _, _ = wires(machine)
    assert x.crossings == {(Coord(0, 0), Coord(0, 1)), (Coord(0, 1), Coord(0, 2))}


def test_fullest_boundary() -> None:
    machine = machines.saxpy_machine()
    assert busiest(wires(machine)[0], machine) == (2, 6, Coord(0, 0), "north")
    assert busiest([], machine) is None


def test_neighbours_are_fifos_without_a_channel() -> None:
    (found,) = neighbours(machines.attention_machine())
    assert (found.fifo, found.source, found.dest) == ("scores", (0, 2), (0, 3))
    assert neighbours(machines.saxpy_machine()) == []


def test_unused_tiles_are_dashed() -> None:
    assert count(draw.array(machines.saxpy_machine()), "rect", "unused") == 4 * 6 - 2
