"""Operations by name (arith, memref) and the helpers of ``aie.helpers.util``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

from npusim.errors import DesignError
from npusim.frontends.iron import util
from npusim.frontends.iron.buffer import Buffer
from npusim.frontends.iron.controlflow import range_
from npusim.frontends.iron.device import Tile
from npusim.frontends.iron.dialects_arith import NAMES as arith
from npusim.frontends.iron.dialects_memref import load, store
from npusim.frontends.iron.endpoint import RuntimeEndpoint
from npusim.ir import Op
from npusim.types import MemRefType
from tests.npusim.frontends.tracer import array, body, resolve


def last(f: Any, dtype: Any = np.int32, other: Any = None) -> Op:
    """The operation that ``f(x[0], y[0])`` ends with."""
    given = array(16, dtype if other is None else other)
    return body(lambda a, b: f(a.acquire(1)[0], b.acquire(1)[0]), taken=array(16, dtype), given=given)[-1]


@pytest.mark.parametrize("name", ["xori", "shli", "shrsi", "shrui", "maxsi", "minui", "ceildivsi", "divui"])
def test_integer_operations(name: str) -> None:
    op = last(arith[name])
    assert (op.name, [str(v.type) for v in op.operands], op.result.type) == (f"arith.{name}", ["i32", "i32"], "i32")
    assert last(lambda x, y: arith[name](x, 3)).name == f"arith.{name}"
    with pytest.raises(DesignError, match="does not exist for a run-time f32"):
        last(arith[name], np.float32)


@pytest.mark.parametrize("name", ["maximumf", "minnumf", "remf"])
def test_float_operations(name: str) -> None:
    assert last(arith[name], bfloat16).result.type == "bf16"
    with pytest.raises(DesignError, match="does not exist for a run-time i32"):
        last(arith[name])


@pytest.mark.parametrize(
    ("name", "to", "dtype"),
    [
        ("extsi", "i64", np.int32),
        ("extui", "i32", np.int8),
        ("trunci", "i8", np.int32),
        ("sitofp", "f32", np.int32),
        ("uitofp", "bf16", np.int8),
        ("fptosi", "i32", np.float32),
        ("fptoui", "i16", bfloat16),
        ("extf", "f32", bfloat16),
        ("truncf", "bf16", np.float32),
    ],
)
def test_conversions(name: str, to: str, dtype: Any) -> None:
    op = last(lambda x, y: arith[name](to, x), dtype)
    assert (op.name, op.result.type) == (f"arith.{name}", to)


@pytest.mark.parametrize(
    ("name", "to", "dtype"),
    [
        ("extsi", "i16", np.int32),
        ("trunci", "i32", np.int32),
        ("sitofp", "f32", np.float32),
        ("sitofp", "i64", np.int32),
        ("extf", "bf16", np.float32),
        ("truncf", "f32", bfloat16),
        ("extsi", "index", np.int32),
    ],
)
def test_conversions_that_cannot_be(name: str, to: str, dtype: Any) -> None:
    with pytest.raises(DesignError, match=f"arith.{name} cannot convert"):
        last(lambda x, y: arith[name](to, x), dtype)


def test_index_casts() -> None:
    assert last(lambda x, y: arith["index_cast"](x)).result.type == "index"
    assert last(lambda x, y: arith["index_cast"]("index", x)).result.type == "index"

    def back(a: Any, b: Any) -> None:
        for i in range_(4):
            arith["index_cast"](i, to="i16")

    assert body(back)[-1].result.type == "i16"
    for wrong in (lambda x, y: arith["index_cast"](x, "i64"), lambda x, y: arith["index_cast"]("index", 3)):
        with pytest.raises(DesignError):
            last(wrong)


def test_comparisons_by_name() -> None:
    assert last(lambda x, y: arith["cmpi"]("ult", x, y)).attrs == {"predicate": 6}
    assert last(lambda x, y: arith["cmpi"](2, x, 7)).attrs == {"predicate": 2}
    assert last(lambda x, y: arith["cmpf"]("une", x, y), np.float32).attrs == {"predicate": 13}
    for wrong in (lambda x, y: arith["cmpi"]("lt", x, y), lambda x, y: arith["cmpf"]("olt", x, y)):
        with pytest.raises(DesignError):
            last(wrong)


def test_select_and_negf() -> None:
    op = last(lambda x, y: arith["select"](x > y, x, 0))
    assert (op.name, op.operands[0].type, op.result.type) == ("arith.select", "i1", "i32")
    assert last(lambda x, y: arith["negf"](x), np.float32).name == "arith.negf"
    for wrong in (lambda x, y: arith["select"](x, x, y), lambda x, y: arith["negf"](x)):
        with pytest.raises(DesignError):
            last(wrong)


def test_operands_must_be_there() -> None:
    for wrong in (
        lambda x, y: arith["addi"](1, 2),
        lambda x, y: arith["extsi"]("i64", 3),
        lambda x, y: arith["constant"](None),
        lambda x, y: arith["constant"]("text", "i32"),
    ):
        with pytest.raises(TypeError):
            last(wrong)
    with pytest.raises(DesignError, match="unsigned ui32"):
        last(lambda x, y: arith["constant"](2**31))


def test_memref_by_name() -> None:
    table = Buffer(array((2, 4)), name="t")

    def core(a: Any, b: Any, t: Any) -> None:
        store(load(t, [1, 2]), b.acquire(1), [0])
        store(3, t, [0, 0])

    names = [o.name for o in body(core, extra=[table]) if o.name.startswith("memref.")]
    assert names == ["memref.load", "memref.store", "memref.store"]
    with pytest.raises(TypeError, match="needs a memref"):
        resolve(lambda a, b: load(3, [0]))


def test_types_and_small_tools() -> None:
    kind = array((4, 8), bfloat16)
    assert util.np_ndarray_type_get_shape(kind) == (4, 8)
    assert util.np_ndarray_type_get_dtype(kind) is bfloat16
    assert util.np_ndarray_type_to_memref_type(kind) == MemRefType((4, 8), "bf16")
    assert [util.try_convert_np_type_to_mlir_type(t) for t in (kind, np.int8, "x")] == [
        MemRefType((4, 8), "bf16"),
        "i8",
        "x",
    ]
    assert (util.single_elem_or_list_to_list(1), util.single_elem_or_list_to_list([1])) == ([1], [1])
    assert list(util.flatten_fn_args([1, [2, (3, [4])]])) == [1, 2, 3, 4]
    with pytest.raises(DesignError, match="tuple of ints"):
        util.np_ndarray_type_get_shape(np.ndarray[4, np.dtype[np.int8]])  # type: ignore[misc,type-var]
    with pytest.raises(DesignError, match="at most 4 bytes"):
        util.pack_pad_value(1, 8)


def test_runtime_endpoints_are_equal_by_place() -> None:
    assert RuntimeEndpoint() == RuntimeEndpoint(None)
    assert RuntimeEndpoint(Tile(1, 0)) == RuntimeEndpoint(Tile(1, 0)) != RuntimeEndpoint(Tile(2, 0))
    assert str(RuntimeEndpoint(Tile(1, 0))) == "RuntimeEndpoint(Tile<ShimNOCTile>(1, 0))"
    assert RuntimeEndpoint() != 3
