"""One thing changed at a time: the table, what follows from it, and that what is changed is changed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from designs.attention import ablations, compare
from designs.attention import run as running
from designs.attention.ablations import ABLATIONS, BASE, BOTH, EQUAL, FEWER, HOST, LENGTHS, SLOW, WIDER, depths
from designs.attention.exercises import dato_factors
from designs.attention.parameters import Parameters
from designs.kernels.models import MODELS
from npusim.errors import CapacityError
from tests.designs.attention.runs import DEVICES

SHORT, LONG = LENGTHS
Table = dict[tuple[str, str, int, str], dict[str, Any]]


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(ablations.DATA.read_text())
    return found


@pytest.fixture(scope="module")
def table(rows: list[dict[str, Any]]) -> Table:
    return {(r["mapping"], r["device"], r["length"], r["change"]): r for r in rows}


def ms(table: Table, mapping: str, device: str, change: str = BASE, length: int = LONG) -> float:
    return float(table[mapping, device, length, change]["ms"])


def test_the_table_is_complete(rows: list[dict[str, Any]], table: Table) -> None:
    wanted = {(a.mapping, device, length, a.change) for a in ABLATIONS for device in a.devices for length in LENGTHS}
    assert set(table) == wanted and len(rows) == len(wanted)
    assert {r["kind"] for r in rows} == {"simulated"}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("ablation", ABLATIONS, ids=lambda a: f"{a.mapping}, {a.change}")
def test_the_table_is_what_the_command_computes(table: Table, ablation: ablations.Ablation, device: str) -> None:
    if device in ablation.devices:
        again = json.loads(json.dumps(ablations.simulated(ablation, device, SHORT)))
        assert again == table[ablation.mapping, device, SHORT, ablation.change], "run python -m designs.attention.ablations --write"


# ---- what is changed


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["iron", "dato"])
def test_equal_stages_are_equal_and_together_as_long(table: Table, name: str, device: str) -> None:
    p = Parameters(lq=LONG).of_mapping(name, device)  # type: ignore[arg-type]
    of = running.mapping(name)  # type: ignore[arg-type]
    stages = of.stages(p, device)
    assert set(of.kernels) == {stage.name for stage in stages}
    busy = table[name, device, LONG, EQUAL]["busy"].values()
    assert max(busy) - min(busy) < 0.03
    assert sum(stage.cycles for stage in stages) / len(stages) < 0.65 * max(stage.cycles for stage in stages)


def test_scaled_kernels_compute_the_same_in_other_time() -> None:
    given: dict[str, Any] = {"lq": 256, "num_heads": 2}
    twice = {name: ablations.scaled(model, 2) for name, model in MODELS.items()}
    for device in DEVICES:
        plain, slow = (
            running.run(running.mapping("fused"), Parameters(**given), device, **options)
            for options in ({}, {"kernels": twice})
        )
        assert plain.output is not None and slow.output is not None
        assert plain.output.tobytes() == slow.output.tobytes()
        spent = [sum(t for name, (_, t) in d.run.cores[0].kernels.items() if name in MODELS) / d.run.report.ticks_per_cycle for d in (plain, slow)]  # type: ignore[union-attr]
        assert spent[1] == pytest.approx(2 * spent[0], rel=1e-3)


@pytest.mark.parametrize("device", DEVICES)
def test_three_rows_use_three_quarters_of_the_tiles(table: Table, device: str) -> None:
    tiles = {change: table["fused", device, LONG, change]["tiles"] for change in (BASE, FEWER)}
    assert tiles[FEWER] == 0.75 * tiles[BASE] == table["iron", device, LONG, BASE]["tiles"]


def test_unequal_depths_are_taken_and_equal_ones_trimmed() -> None:
    def buffers(**options: Any) -> dict[str, int]:
        done = running.run(running.mapping("iron"), Parameters(lq=256, num_heads=1), "npu1", data=False, **options)
        assert done.run.machine is not None
        counts: dict[str, int] = {}
        for buffer in done.run.machine.buffers:
            if buffer.fifo in ("s0", "s0_rows"):
                key = f"{buffer.fifo} in row {buffer.tile.row}"
                counts[key] = counts.get(key, 0) + 1
        return counts

    assert buffers() == {"s0 in row 2": 2, "s0 in row 1": 2, "s0_rows in row 3": 2}
    assert buffers(s_depths=(1, 4, 2)) == {"s0 in row 2": 1, "s0 in row 1": 4, "s0_rows in row 3": 2}
    assert buffers(s_depths=(2, 2, 4)) == {"s0 in row 2": 2, "s0 in row 1": 2, "s0_rows in row 3": 4}
    assert buffers(s_depths=(4, 4, 4)) == {"s0 in row 2": 2, "s0 in row 1": 4, "s0_rows in row 3": 2}


def test_what_does_not_fit_is_refused() -> None:
    """Four blocks of P in the tile that takes them, beside V and O."""
    with pytest.raises(CapacityError, match=r"compute tile .* needs .* bytes of data memory"):
        running.run(running.mapping("iron"), Parameters(lq=256, num_heads=1), "npu1", data=False, p_depths=(2, 2, 4))


# ---- what follows


@pytest.mark.parametrize("device", DEVICES)
def test_three_quarters_of_the_tiles_take_a_third_longer(table: Table, device: str) -> None:
    """Less what the host takes, which is less for fewer transfers."""
    assert 1.24 < ms(table, "fused", device, FEWER) / ms(table, "fused", device) < 1.34


@pytest.mark.parametrize("device", DEVICES)
def test_balance_gains_more_than_memtiles(table: Table, device: str) -> None:
    """Twice the bandwidth of MemTiles alone gains nothing; equal stages gain half again; only then do wider streams show."""
    for name in ("iron", "dato"):
        base = ms(table, name, device)
        assert 1 <= base / ms(table, name, device, WIDER) < 1.02
        assert base / ms(table, name, device, EQUAL) > 1.45
    assert 1.02 < ms(table, "iron", device, EQUAL) / ms(table, "iron", device, BOTH) < 1.15
    assert 1 <= ms(table, "fused", device) / ms(table, "fused", device, WIDER) < 1.02


@pytest.mark.parametrize("device", DEVICES)
def test_two_blocks_are_needed_at_the_tile_that_never_waits_and_nowhere_else(table: Table, device: str) -> None:
    """The softmax tile takes scores and makes P: with one buffer there it waits for a stream each block. All other ends may have
    one, and more than two help nowhere."""
    base = ms(table, "iron", device)
    slower = {depths("scores", (2, 2, 1)), depths("P", (1, 2, 2))}
    for change in {a.change for a in ABLATIONS if "deep" in a.change}:
        ratio = ms(table, "iron", device, change) / base
        assert (1.1 < ratio < 1.3) if change in slower else ratio == pytest.approx(1, abs=0.002), change


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("length", LENGTHS)
def test_the_gain_is_the_product_of_its_parts(rows: list[dict[str, Any]], device: str, length: int) -> None:
    found = ablations.split(rows, device, length)
    assert found.tiles == pytest.approx(4 / 3)
    assert found.tiles * found.balance * found.memtiles * found.host * found.rest == pytest.approx(found.total)
    assert found.balance > found.tiles > found.memtiles
    assert (0.97 if length == LONG else 0.85) < found.rest < 1.02
    assert str(found).startswith(f"{found.total:.2f} = 1.33 (tiles) x ")


def test_the_parts_are_ratios_of_times() -> None:
    times = {("iron", BASE): 60, ("iron", EQUAL): 40, ("iron", BOTH): 32, ("iron", HOST): 50, ("fused", BASE): 24, ("fused", HOST): 16}
    rows = [
        {"mapping": mapping, "change": change, "ms": ms, "tiles": 24 if mapping == "iron" else 32, "device": "npu2", "length": SHORT}
        for (mapping, change), ms in times.items()
    ]
    found = ablations.split(rows, "npu2", SHORT)
    assert (found.total, found.balance, found.memtiles) == (60 / 24, 60 / 40, 40 / 32)
    assert found.tiles == pytest.approx(32 / 24)
    assert found.host == pytest.approx((60 / 24) / (50 / 16)), "the gain, over the gain without the host's time"


def test_fused_over_dato_is_balance_and_kernels() -> None:
    """All tiles in both; what is left beside balance and host is what larger blocks save the kernels."""
    found = dato_factors()
    assert found["total"] == pytest.approx(2.05, abs=0.05)
    assert found["balance"] == pytest.approx(1.71, abs=0.05)
    assert found["rest"] == pytest.approx(found["kernels"], rel=0.05)
    assert found["balance"] * found["host"] * found["rest"] == pytest.approx(found["total"])


def test_the_host_is_what_short_sequences_of_xdna_2_lose(rows: list[dict[str, Any]], table: Table) -> None:
    assert ablations.split(rows, "npu2", SHORT).host < 0.65 < 0.85 < ablations.split(rows, "npu2", LONG).host < 1
    assert ms(table, "fused", "npu2", HOST, SHORT) < 0.6 * ms(table, "fused", "npu2", BASE, SHORT)


def test_one_constant_decides_the_claim_of_xdna_1(table: Table) -> None:
    """Fused over IRON for a tile: 1.6 with the cost model's products, under 1.2 if they took as long as those of XDNA 2."""
    tiles = 4 / 3
    assert ms(table, "iron", "npu1") / ms(table, "fused", "npu1") / tiles > 1.55
    assert 1.05 < ms(table, "iron", "npu1", SLOW) / ms(table, "fused", "npu1", SLOW) / tiles < 1.2


def test_the_command_prints_all(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ablations, "table", lambda: json.loads(ablations.DATA.read_text()))
    ablations.main([])
    out = capsys.readouterr().out
    assert out.count("IRON over fused: ") == 4 and all(a.change in out for a in ABLATIONS)


def test_lengths_suit_all_of_them() -> None:
    for length in LENGTHS:
        for a in ABLATIONS:
            for device in a.devices:
                p = Parameters(lq=length, num_heads=compare.HEADS, **a.given).of_mapping(a.mapping, device)
                assert p.padded().lq == length
