"""The designs are built as the mappings are described, within the limits of both devices, and refuse what does not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import npulab
from designs.attention import run as running
from designs.attention.parameters import TILES, Parameters
from npusim.errors import CapacityError
from tests.designs.attention.runs import DEVICES, NAMES, outcome

COLUMNS = {"npu1": 4, "npu2": 8}


def machines(name: str, device: str, **given: Any) -> list[Any]:
    done = outcome(name, device, data=False, lq=1024, num_heads=8, **given)
    return [part.run.machine for part in done.run.parts] or [done.run.machine]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("name", "rows"), [("layerwise", 4), ("dato", 4), ("iron", 3), ("fused", 4)])
def test_tiles(name: str, rows: int, device: str) -> None:
    """24 of 32 tiles for the IRON mapping on XDNA 2 and 12 of 16 on XDNA 1; all of them for the others."""
    for machine in machines(name, device):
        assert {(c.tile.col, c.tile.row) for c in machine.cores} == {
            (col, row) for col in range(COLUMNS[device]) for row in range(2, 2 + rows)
        }
    p = Parameters(num_heads=8).of_mapping(name, device)  # type: ignore[arg-type]
    assert running.mapping(name).describe(p, device).tiles == rows * COLUMNS[device]  # type: ignore[arg-type]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", NAMES)
def test_no_tile_is_full_and_no_channel_taken_twice(name: str, device: str) -> None:
    for machine in machines(name, device):
        used: dict[Any, int] = {}
        for buffer in machine.buffers:
            used[buffer.tile] = used.get(buffer.tile, 0) + buffer.type.nbytes
        for core in machine.cores:
            used[core.tile] = used.get(core.tile, 0) + core.stack_size
        assert all(n <= machine.device.limits(tile.row).memory.value for tile, n in used.items())
        channels = [(c.tile, c.direction, c.index) for c in machine.channels]
        assert len(set(channels)) == len(channels)
        for tile, direction, index in channels:
            limits = machine.device.limits(tile.row)
            assert 0 <= index < (limits.s2mm if direction == "S2MM" else limits.mm2s).value


@pytest.mark.parametrize("device", DEVICES)
def test_streams_of_dato_are_two_deep_and_between_neighbours(device: str) -> None:
    (machine,) = machines("dato", device)
    routed = {route.name for route in machine.routes}
    for i in range(COLUMNS[device]):
        for stream in (f"s{i}", f"p{i}", f"t{i}"):
            assert len([b for b in machine.buffers if b.fifo == stream]) == 2
            assert stream not in routed
        assert f"r{i}" in routed


@pytest.mark.parametrize("device", DEVICES)
def test_k_and_v_of_the_iron_mapping_go_to_every_pipeline(device: str) -> None:
    (machine,) = machines("iron", device)
    ends = {route.name: len(route.dests) for route in machine.routes}
    assert ends["k_all"] == ends["v_all"] == COLUMNS[device]
    rows = {route.name: {d.tile.row for d in route.dests} for route in machine.routes}
    assert rows["k_all"] == {2} and rows["v_all"] == {4}


@pytest.mark.parametrize("device", DEVICES)
def test_lengths_of_the_iron_mapping_are_run_time_parameters(device: str) -> None:
    """The cores' programs are the same whatever the lengths."""
    programs = []
    for lq in (512, 1024):
        machine = outcome("iron", device, data=False, lq=lq).run.machine
        assert machine is not None
        programs.append([str([(op.name, op.attrs) for op in core.body.entry.ops]) for core in machine.cores])
        assert len(machine.sequence_buffers) == 3 * COLUMNS[device]
    assert programs[0] == programs[1]


@pytest.mark.parametrize(("device", "sharing"), [("npu1", 1), ("npu2", 1)])
def test_a_stream_of_k_for_each_pipeline_does_not_fit(device: str, sharing: int) -> None:
    """Why the parameters refuse it: the shim channels run out."""
    shape = {"lq": 256, "lk": 256, "num_heads": 1, "num_kv_heads": 1, "scale": 0.18}
    with pytest.raises(CapacityError, match=r"shim tile \(0,0\) needs 3 output DMA channels"):
        npulab.machine(
            "designs.attention_dato.design", device=device, pipelines=COLUMNS[device], sharing=sharing, **shape
        )


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", NAMES)
def test_stages_cost_what_they_are_predicted_to(name: str, device: str) -> None:
    """Cycles of the kernels in a run are those of the description, of all tiles of a stage and of its busiest one, but for what
    is done once for a block of queries."""
    done = outcome(name, device, data=False, lq=8192 if name == "fused" else 1024)
    runs = [part.run for part in done.run.parts] or [done.run]
    cores = [core for run in runs for core in run.cores]
    ticks = runs[0].report.ticks_per_cycle  # type: ignore[union-attr]
    spent: dict[str, list[float]] = {}
    for core in cores:
        kernels = sum(t for kernel, (_, t) in core.kernels.items() if kernel != "scalar code") / ticks
        spent.setdefault(running.stage_of(core.name), []).append(kernels)
    for cycles, stage in zip(spent.values(), done.mapping.stages(done.parameters, device), strict=True):
        assert len(cycles) == stage.tiles
        assert sum(cycles) == pytest.approx(stage.work, rel=0.05)
        assert max(cycles) == pytest.approx(stage.longest, rel=0.05)


def test_designs_are_pure() -> None:
    """Nothing but IRON or AIR, numpy and what the designs share, itself pure: the text that runs on the NPU."""
    folder = Path(running.__file__).parents[1]
    beside = [folder / "attention" / "iron.py", folder / "attention" / "walks.py"]
    for file in [*(folder / f"attention_{name}" / "design.py" for name in NAMES), *beside]:
        imports = [line.split()[1] for line in file.read_text().splitlines() if line.strip().startswith(("import ", "from "))]
        roots = {module.split(".")[0] for module in imports} - {"designs"}
        assert roots <= {"aie", "air", "numpy", "ml_dtypes", "pathlib", "contextlib", "itertools", "dataclasses", "math"}, file
        assert {m for m in imports if m.startswith("designs")} <= {"designs.attention.iron", "designs.attention.walks", "designs.attention.parameters"}


def test_every_mapping_has_its_pieces_for_both_devices() -> None:
    assert all(set(tiles) == set(DEVICES) for tiles in TILES.values())
