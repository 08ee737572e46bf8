"""``python -m designs.attention_X``: one table for every mapping, and its exit codes."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import pytest

from designs.attention import command, report, run
from designs.attention.parameters import OF_A_MAPPING, TILES, Parameters
from npulab.record import Run
from npusim.report import Traffic
from tests.designs.attention.runs import DEVICES, NAMES, outcome

STAGES = {
    "layerwise": ("score", "softmax_rows", "weighted_sum"),
    "dato": ("send_and_score", "softmax", "weighted_sum", "accumulate"),
    "iron": ("scores", "softmax", "output"),
    "fused": ("attention, row 0", "attention, row 1", "attention, row 2", "attention, row 3"),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", NAMES)
def test_the_table_says_all(name: str, device: str, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--device", device, "--lq", "256", "--num-heads", "4", "--num-kv-heads", "2"]
    assert command.main(name, given) == 0  # type: ignore[arg-type]
    out = capsys.readouterr().out
    for words in (
        f"attention_{name} on {device} (simulated): 256 tokens, 4 heads (2 of K and V), d = 64",
        "cycles = ",
        "67,108,864 FLOP (full count, masked or not)",
        "GFLOP/s (simulated)",
        ": within rtol",
        "DDR (shim DMA)",
        "MemTile DMA",
        "compute-tile DMA",
        "FLOP/s by the roofline (limited by ",
        "at the pace of the slowest (",
        "to the byte what the closed formulas say",
        "longest stage: " if name == "layerwise" else "limiting stage: ",
        *STAGES[name],
    ):
        assert words in out, words


@pytest.mark.parametrize("device", DEVICES)
def test_the_environment_names_the_device(device: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NPULAB_DEVICE", device)
    words = ["--lq", "256", "--num-heads", "1", "--timing-only"]
    assert command.main("iron", words) == 0
    assert f"attention_iron on {device} (simulated)" in capsys.readouterr().out
    assert command.main("iron", [*words, "--device", "npu1"]) == 0
    assert "attention_iron on npu1 (simulated)" in capsys.readouterr().out, "what is asked for comes first"


def test_without_a_word_it_is_an_npu2(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NPULAB_DEVICE", raising=False)
    monkeypatch.setenv("NPULAB_BACKEND", "sim")
    assert command.main("iron", ["--lq", "256", "--num-heads", "1", "--timing-only"]) == 0
    assert "attention_iron on npu2 (simulated)" in capsys.readouterr().out


@pytest.mark.parametrize(("given", "words"), [("npu2_4col", "is made for npu1 and npu2, not for npu2_4col"), ("npu7", "no device 'npu7'")])
def test_a_device_of_the_environment_that_it_is_not_made_for(
    given: str, words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NPULAB_DEVICE", given)
    assert command.main("iron", ["--lq", "256"]) == 1
    assert words in capsys.readouterr().err


def test_the_longest_stage_knows_its_pace() -> None:
    """Rows of a stage that waits for DDR, and of one that nothing holds up (exponentials from tables)."""
    by_ddr, by_cores = (report.table(outcome("layerwise", device, lq=1024)).splitlines()[-1] for device in ("npu2", "npu1"))
    assert "longest stage: softmax_rows, " in by_ddr and "(DDR sets its pace) (simulated)" in by_ddr
    assert "longest stage: softmax_rows, " in by_cores and "(they set its pace)" in by_cores
    whole = outcome("iron", "npu2", lq=1024)
    busy = run.limiting(whole.run).busy
    assert f"limiting stage: softmax, its cores busy {busy:.0%} of the time (simulated)" in report.table(whole)


def test_causal_and_timing_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main("iron", ["--lq", "512", "--num-heads", "1", "--causal", "--timing-only"]) == 0
    out = capsys.readouterr().out
    assert "512 tokens, 1 head, d = 64, causal" in out and "timing only, nothing was computed" in out


def test_long_sequences_are_timing_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main("iron", ["--lq", "4096"]) == 0
    assert "more than 12,582,912 scores: timing only" in capsys.readouterr().out


def test_a_seed(capsys: pytest.CaptureFixture[str]) -> None:
    said = []
    for seed in ([], ["--seed", "0"], ["--seed", "5"]):
        assert command.main("dato", ["--lq", "256", "--num-heads", "1", "--device", "npu1", *seed]) == 0
        said.append(capsys.readouterr().out)
    assert said[0] == said[1] != said[2]


def test_scores_of_all_heads_count(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["--lq", "256", "--num-heads", "2", "--device", "npu1"]
    for largest, timing in ((2 * 256 * 256, False), (2 * 256 * 256 - 1, True)):
        monkeypatch.setattr(command, "LARGEST", largest)
        assert command.main("dato", words) == 0
        out = capsys.readouterr().out
        assert ("timing only, nothing was computed" in out) == ("scores: timing only" in out) == timing


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("dato", ["--causal"], "ValueError: attention_dato: it has no causal mask"),
        ("layerwise", ["--lq", "300"], "lq = 300 is no multiple of 256"),
        ("iron", ["--num-heads", "12", "--num-kv-heads", "5"], "num_heads = 12 is no multiple of num_kv_heads = 5"),
    ],
)
def test_refusals(name: str, given: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(name, given) == 1  # type: ignore[arg-type]
    error = capsys.readouterr().err
    assert words in error and "Traceback" not in error


def test_a_wrong_result_and_wrong_bytes_are_failures(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    given = ["--lq", "256", "--num-heads", "1", "--device", "npu1"]
    truth = run.reference.attention
    monkeypatch.setattr(run.reference, "attention", lambda *a, **k: truth(*a, **k) + 1)
    assert command.main("dato", given) == 1
    assert "NOT within" in capsys.readouterr().out
    monkeypatch.undo()
    formula = run.formulas.traffic

    def one_byte_more(*a: object) -> object:
        moved = formula(*a)  # type: ignore[arg-type]
        moved["l1"] = Traffic(moved["l1"].read, moved["l1"].written + 1)
        return moved

    monkeypatch.setattr(run.formulas, "traffic", one_byte_more)
    assert command.main("dato", given) == 1
    assert "NOT what the closed formulas say" in capsys.readouterr().out


def test_options_are_those_of_the_mapping() -> None:
    assert command.parser("dato").parse_args(["--kv-sharing", "2"]).kv_sharing == 2
    with pytest.raises(SystemExit):
        command.parser("iron").parse_args(["--kv-sharing", "2"])
    assert command.parser("fused").parse_args(["--causal-skip"]).causal_skip
    assert command.parser("fused").parse_args(["--window", "128"]).window == 128


@pytest.mark.parametrize("name", NAMES)
def test_there_is_an_option_for_each_field_that_the_mapping_takes(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The others it would refuse whatever their value; --causal is everywhere, since that one is worth a sentence."""
    takes = {f.name for f in fields(Parameters)} - set(OF_A_MAPPING) - {"window", "causal_skip"} | set(TILES[name]["npu2"])  # type: ignore[index]
    if name == "fused":
        takes |= {"window", "causal_skip"}
    given = vars(command.parser(name).parse_args([]))  # type: ignore[arg-type]
    assert set(given) - {"device", "timing_only", "seed"} == takes
    assert Parameters(**{field: given[field] for field in takes}) == Parameters()
    with pytest.raises(SystemExit):
        command.parser(name).parse_args(["--help"])  # type: ignore[arg-type]
    text = " ".join(capsys.readouterr().out.split())
    pieces = {"layerwise": "256", "dato": "128 on npu1, 256 on npu2", "iron": "256 on npu1, 512 on npu2", "fused": "256"}
    assert f"queries worked on at a time (default {pieces[name]})" in text


