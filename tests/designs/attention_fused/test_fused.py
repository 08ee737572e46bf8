"""Fused attention: right on both devices, bytes in closed formulas, rules with sentences, launches that repeat."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from ml_dtypes import bfloat16

from designs.kernels.models import MODELS
from npusim.errors import CapacityError, DesignError
from npusim.load import load_design
from npusim.place import place
from npusim.run import simulate

DESIGN = Path(__file__).parents[3] / "designs" / "attention_fused" / "design.py"
TOLERANCE = {"npu2": {"rtol": 1.6e-2, "atol": 1e-1}, "npu1": {"rtol": 4e-2, "atol": 1.5e-1}}
"""Published: mlir-air attn_npu2.py and attn_npu1.py (the latter allows 0.5 % beyond)."""


def inputs(lq, num_heads, num_kv_heads, dk=64, dv=64, seed=0):
    rng = np.random.default_rng(seed)
    shapes = (num_heads, lq, dk), (num_kv_heads, lq, dk), (num_kv_heads, lq, dv)
    return [rng.standard_normal(shape).astype(bfloat16) for shape in shapes]


def sliced(x):
    """[heads, rows, dv] in slices of 64 columns: [heads * dv/64, rows, 64]."""
    heads, rows, columns = x.shape
    return np.ascontiguousarray(x.reshape(heads, rows, columns // 64, 64).swapaxes(1, 2).reshape(-1, rows, 64))


def whole(x, heads):
    slices, rows, _ = x.shape
    return x.reshape(heads, slices // heads, rows, 64).swapaxes(1, 2).reshape(heads, rows, -1)


def truth(q, k, v, causal=False, window=None):
    """Attention in fp32."""
    groups = q.shape[0] // k.shape[0]
    q, k, v = (np.asarray(x, np.float32) for x in (q, np.repeat(k, groups, 0), np.repeat(v, groups, 0)))
    s = q @ k.swapaxes(1, 2) / np.sqrt(q.shape[2])
    i, j = np.ogrid[: q.shape[1], : k.shape[1]]
    hidden = (j > i) if causal else np.zeros((1, 1), bool)
    if window:
        hidden = hidden | (j <= i - window)
    s = np.where(hidden, -np.inf, s)
    p = np.exp(s - s.max(-1, keepdims=True))
    return (p / p.sum(-1, keepdims=True)) @ v


def run(device, lq, num_heads, num_kv_heads=None, data=True, periodic=None, seed=0, **options):
    """(output, truth, report) of one run."""
    num_kv_heads = num_kv_heads or num_heads
    q, k, v = inputs(lq, num_heads, num_kv_heads, options.get("dk", 64), options.get("dv", 64), seed)
    design = load_design(DESIGN, device, lq=lq, num_heads=num_heads, num_kv_heads=num_kv_heads, **options)
    out = np.zeros((num_heads * v.shape[2] // 64, lq, 64), bfloat16)
    report = simulate(design, [q, k, sliced(v), out], kernels=MODELS, data=data, trace=False, periodic=periodic)
    masks = {key: options[key] for key in ("causal", "window") if key in options}
    return whole(out, num_heads), truth(q, k, v, **masks), report


CASES = [
    ("npu2", 512, 2, None, {}),
    ("npu2", 512, 2, None, {"causal": True}),
    ("npu2", 512, 2, None, {"causal": True, "causal_skip": True}),
    ("npu2", 512, 2, None, {"causal": True, "window": 128}),
    ("npu2", 512, 2, None, {"causal": True, "window": 128, "causal_skip": True}),
    ("npu2", 256, 32, 8, {}),
    ("npu2", 256, 4, 2, {"causal": True}),
    ("npu2", 256, 2, None, {"dk": 128, "dv": 128}),
    ("npu2", 512, 2, None, {"dk": 128, "dv": 128, "causal": True}),
    ("npu1", 512, 1, None, {}),
    ("npu1", 256, 3, None, {"causal": True}),
    ("npu1", 256, 4, 2, {"dk": 128, "dv": 128}),
]


@pytest.mark.parametrize(("device", "lq", "heads", "kv_heads", "options"), CASES)
def test_right_within_the_published_tolerance(device, lq, heads, kv_heads, options):
    got, want, report = run(device, lq, heads, kv_heads, **options)
    np.testing.assert_allclose(got.astype(np.float32), want, **TOLERANCE[device])
    assert not report.warnings
    _, _, timing = run(device, lq, heads, kv_heads, data=False, **options)
    assert timing.ticks == report.ticks


@pytest.mark.parametrize("causal", [False, True])
def test_gpt2_small_at_1024_tokens(causal):
    got, want, _ = run("npu2", 1024, 12, causal=causal)
    np.testing.assert_allclose(got.astype(np.float32), want, **TOLERANCE["npu2"])
    error = np.abs(got.astype(np.float32) - want).mean() / np.abs(want).mean()
    assert 3e-2 < error < 5.5e-2  # published 3.8e-2 to 5.5e-2; causal rows with few keys are better


@pytest.mark.parametrize("device", ["npu1", "npu2"])
@pytest.mark.parametrize(("lq", "heads", "kv_heads", "d"), [(256, 2, 2, 64), (512, 4, 2, 64), (512, 2, 1, 128), (1024, 2, 2, 64)])
def test_bytes_at_each_level_are_the_formula_s(device, lq, heads, kv_heads, d):
    _, _, report = run(device, lq, heads, kv_heads, data=False, dk=d, dv=d)
    stages, tiles = 4, 4
    passes = d // 64  # slices of V: each recomputes the scores
    launches = heads * lq // 256 * passes
    queries, keys, values, output = 256 * d * 2, lq * d * 2, lq * 64 * 2, 256 * 64 * 2
    into = launches * (stages * queries + keys + values)  # every stage sees all queries, and a quarter of K and V
    assert report.traffic["ddr"].read == into
    assert report.traffic["ddr"].written == launches * output
    assert report.traffic["memtile"].written == into + launches * output
    assert report.traffic["memtile"].read == into + launches * output  # a broadcast is read once
    assert report.traffic["l1"].written == tiles * into  # and arrives at the four cores of a row
    assert report.traffic["l1"].read == launches * output
    assert report.cascade_bytes == launches * tiles * (stages - 1) * (64 * 64 + 64 + 64) * 2


def test_the_whole_array_is_in_use_within_its_limits():
    machine = place(load_design(DESIGN, "npu2", lq=512, num_heads=2))
    shim = [c for c in machine.channels if c.tile.row == 0]
    assert len(machine.cores) == 32
    assert sum(c.direction == "MM2S" for c in shim) == 16
    assert {core.tile for core in machine.cores} == {(c, r) for c in range(8) for r in range(2, 6)}
    for core in machine.cores:
        used = sum(b.type.nbytes for b in machine.buffers if b.tile == core.tile)
        assert 41_000 < used < 51_000  # AMD's example as the real compilers lower it: 41,472 B, 50,432 B where it merges


@pytest.mark.parametrize("device", ["npu1", "npu2"])
def test_launches_left_out_change_nothing(device):
    facts = []
    for periodic in (False, True):
        _, _, report = run(device, 1024, 4, data=False, periodic=periodic)
        channels = [(str(u.channel), u.bytes, u.transfers, u.busy) for u in report.channels]
        facts.append((report.ticks, report.traffic, channels, report.cores, report.cascade_bytes))
        assert (report.extrapolated_periods > 0) == periodic
    assert facts[0] == facts[1]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"lq": 500}, "lq = 500 is no multiple of 256, the queries of a launch"),
        ({"lqp": 48, "lkp": 12}, "lqp / num_q_tiles = 12 is no multiple of 32"),
        ({"lq": 256, "lk": 320}, "lk = 320 is no multiple of 256, a block of keys for every stage"),
        ({"dk": 96}, "dk = 96 is no multiple of 64"),
        ({"dv": 80}, "dv = 80 is no multiple of 64"),
        ({"num_heads": 3}, "num_heads = 3 is no multiple of 2, the heads of a launch"),
        ({"num_heads": 4, "num_kv_heads": 3}, "num_heads = 4 is no multiple of num_kv_heads = 3"),
        ({"lk": 1024, "causal": True}, "lq = 512 and lk = 1024"),
        ({"causal_skip": True}, "belong to a causal mask"),
        ({"window": 64}, "belong to a causal mask"),
        ({"causal": True, "window": 100}, "window = 100 is no multiple of 64"),
        ({"num_cascade_stages": 1}, "a cascade has at least two stages"),
    ],
)
def test_rules_are_sentences(options, words):
    with pytest.raises(ValueError, match=words):
        load_design(DESIGN, "npu2", **options)


def broken(tmp_path, *changes, lq=256):
    """Runs the design with text replaced: (before, after), each."""
    text = DESIGN.read_text()
    for before, after in changes:
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    path = tmp_path / "design.py"
    path.write_text(text)
    design = load_design(path, "npu2", lq=lq, num_heads=2)
    arrays = [np.zeros(v.type.shape, bfloat16) for v in design_arguments(design)]
    return simulate(design, arrays, kernels=MODELS, data=False, trace=False)


def design_arguments(design):
    return place(design).parties.program.function.entry.args


def line_of(words):
    """``design.py:<number>`` of the only line that holds the words."""
    (number,) = (i for i, line in enumerate(DESIGN.read_text().splitlines(), 1) if words in line)
    return f"design.py:{number}"


def test_a_get_that_is_missing_is_named(tmp_path):
    with pytest.raises(DesignError) as caught:
        broken(tmp_path, ('        self.receive("V", self.v)\n', ""))
    assert "channel 'V_0' has a put" in str(caught.value) and "no get" in str(caught.value)


UPWARDS = [
    (
        "self.at_stage(last, self.pass_on, lambda: self.at_stage(0, self.finish, self.merge_and_pass_on))",
        "self.at_stage(0, self.pass_on, lambda: self.at_stage(last, self.finish, self.merge_and_pass_on))",
    ),
    ("below = arith.SubIOp(self.ty, ConstantOp(IndexType.get(), 1))", "below = self.ty"),
    (
        "ChannelGet(f\"cascade_{name}\", buffer, indices=[self.tx, self.ty])",
        "ChannelGet(f\"cascade_{name}\", buffer, indices=[self.tx, arith.SubIOp(self.ty, ConstantOp(IndexType.get(), 1))])",
    ),
]


def test_a_cascade_that_goes_up_is_refused(tmp_path):
    with pytest.raises(DesignError) as caught:
        broken(tmp_path, *UPWARDS)
    for words in ("cascade_o", "compute tile (0,2)", "compute tile (0,3)", "send from ty to ty - 1", line_of('ChannelPut(f"cascade_')):
        assert words in str(caught.value)


def test_blocks_of_twice_the_keys_are_refused():
    with pytest.raises(ValueError, match="got 64 queries by 128 keys"):
        load_design(DESIGN, "npu2", lq=512, lkp=128)
    with pytest.raises(CapacityError) as caught:
        place(load_design(DESIGN, "npu2", lq=512, lqp=512, lkp=128))
    for words in ("compute tile (0,2)", "65536", "117248 bytes"):
        assert words in str(caught.value)


@pytest.mark.parametrize(("device", "heads"), [("npu1", 2), ("npu2", 4)])
@pytest.mark.parametrize("dv", [64, 128])
def test_cores_count_back_to_zero(device, heads, dv):
    """A mask's place is counted in a core's memory, which a second run of the same load finds as the first one left it."""
    from npusim.run import loaded

    machine = place(load_design(DESIGN, device, lq=512, num_heads=heads, dv=dv, causal=True))
    simulator = loaded(machine, kernels=MODELS, trace=False)
    simulator.run([np.zeros(v.type.shape, bfloat16) for v in machine.parties.program.function.entry.args])
    counters = [b for b in machine.buffers if b.type.element == "i32"]
    assert len(counters) == len(machine.cores)
    assert all(simulator.memory[b].tolist() == [0, 0, 0] for b in counters)


@pytest.mark.parametrize("device", ["npu1", "npu2"])
@pytest.mark.parametrize("causal", [False, True])
def test_smaller_blocks_are_right_too(device, causal):
    got, want, _ = run(device, 256, 2, lqp=128, lkp=32, causal=causal)
    np.testing.assert_allclose(got.astype(np.float32), want, **TOLERANCE[device])


@pytest.mark.parametrize(
    ("lq", "heads", "milliseconds", "within"),
    [
        (16384, 2, 40.1, 0.02),  # what the kernels' cycles were fitted to
        (32768, 12, 910.7, 0.10),  # for comparison only: 3622 GFLOP/s
    ],
)
def test_published_times_of_long_sequences(lq, heads, milliseconds, within):
    design = load_design(DESIGN, "npu2", lq=lq, num_heads=heads)
    arrays = [np.zeros((heads, lq, 64), bfloat16) for _ in range(4)]
    report = simulate(design, arrays, kernels=MODELS, data=False, trace=False)
    assert report.seconds * 1e3 == pytest.approx(milliseconds, rel=within)


def test_the_launch_that_the_calibration_counts():
    from designs.kernels import calibration

    launches = []
    for lq in (2048, 4096):
        _, _, report = run("npu2", lq, 2, data=False)
        launches.append(report.cycles / (lq // 256))
    rounds = (launches[1] - launches[0]) / (4096 // 256 - 2048 // 256)
    beside = launches[0] - 2048 // 256 * rounds
    assert beside == pytest.approx(calibration.FUSED_LAUNCH, rel=0.01)
    assert rounds == pytest.approx(calibration.fused_round(), rel=0.01)
