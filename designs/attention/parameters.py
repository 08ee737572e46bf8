"""What attention is asked for, and in which pieces a mapping works on it; checked, with a sentence for each rule.

Every mapping works on ``lqp`` queries of a head at once, split over ``num_q_tiles`` compute tiles (``bq`` queries each), and on
``lkp`` keys at a time. Fields left None are the mapping's own choice for the device (:data:`TILES`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field, dataclass, fields, replace
from operator import index
from typing import Any, Literal

Name = Literal["layerwise", "dato", "iron", "fused"]
NAMES: tuple[Name, ...] = ("layerwise", "dato", "iron", "fused")

_FUSED = {"lqp": 256, "lkp": 64, "num_q_tiles": 4, "num_cascade_stages": 4}
TILES: Mapping[Name, Mapping[str, Mapping[str, int]]] = {
    "layerwise": {
        "npu1": {"lqp": 256, "lkp": 64, "num_q_tiles": 4},
        "npu2": {"lqp": 256, "lkp": 64, "num_q_tiles": 4},
    },
    "dato": {
        "npu1": {"lqp": 128, "lkp": 32, "num_q_tiles": 4, "kv_sharing": 4},
        "npu2": {"lqp": 256, "lkp": 32, "num_q_tiles": 8, "kv_sharing": 4},
    },
    "iron": {
        "npu1": {"lqp": 256, "lkp": 64, "num_q_tiles": 4},
        "npu2": {"lqp": 512, "lkp": 64, "num_q_tiles": 8},
    },
    "fused": {"npu1": {**_FUSED, "num_heads_per_unroll": 1}, "npu2": {**_FUSED, "num_heads_per_unroll": 2}},
}
"""Sizes of the pieces. DATO and fused as published (cornell-zhang/allo flash_attn.py, mlir-air attn_npu1.py, attn_npu2.py), IRON
on npu2, too (amd/IRON operators/mha); the others are ours."""


LARGEST = 2**32
"""Bytes of a host array: what a 32-bit offset reaches."""


@dataclass(frozen=True)
class Parameters:
    """Attention of ``num_heads`` heads, ``lq`` queries and ``lk`` keys each, ``dk`` and ``dv`` wide; ``num_kv_heads`` heads of keys
    and values, each for as many heads of queries; ``causal`` masks the keys after the query.

    Defaults: GPT-2 Small's heads, as many keys as queries. ``window`` (keys that a query looks back to) and ``causal_skip`` are for
    the fused mapping, ``kv_sharing`` (pipelines that share a stream of K and V) for DATO.
    """

    lq: int = 1024
    lk: int | None = None
    dk: int = 64
    dv: int | None = None
    num_heads: int = 12
    num_kv_heads: int | None = None
    causal: bool = False
    window: int | None = None
    causal_skip: bool = False
    lqp: int | None = None
    lkp: int | None = None
    num_q_tiles: int | None = None
    num_cascade_stages: int | None = None
    num_heads_per_unroll: int | None = None
    kv_sharing: int | None = None

    def __post_init__(self) -> None:
        for f in fields(self):
            object.__setattr__(self, f.name, _checked(f, getattr(self, f.name)))
        for name, default in (("lk", self.lq), ("dv", self.dk), ("num_kv_heads", self.num_heads)):
            if getattr(self, name) is None:
                object.__setattr__(self, name, default)
        if self.num_heads % self.kv_heads:
            raise ValueError(f"num_heads = {self.num_heads} is no multiple of num_kv_heads = {self.kv_heads}")
        if self.causal and self.keys != self.lq:
            raise ValueError(f"causal attention needs as many keys as queries, got lq = {self.lq} and lk = {self.lk}")

    # -- the fields that are never None, for the type checker

    @property
    def keys(self) -> int:
        """lk."""
        return self.lk or self.lq

    @property
    def width(self) -> int:
        """dv."""
        return self.dv or self.dk

    @property
    def kv_heads(self) -> int:
        """num_kv_heads."""
        return self.num_kv_heads or self.num_heads

    def tile(self, name: str) -> int:
        """A size of the pieces; ValueError before :meth:`of_mapping` has chosen it."""
        value: int | None = getattr(self, name)
        if value is None:
            raise ValueError(f"{name} is not chosen yet: take what of_mapping() gives")
        return value

    @property
    def bq(self) -> int:
        """Queries of a compute tile."""
        return self.tile("lqp") // self.tile("num_q_tiles")

    @property
    def scale(self) -> float:
        """What scores are multiplied with before two is raised to their power: log2(e) / sqrt(dk)."""
        return math.log2(math.e) / math.sqrt(self.dk)

    @property
    def flops(self) -> int:
        """2 H Lq Lk (dk + dv): the full count, whether masked or not, as published figures count; without softmax."""
        return 2 * self.num_heads * self.lq * self.keys * (self.dk + self.width)

    def of_mapping(self, name: Name, device: str) -> Parameters:
        """With the mapping's own sizes where none are given, and checked against its rules.

        Raises:
            ValueError: with a sentence, for what the mapping cannot do.
        """
        if name not in TILES:
            raise ValueError(f"there is no mapping {name!r}; there are {', '.join(NAMES)}")
        if device not in TILES[name]:
            raise ValueError(f"attention_{name} is made for {' and '.join(TILES[name])}, not for {device}")
        own = TILES[name][device]
        foreign = [f for f in OF_A_MAPPING if f not in own and getattr(self, f) is not None]
        if foreign:
            raise ValueError(f"attention_{name} has no {foreign[0]}")
        chosen: dict[str, Any] = {name: size for name, size in own.items() if getattr(self, name) is None}
        full = replace(self, **chosen)
        columns = own["num_q_tiles"]
        if name in ("dato", "iron") and full.tile("num_q_tiles") > columns:
            raise ValueError(f"attention_{name}: {device} has {columns} columns, one for each pipeline, not {full.num_q_tiles}")
        for sentence in (*_arrays(full), *RULES[name](full)):
            raise ValueError(f"attention_{name}: {sentence}")
        return full

    def padded(self) -> Parameters:
        """With queries and keys padded to whole groups of ``lqp``, as the IRON mapping wants them (its published padding)."""
        whole = self.tile("lqp")
        return replace(self, lq=-(-self.lq // whole) * whole, lk=-(-self.keys // whole) * whole)

    def __str__(self) -> str:
        lengths = f"{self.lq:,} tokens" if self.keys == self.lq else f"{self.lq:,} queries, {self.keys:,} keys"
        heads = ("1 head" if self.num_heads == 1 else f"{self.num_heads} heads") + (f" ({self.kv_heads} of K and V)" if self.kv_heads != self.num_heads else "")
        back = f", looking back {self.window:,}" if self.window else ""
        width = f"{self.dk}" if self.width == self.dk else f"{self.dk} and {self.width}"
        return f"{lengths}, {heads}, d = {width}" + (", causal" if self.causal else "") + back


def _checked(of: Field[Any], value: Any) -> Any:
    """The value of a field: a whole number of at least 1, a switch, or None where a mapping chooses."""
    if isinstance(of.default, bool):
        if not isinstance(value, bool):
            raise ValueError(f"{of.name} = {value!r}: it is True or False")
        return value
    if value is None and of.default is None:
        return None
    try:
        number = index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):
        raise ValueError(f"{of.name} = {value!r}: it must be a whole number")
    if number < 1:
        raise ValueError(f"{of.name} = {number}: it must be at least 1")
    return number


OF_A_MAPPING = ("num_cascade_stages", "num_heads_per_unroll", "kv_sharing")
"""Fields that only the mappings have that have sizes for them."""


# ---- rules: what is not so, in a sentence


def _multiple(p: Parameters, name: str, value: int, step: int, of: str) -> Iterator[str]:
    if value % step:
        yield f"{name} = {value} is no multiple of {step}, {of}"


def _arrays(p: Parameters) -> Iterator[str]:
    for name, heads, length, width in (
        ("q", p.num_heads, p.lq, p.dk),
        ("k", p.kv_heads, p.keys, p.dk),
        ("v", p.kv_heads, p.keys, p.width),
        ("o", p.num_heads, p.lq, p.width),
    ):
        if (size := 2 * heads * length * width) > LARGEST:
            yield f"{name} is of {size:,} bytes, and an offset into a host array reaches {LARGEST:,}"


def _split(p: Parameters) -> Iterator[str]:
    yield from _multiple(p, "lqp", p.tile("lqp"), p.tile("num_q_tiles"), "the tiles that share these queries")
    yield from _multiple(p, "lqp / num_q_tiles", p.bq, 32, "the vector length of the kernels")


def _square(p: Parameters) -> Iterator[str]:
    """The kernels of the IRON mappings know one width."""
    if p.width != p.dk:
        yield f"keys and values are of one width, got dk = {p.dk} and dv = {p.width}"
    yield from _multiple(p, "dk", p.dk, 16, "the step of the matrix kernels")
    if p.dk > 64:
        yield f"dk = {p.dk}: tiles wider than 64 do not fit into a compute tile's memory twice"


def _plain(p: Parameters) -> Iterator[str]:
    if p.window is not None:
        yield "it has no sliding window"
    if p.causal_skip:
        yield "causal_skip is the fused mapping's"


def _layerwise(p: Parameters) -> Iterator[str]:
    yield from _plain(p)
    if (p.tile("lqp"), p.tile("lkp"), p.tile("num_q_tiles")) != (256, 64, 4):
        yield "its pieces are 256 queries on 4 tiles by 64 keys"
    yield from _square(p)
    yield from _multiple(p, "lq", p.lq, 256, "the queries that a column works on at a time")
    yield from _multiple(p, "lk", p.keys, 64, "the keys of a block")
    if p.keys > 4096:
        yield from _multiple(p, "lk", p.keys, 128, "the pieces that long rows are softmaxed in")
        yield from _multiple(p, "lq * num_heads", p.lq * p.num_heads, 1024, "the rows that all tiles softmax at a time")


def _dato(p: Parameters) -> Iterator[str]:
    yield from _plain(p)
    if p.causal:
        yield "it has no causal mask, as DATO's library design has none"
    yield from _split(p)
    yield from _square(p)
    if p.tile("num_q_tiles") not in (4, 8):
        yield f"it has 4 or 8 pipelines, not {p.num_q_tiles}"
    if p.tile("kv_sharing") not in (2, 4):
        yield (
            f"2 or 4 pipelines share a stream of K and V, not {p.kv_sharing}: one stream each takes more shim channels than "
            "there are, and a MemTile has no more than six to split Q over"
        )
    yield from _multiple(p, "lq", p.lq, p.tile("lqp"), "the queries of all pipelines")
    yield from _multiple(p, "lk", p.keys, p.tile("lkp"), "the keys of a block")
    yield from _multiple(p, "lkp", p.tile("lkp"), 32, "the vector length of the kernels")


def _iron(p: Parameters) -> Iterator[str]:
    yield from _plain(p)
    yield from _split(p)
    yield from _square(p)
    if p.tile("num_q_tiles") not in (4, 8):
        yield f"it has 4 or 8 pipelines, not {p.num_q_tiles}"
    yield from _multiple(p, "lqp", p.tile("lqp"), p.tile("lkp"), "the keys of a block, since both lengths are padded to it")
    yield from _multiple(p, "lkp", p.tile("lkp"), 32, "the vector length of the kernels")
    if p.causal and p.bq != p.tile("lkp"):
        yield f"a causal mask needs square blocks, got {p.bq} queries by {p.lkp} keys"


def _fused(p: Parameters) -> Iterator[str]:
    stages, heads = p.tile("num_cascade_stages"), p.tile("num_heads_per_unroll")
    yield from _split(p)
    if p.bq != p.tile("lkp"):
        yield f"queries of a tile and keys of a block travel in the same buffers, got {p.bq} queries by {p.lkp} keys"
    if 2 * p.bq * p.dk > 65536:
        yield f"dk = {p.dk}: a tile holds {p.bq} queries in their full width, {2 * p.bq * p.dk:,} bytes, and has 65,536 in all"
    if stages < 2:
        yield f"a cascade has at least two stages, got num_cascade_stages = {stages}"
    yield from _multiple(p, "lq", p.lq, p.tile("lqp"), "the queries of a launch")
    yield from _multiple(p, "lk", p.keys, p.tile("lkp") * stages, "a block of keys for every stage of the cascade")
    yield from _multiple(p, "num_heads", p.num_heads, heads, "the heads of a launch")
    yield from _multiple(p, "dk", p.dk, 64, "the width of K that a tile holds")
    yield from _multiple(p, "dv", p.width, 64, "the width of V that a tile holds")
    if (p.window is not None or p.causal_skip) and not p.causal:
        yield "a window and skipped blocks belong to a causal mask"
    yield from _multiple(p, "window", p.window or 0, p.tile("lkp"), "the keys of a block")


RULES: Mapping[Name, Callable[[Parameters], Iterator[str]]] = {
    "layerwise": _layerwise,
    "dato": _dato,
    "iron": _iron,
    "fused": _fused,
}
