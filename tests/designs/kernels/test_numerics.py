"""The data of the numerics study: complete, recomputable, and saying what the text says."""

from __future__ import annotations

import json

import numpy as np
import pytest

from designs.kernels.numerics import DATA, INPUTS, LENGTHS, VARIANTS, attention, bf16, exact, point, variant


@pytest.fixture(scope="module")
def points():
    return json.loads(DATA.read_text())


def find(points, name, inputs, length):
    return next(p for p in points if (p["variant"], p["inputs"], p["length"]) == (name, inputs, length))


def test_every_point_is_there(points):
    keys = [(p["inputs"], p["length"], p["variant"]) for p in points]
    assert keys == [(i, n, v.name) for i in INPUTS for n in LENGTHS for v in VARIANTS]


@pytest.mark.parametrize(
    ("name", "inputs", "length"),
    [("bfp16-linear", "gaussian", 512), ("bf16-tables", "tails", 1024), ("fp32", "large-logits", 256),
     ("bfp16", "sinks", 2048), ("bf16-scores", "outliers", 128), ("bf16-linear", "gaussian", 2048)],
)  # fmt: skip
def test_points_are_what_the_command_computes(points, name, inputs, length):
    kept, now = find(points, name, inputs, length), point(name, inputs, length)
    for key in ("relative_l1", "max_abs"):  # BLAS may add in another order elsewhere
        assert now[key] == pytest.approx(kept[key], rel=0.02)
    assert now["missed"] == pytest.approx(kept["missed"], abs=2e-3)


def test_levels_agree_with_the_published_ones(points):
    for length in LENGTHS[2:]:
        assert 4.0e-2 < find(points, "bfp16-linear", "gaussian", length)["relative_l1"] < 5.6e-2
        assert find(points, "bfp16-linear", "gaussian", length)["missed"] == 0


def test_each_coarser_arithmetic_is_worse_for_gaussian_inputs(points):
    order = ("fp32", "bf16-scores", "bf16", "bfp16", "bf16-linear", "bfp16-linear")
    for length in LENGTHS:
        errors = [find(points, name, "gaussian", length)["relative_l1"] for name in order]
        assert errors == sorted(errors)
        tables = find(points, "bf16-tables", "gaussian", length)["relative_l1"]
        assert tables < 1.2 * find(points, "bf16", "gaussian", length)["relative_l1"]


def test_inputs_other_than_gaussian_are_harder(points):
    """What the published validation does not show: the tolerance is missed, or the relative error far larger."""
    assert find(points, "bfp16", "sinks", 1024)["relative_l1"] > 5 * find(points, "bfp16", "gaussian", 1024)["relative_l1"]
    assert find(points, "bfp16-linear", "outliers", 1024)["missed"] > 0
    assert find(points, "bfp16-linear", "large-logits", 1024)["missed"] > 0


def test_fp32_variant_is_exact_but_for_the_output():
    rng = np.random.default_rng(3)
    q, k, v = (bf16(rng.standard_normal((n, 64))) for n in (32, 256, 256))
    got, truth = attention(variant("fp32"), q, k, v), exact(q, k, v)
    assert (np.abs(got - truth) <= 2.0**-8 * np.abs(truth) + 1e-6).all()


def test_causal_attention_sees_no_later_key():
    rng = np.random.default_rng(3)
    q, k, v = (bf16(rng.standard_normal((n, 64))) for n in (64, 256, 256))
    for first in (0, 64, 192):
        truth = exact(q, k, v, first)
        changed = exact(q, k, np.where(np.arange(256)[:, None] >= first + 64, 1e3, v), first)
        assert np.array_equal(truth, changed)
        got = attention(variant("fp32"), q, k, v, first=first)
        assert np.abs(got - truth).max() < 0.02
