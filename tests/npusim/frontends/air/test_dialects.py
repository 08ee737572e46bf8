"""The dialects' operations: what they take, what they give, what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

from npusim.errors import DesignError, UnsupportedError
from npusim.frontends.air import attributes, types
from npusim.frontends.air.dialect_memref import CastOp, CollapseShapeOp, ExpandShapeOp, SubViewOp, subview
from npusim.frontends.finder import simulated
from tests.npusim.air.designs import (
    AffineExpr,
    AffineMap,
    AffineSymbolExpr,
    AllocOp,
    ChannelGet,
    ChannelPut,
    DeallocOp,
    IndexType,
    InsertionPoint,
    T,
    affine,
    arith,
    counts,
    for_,
    herd,
    load,
    memory,
    one_launch,
    run,
    scf,
    segment,
    store,
    yield_,
)


def one_core(compute, n=16, out=None, element=None):
    """A module that brings n elements into a core, lets it compute and takes ``out`` back: compute(x, y)."""
    out = out or n

    def around(a, b):
        ChannelPut("in", a)
        ChannelGet("out", b)

        @segment(name="s")
        def _():
            @herd(name="h", sizes=[1, 1])
            def _(tx, ty, sx, sy):
                x, y = AllocOp(memory(n, 2, element), [], []), AllocOp(memory(out, 2, element), [], [])
                ChannelGet("in", x)
                compute(x, y)
                ChannelPut("out", y)
                DeallocOp(x)
                DeallocOp(y)

    return one_launch([memory(n, 0, element), memory(out, 0, element)], around, {"in": {}, "out": {}})


def result(compute, n=16, out=None):
    given, taken = counts(n, 3), np.zeros(out or n, np.int32)
    run(one_core(compute, n, out), [given, taken])
    return given, taken


def number(n):
    return arith.ConstantOp(T.i32(), n)


def each(n, body):
    for i in for_(n):
        body(i)
        yield_([])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("AddIOp", lambda x: x + 5),
        ("SubIOp", lambda x: x - 5),
        ("MulIOp", lambda x: x * 5),
        ("DivSIOp", lambda x: x // 5),
        ("RemSIOp", lambda x: x % 5),
        ("MaxSIOp", lambda x: np.maximum(x, 5)),
        ("MinSIOp", lambda x: np.minimum(x, 5)),
        ("AndIOp", lambda x: x & 5),
        ("XOrIOp", lambda x: x ^ 5),
        ("ShLIOp", lambda x: x << 5),
    ],
)
def test_integer_arithmetic(name, expected):
    operation = getattr(arith, name)
    given, taken = result(lambda x, y: each(16, lambda i: store(operation(load(x, [i]), number(5)), y, [i])))
    np.testing.assert_array_equal(taken, expected(given))


def test_an_operation_stands_for_its_result_and_has_one():
    def compute(x, y):
        s = arith.AddIOp(load(x, [0]), number(1))
        assert str(s.type) == "i32"
        store(s.result, y, [0])
        store(arith.addi(s, s), y, [1])

    given, taken = result(compute)
    assert list(taken[:2]) == [given[0] + 1, 2 * given[0] + 2]


def test_two_types_do_not_mix():
    with pytest.raises(DesignError, match="two operands of one type, got i32 and index"):
        one_core(lambda x, y: arith.addi(number(1), arith.ConstantOp(IndexType.get(), 1)))


def test_a_python_number_is_no_value():
    with pytest.raises(DesignError, match=r"needs values, got the number 1"):
        one_core(lambda x, y: arith.AddIOp(number(1), 1))


def test_branches():
    def compute(x, y):
        def one(i):
            even = arith.CmpIOp(arith.CmpIPredicate.eq, arith.RemSIOp(load(x, [i]), number(2)), number(0))
            branch = scf.IfOp(even, has_else=True)
            with InsertionPoint(branch.then_block):
                store(number(1), y, [i])
                scf.YieldOp([])
            with InsertionPoint(branch.else_block):
                store(number(-1), y, [i])
                scf.YieldOp([])

        each(16, one)

    given, taken = result(compute)
    np.testing.assert_array_equal(taken, np.where(given % 2 == 0, 1, -1))


def test_a_loop_carries_values():
    def compute(x, y):
        loop = for_(0, 16, 1, [number(0)])
        for i, total, after in loop:
            yield_([arith.addi(total, load(x, [i]))])
            results = after
        store(results, y, [0])

    given, taken = result(compute)
    assert taken[0] == given.sum()


def test_a_loop_without_yield_is_refused():
    def compute(x, y):
        for i in for_(16):
            store(number(1), y, [i])

    with pytest.raises(DesignError, match=r"does not end with yield_\(\[\]\)"):
        one_core(compute)


def test_forall_runs_every_turn():
    def compute(x, y):
        loop = scf.ForallOp([0, 0], [4, 4], [1, 2])
        with InsertionPoint(loop.body):
            i, j = loop.induction_variables
            at = affine.apply(
                AffineMap.get(0, 2, [AffineExpr.get_add(AffineSymbolExpr.get(0) * 4, AffineSymbolExpr.get(1))]), [i, j]
            )
            store(load(x, [at]), y, [at])
            scf.InParallelOp()

    given, taken = result(compute)
    np.testing.assert_array_equal(taken, np.where(np.arange(16) % 2 == 0, given, 0))


def test_views():
    def compute(x, y):
        square = ExpandShapeOp(memory([4, 4], 2), x, [[0, 1]], [], [4, 4])
        part = subview(square, [1, 1], [2, 2], [1, 1])
        assert str(part.type).startswith("memref<2x2xi32, strided<[4, 1], offset: 5>")
        store(load(part, [arith.ConstantOp(IndexType.get(), 1)] * 2), y, [0])
        flat = CollapseShapeOp(memory(16, 2), square, [[0, 1]])
        store(load(flat, [7]), y, [1])
        store(load(CastOp(memory(16, 2), flat), [8]), y, [2])

    given, taken = result(compute)
    assert list(taken[:3]) == [given[10], given[7], given[8]]


def test_a_view_must_stay_inside():
    with pytest.raises(DesignError, match="leaves dimension 0"):
        one_core(lambda x, y: subview(x, [10], [8], [1]))
    with pytest.raises(UnsupportedError, match="SubViewOp"):
        SubViewOp()


def test_an_index_outside_names_the_line():
    with pytest.raises(DesignError, match=r"test_dialects\.py:\d+: index 16"):
        result(lambda x, y: each(17, lambda i: store(number(1), y, [i])))


def test_types_print_as_mlir_does():
    assert str(memory([4, 8], 2)) == "memref<4x8xi32, 2 : i32>"
    assert str(types.VectorType.get([16], T.bf16())) == "vector<16xbf16>"
    assert types.VectorType.get([16], T.bf16()).shape == [16]
    layout = types.StridedLayoutAttr.get(types.ShapedType.get_dynamic_stride_or_offset(), [8, 1])
    moving = types.MemRefType.get([4, 8], T.i32(), layout=layout)
    assert str(moving) == "memref<4x8xi32, strided<[8, 1], offset: ?>>"
    assert T.memref(4, 8, T.f32()).shape == [4, 8]
    with pytest.raises(DesignError, match="memory space 3"):
        types.MemRefType.get([4], T.i32(), memory_space=attributes.IntegerAttr.get(T.i32(), 3))


def test_attributes_are_what_they_hold():
    assert attributes.plain(attributes.StringAttr.get("x")) == "x"
    assert attributes.plain(attributes.ArrayAttr.get([attributes.IntegerAttr.get(T.i32(), 3)])) == (3,)


@pytest.mark.parametrize("name", ["air.dialects.linalg", "air.passmanager", "air.dialects.air.ExecuteOp"])
def test_what_is_not_served_says_so(name):
    module, _, attribute = name.rpartition(".")
    with simulated("air"), pytest.raises(UnsupportedError, match=name):
        made = __import__(module, fromlist=[attribute])
        getattr(made, attribute)
