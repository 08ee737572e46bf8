"""The parameters of attention: defaults, padding, and a sentence for every rule."""

from __future__ import annotations

import math
from dataclasses import fields

import numpy as np
import pytest

from designs.attention.parameters import NAMES, TILES, Parameters


def test_defaults_are_gpt2_small() -> None:
    p = Parameters()
    assert (p.lq, p.lk, p.dk, p.dv, p.num_heads, p.num_kv_heads) == (1024, 1024, 64, 64, 12, 12)
    assert p.flops == 4 * 12 * 1024**2 * 64
    assert p.scale == pytest.approx(math.log2(math.e) / 8)
    assert str(p) == "1,024 tokens, 12 heads, d = 64"
    assert str(Parameters(lq=256, lk=512, num_kv_heads=4)) == "256 queries, 512 keys, 12 heads (4 of K and V), d = 64"
    assert str(Parameters(causal=True, dv=128)) == "1,024 tokens, 12 heads, d = 64 and 128, causal"


def test_flops_are_not_halved_for_a_mask() -> None:
    assert Parameters(causal=True).flops == Parameters().flops


@pytest.mark.parametrize("name", NAMES)
def test_each_mapping_chooses_its_pieces(name: str) -> None:
    for device, tiles in TILES[name].items():
        p = Parameters().of_mapping(name, device)
        assert all(p.tile(field) == size for field, size in tiles.items())
        assert p.bq == tiles["lqp"] // tiles["num_q_tiles"]
        assert p.of_mapping(name, device) == p
    with pytest.raises(ValueError, match="not chosen yet"):
        _ = Parameters().bq


def test_pieces_of_one_s_own() -> None:
    p = Parameters(lqp=256, num_q_tiles=4, lkp=32).of_mapping("iron", "npu2")
    assert (p.bq, p.lkp, p.num_q_tiles) == (64, 32, 4)


