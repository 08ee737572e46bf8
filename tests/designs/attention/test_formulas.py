"""The closed formulas against the operational intensities that are published or follow from published structures."""

from __future__ import annotations

import pytest

from designs.attention import formulas
from designs.attention.parameters import Parameters


def of(mapping: str, lq: int, device: str = "npu2", **given: int) -> Parameters:
    return Parameters(lq=lq, **given).of_mapping(mapping, device)


def at(mapping: str, level: str, lq: int, device: str = "npu2", **given: int) -> float:
    return formulas.intensity(mapping, of(mapping, lq, device, **given), level)


def one_way(mapping: str, level: str, lq: int) -> float:
    p = of(mapping, lq)
    return p.flops / formulas.traffic(mapping, p)[level].read


@pytest.mark.parametrize(("length", "value"), [(32768, 251.1), (1024, 158), (256, 73)])
def test_fused_at_ddr(length: int, value: float) -> None:
    assert at("fused", "ddr", length) == pytest.approx(value, rel=0.01)
    exact = 4 * 256 * length * 64 / (2 * 64 * (2 * length + 5 * 256))
    assert at("fused", "ddr", length) == pytest.approx(exact)


def test_fused_on_the_chip() -> None:
    """128 in and out together, 256 one way at the MemTile; 64 at the compute tiles: asymptotically."""
    assert at("fused", "memtile", 2**20) == pytest.approx(128, rel=0.01)
    assert one_way("fused", "memtile", 2**20) == pytest.approx(256, rel=0.01)
    assert at("fused", "l1", 2**20) == pytest.approx(64, rel=0.01)


@pytest.mark.parametrize(("length", "value"), [(32768, 504.1), (1024, 341), (512, 256)])
def test_iron_at_ddr(length: int, value: float) -> None:
    assert at("iron", "ddr", length) == pytest.approx(value, rel=0.002)


def test_iron_at_the_memtile_is_at_most_32() -> None:
    """d/2 for scores and probabilities alone; 28.4 with K and V, which eight pipelines share; twice as much one way."""
    p = of("iron", 2**20)
    scores = 2 * 2 * 2 * p.num_heads * p.lq * p.keys  # S and P of 2 bytes, in and out
    assert p.flops / scores == 32
    assert at("iron", "memtile", 2**20) == pytest.approx(28.4, abs=0.05)
    assert one_way("iron", "memtile", 2**20) == pytest.approx(56.9, abs=0.1)
    assert all(at("iron", "memtile", n) < 32 for n in (512, 4096, 2**20))


def test_iron_at_the_compute_tiles() -> None:
    """49,152 B for each 64 x 64 block: K, S out, S in, P out, P in, V."""
    assert at("iron", "l1", 2**20) == pytest.approx(64 * 64 * 4 * 64 / 49152, rel=1e-3)
    assert at("iron", "l1", 2**20) == pytest.approx(21.3, abs=0.05)


@pytest.mark.parametrize(("device", "sharing", "ddr", "memtile"), [("npu1", 4, 128, 64), ("npu2", 4, 128, 64), ("npu2", 2, 64, 32)])
def test_dato(device: str, sharing: int, ddr: float, memtile: float) -> None:
    """Bq x sharing at DDR, half of it at the MemTile, where a stream goes in and out."""
    assert at("dato", "ddr", 2**20, device, kv_sharing=sharing) == pytest.approx(ddr, rel=1e-3)
    assert at("dato", "memtile", 2**20, device, kv_sharing=sharing) == pytest.approx(memtile, rel=1e-3)


def test_dato_at_the_compute_tiles() -> None:
    """K and V of 4096 B and the corrections, 64 B out and in, for each 32 x 32 block."""
    assert at("dato", "l1", 2**20) == pytest.approx(32 * 32 * 4 * 64 / (2 * 4096 + 2 * 64), rel=1e-3)


def test_layer_by_layer() -> None:
    """S and P written and read: d/2; with K and V, read once for 256 queries, and long rows of S read twice, less."""
    p = of("layerwise", 4096)
    scores = p.num_heads * p.lq * p.keys
    assert p.flops / (4 * 2 * scores) == 32  # four passes of 2 bytes
    assert at("layerwise", "ddr", 4096) == pytest.approx(4 * 64 / (8 + 4 * 64 / 256), rel=0.02)
    assert at("layerwise", "ddr", 2**20) == pytest.approx(4 * 64 / (10 + 4 * 64 / 256), rel=0.001)
    assert at("layerwise", "memtile", 4096) == pytest.approx(at("layerwise", "ddr", 4096) / 2)


def test_the_parts_of_layer_by_layer_add_up() -> None:
    p = of("layerwise", 512)
    parts = {name: formulas.moved(own) for name, own in formulas.streams("layerwise", p).items()}
    assert list(parts) == ["scores", "softmax", "output"]
    for level, moved in formulas.traffic("layerwise", p).items():
        assert moved.read == sum(part[level].read for part in parts.values())
        assert moved.written == sum(part[level].written for part in parts.values())
    assert parts["softmax"]["ddr"].read == parts["softmax"]["ddr"].written == 2 * 12 * 512 * 512


def test_the_order_of_the_mappings() -> None:
    """What is kept on the chip: DDR for all but layer by layer, MemTiles for DATO and fused."""
    ddr = {m: at(m, "ddr", 32768) for m in ("layerwise", "dato", "fused", "iron")}
    assert list(ddr.values()) == sorted(ddr.values())
    memtile = {m: at(m, "memtile", 32768) for m in ("layerwise", "iron", "dato", "fused")}
    assert list(memtile.values()) == sorted(memtile.values())


def test_a_mask_moves_fewer_scores_only_in_the_iron_mapping() -> None:
    for mapping in ("layerwise", "fused"):
        assert formulas.traffic(mapping, of(mapping, 1024, causal=True)) == formulas.traffic(mapping, of(mapping, 1024))
    masked, all_of_it = (formulas.traffic("iron", of("iron", 1024, causal=c)) for c in (True, False))
    assert masked["ddr"] == all_of_it["ddr"]
    assert masked["memtile"].total < 0.65 * all_of_it["memtile"].total


def test_padding_moves_more() -> None:
    assert formulas.traffic("iron", of("iron", 256)) == formulas.traffic("iron", of("iron", 512))
    assert at("iron", "ddr", 256) == at("iron", "ddr", 512) / 4


def test_heads_that_share_keys_move_the_same() -> None:
    """Each head's pass over its K and V is counted, whoever else uses them."""
    for mapping in formulas.PROGRAMS:
        assert formulas.traffic(mapping, of(mapping, 512, num_kv_heads=4)) == formulas.traffic(mapping, of(mapping, 512))