def test_a_window_by_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--lq", "512", "--num-heads", "2", "--causal", "--causal-skip", "--window", "128"]
    assert command.main("fused", words) == 0
    assert "512 tokens, 2 heads, d = 64, causal, looking back 128" in capsys.readouterr().out


@pytest.mark.parametrize("name", NAMES)
def test_as_a_command(name: str, tmp_path: Path) -> None:
    words = ["--lq", "256", "--num-heads", "1", "--device", "npu1"]
    done = subprocess.run(
        [sys.executable, "-m", f"designs.attention_{name}", *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert f"attention_{name} on npu1" in done.stdout


def test_in_a_notebook() -> None:
    done = outcome("iron", "npu2", lq=256)
    html = done._repr_html_()
    assert html.startswith("<table") and "<caption" in html and html.count("<tbody>") == 3
    for rows in (report.levels(done), report.stages(done), report.summary(done)):
        assert all(cell.replace("&", "&amp;").replace("<", "&lt;").replace("'", "&#x27;") in html for row in rows for cell in row)
    assert run.limiting(done.run).name == "softmax"
    assert [use.tiles for use in run.stages(done.run)] == [8, 8, 8]


@pytest.mark.parametrize("name", NAMES)
def test_every_row_of_the_notebooks_table_spans_its_columns(name: str) -> None:
    done = outcome(name, "npu2", lq=256)
    for shown in (done, replace(done, run=Run("measured", done.run.device, 1e-3, name=name, flops=done.parameters.flops))):
        rows = re.findall(r"<tr>(.*?)</tr>", report.html(shown))
        widths = {sum(int(wide or 1) for wide in re.findall(r'<t[hd][^>]*?(?: colspan="(\d+)")?>', row)) for row in rows}
        assert widths == {len(report.levels(done)[0])}


def test_a_measured_run_shows_what_it_knows() -> None:
    simulated = outcome("iron", "npu2", lq=256)
    measured = Run("measured", simulated.run.device, 1e-3, name="attention_iron", flops=simulated.parameters.flops)
    text = report.table(replace(simulated, run=measured))
    assert "1 ms, measured" in text and "a measured run does not count them" in text
    assert report.levels(replace(simulated, run=measured)) == report.levels(simulated), "the formulas are exact"
    assert "limiting stage" not in text and "longest stage" not in text and "simulated" not in text


def test_shares_of_a_chain_add_up() -> None:
    uses = run.stages(outcome("layerwise", "npu2", lq=512).run)
    assert sum(use.share for use in uses) == pytest.approx(1)
    assert all(0 < use.busy < 1 for use in uses)


def test_unknown_mapping_has_no_package() -> None:
    with pytest.raises(ModuleNotFoundError):
        run.mapping("warp")  # type: ignore[arg-type]
    assert Parameters(num_heads=1)