@pytest.mark.parametrize(("lq", "lk", "padded"), [(256, 256, (512, 512)), (1, 1, (512, 512)), (1000, 600, (1024, 1024)), (512, 512, (512, 512))])
def test_published_padding(lq: int, lk: int, padded: tuple[int, int]) -> None:
    full = Parameters(lq=lq, lk=lk).of_mapping("iron", "npu2").padded()
    assert (full.lq, full.lk) == padded


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"lq": 0}, "lq = 0: it must be at least 1"),
        ({"num_heads": -2}, "num_heads = -2: it must be at least 1"),
        ({"num_heads": 12, "num_kv_heads": 5}, "num_heads = 12 is no multiple of num_kv_heads = 5"),
        ({"lq": 256, "lk": 512, "causal": True}, "as many keys as queries, got lq = 256 and lk = 512"),
    ],
)
def test_what_no_mapping_can_do(given: dict[str, int], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Parameters(**given)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", [f.name for f in fields(Parameters)])
def test_fields_are_of_their_kind(name: str) -> None:
    """Whole numbers or switches; a field without a default of its own may be left."""
    switch = isinstance(getattr(Parameters(), name), bool)
    for wrong in ("64", 64.0, math.nan, [64], *((1, 0, None) if switch else (True, 0, -1))):
        with pytest.raises(ValueError, match=rf"^{name} = "):
            Parameters(**{name: wrong})  # type: ignore[arg-type]
    if name in ("lq", "dk", "num_heads"):
        with pytest.raises(ValueError, match=f"{name} = None: it must be a whole number"):
            Parameters(**{name: None})  # type: ignore[arg-type]
    elif not switch:
        assert Parameters(**{name: None}) == Parameters()  # type: ignore[arg-type]
        given = getattr(Parameters(**{name: np.int64(12)}), name)  # type: ignore[arg-type]
        assert given == 12 and type(given) is int


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"lq": 2**25, "lk": 256}, "q is of 8,589,934,592 bytes"),
        ({"lq": 2**10, "num_heads": 10**9}, "q is of 131,072,000,000,000 bytes"),
        ({"lq": 1024, "lk": 2**30}, "k is of 274,877,906,944 bytes"),
        ({"lq": 256, "dv": 2**23}, "v is of 8,589,934,592 bytes"),
    ],
)
def test_arrays_are_within_reach_of_an_offset(name: str, given: dict[str, int], words: str) -> None:
    with pytest.raises(ValueError, match=f"attention_{name}: {words}, and an offset into a host array reaches 4,294,967,296"):
        Parameters(**{"num_heads": 2, **given}).of_mapping(name, "npu2")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "device", "given", "words"),
    [
        ("warp", "npu2", {}, "there is no mapping 'warp'; there are layerwise, dato, iron, fused"),
        ("iron", "npu3", {}, "attention_iron is made for npu1 and npu2, not for npu3"),
        ("iron", "npu2", {"kv_sharing": 4}, "attention_iron has no kv_sharing"),
        ("dato", "npu2", {"num_cascade_stages": 4}, "attention_dato has no num_cascade_stages"),
        ("dato", "npu2", {"causal": True}, "it has no causal mask"),
        ("dato", "npu2", {"lq": 384, "lk": 384}, "lq = 384 is no multiple of 256, the queries of all pipelines"),
        ("dato", "npu1", {"lk": 1000}, "lk = 1000 is no multiple of 32, the keys of a block"),
        ("dato", "npu2", {"kv_sharing": 1}, "one stream each takes more shim channels than there are"),
        ("dato", "npu2", {"kv_sharing": 8}, "a MemTile has no more than six to split Q over"),
        ("dato", "npu2", {"num_q_tiles": 2}, "it has 4 or 8 pipelines, not 2"),
        ("dato", "npu2", {"window": 64}, "it has no sliding window"),
        ("iron", "npu2", {"num_q_tiles": 3}, "lqp = 512 is no multiple of 3, the tiles that share these queries"),
        ("iron", "npu2", {"lqp": 128}, "lqp / num_q_tiles = 16 is no multiple of 32"),
        ("iron", "npu2", {"lqp": 256, "causal": True}, "a causal mask needs square blocks, got 32 queries by 64 keys"),
        ("iron", "npu2", {"lkp": 96}, "lqp = 512 is no multiple of 96"),
        ("iron", "npu2", {"dk": 64, "dv": 32}, "keys and values are of one width, got dk = 64 and dv = 32"),
        ("iron", "npu2", {"dk": 128}, "dk = 128: tiles wider than 64 do not fit"),
        ("iron", "npu2", {"causal_skip": True, "causal": True}, "causal_skip is the fused mapping's"),
        ("layerwise", "npu2", {"lq": 300}, "lq = 300 is no multiple of 256"),
        ("layerwise", "npu2", {"lk": 100}, "lk = 100 is no multiple of 64"),
        ("layerwise", "npu2", {"lq": 256, "lk": 8192, "num_heads": 3}, "the rows that all tiles softmax at a time"),
        ("layerwise", "npu2", {"lqp": 128}, "its pieces are 256 queries on 4 tiles by 64 keys"),
        ("dato", "npu1", {"num_q_tiles": 8, "lqp": 256}, "npu1 has 4 columns, one for each pipeline, not 8"),
        ("iron", "npu1", {"num_q_tiles": 8, "lqp": 512}, "npu1 has 4 columns, one for each pipeline, not 8"),
        ("fused", "npu2", {"dk": 576}, "dk = 576: a tile holds 64 queries in their full width, 73,728 bytes, and has 65,536"),
        ("fused", "npu2", {"lq": 300}, "lq = 300 is no multiple of 256, the queries of a launch"),
        ("fused", "npu2", {"lk": 384}, "lk = 384 is no multiple of 256, a block of keys for every stage"),
        ("fused", "npu2", {"num_heads": 3}, "num_heads = 3 is no multiple of 2, the heads of a launch"),
        ("fused", "npu2", {"lkp": 32}, "travel in the same buffers, got 64 queries by 32 keys"),
        ("fused", "npu2", {"num_cascade_stages": 1}, "a cascade has at least two stages, got num_cascade_stages = 1"),
        ("fused", "npu2", {"dk": 96}, "dk = 96 is no multiple of 64"),
        ("fused", "npu2", {"causal": True, "window": 100}, "window = 100 is no multiple of 64"),
        ("fused", "npu2", {"window": 128}, "belong to a causal mask"),
    ],
)  # fmt: skip
def test_each_mapping_says_what_it_cannot_do(name: str, device: str, given: dict[str, int], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Parameters(**given).of_mapping(name, device)  # type: ignore[arg-type]
