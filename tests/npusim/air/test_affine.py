"""Affine expressions, maps and sets: folded, printed, read back and evaluated."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npusim.air.affine import (
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
    AffineSymbolExpr,
    IntegerSet,
    parse_map,
    parse_set,
)

DIMS = SYMBOLS = 2


def expressions(depth: int = 3):
    leaves = st.one_of(
        st.integers(-9, 9).map(AffineConstantExpr.get),
        st.integers(0, DIMS - 1).map(AffineDimExpr.get),
        st.integers(0, SYMBOLS - 1).map(AffineSymbolExpr.get),
    )
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.tuples(inner, inner).map(lambda ab: AffineExpr.get_add(*ab)),
            st.tuples(inner, st.integers(-4, 4)).map(lambda ab: AffineExpr.get_mul(*ab)),
            st.tuples(inner, st.integers(1, 7)).map(lambda ab: AffineExpr.get_mod(*ab)),
            st.tuples(inner, st.integers(1, 7)).map(lambda ab: AffineExpr.get_floor_div(*ab)),
            st.tuples(inner, st.integers(1, 7)).map(lambda ab: AffineExpr.get_ceil_div(*ab)),
        ),
        max_leaves=8,
    )


numbers = st.lists(st.integers(-20, 20), min_size=2, max_size=2)


@settings(max_examples=200, deadline=None)
@given(expressions(), numbers, numbers)
def test_text_and_python_mean_the_same(expr, dims, symbols):
    value = expr.at(dims, symbols)
    read = parse_map(str(AffineMap.get(DIMS, SYMBOLS, [expr])))
    assert read.results[0].at(dims, symbols) == value
    names = {f"d{i}": n for i, n in enumerate(dims)} | {f"s{i}": n for i, n in enumerate(symbols)}
    assert eval(expr.python(["d0", "d1"], ["s0", "s1"]), names) == value


def test_printed_as_mlir_does():
    s = [AffineSymbolExpr.get(i) for i in range(2)]
    assert str(AffineMap.get(0, 2, [s[0] * 64 + s[1] * 32])) == "affine_map<()[s0, s1] -> (s0 * 64 + s1 * 32)>"
    assert str(AffineMap.get(0, 1, [s[0] - 3])) == "affine_map<()[s0] -> (s0 - 3)>"
    assert str(AffineMap.get(2, 0, [AffineDimExpr.get(1)])) == "affine_map<(d0, d1) -> (d1)>"
    assert str(IntegerSet.get(0, 1, [s[0] - 1, s[0]], [True, False])) == "affine_set<()[s0] : (s0 - 1 == 0, s0 >= 0)>"


def test_sets_read_back():
    text = "affine_set<(d0)[s0] : (d0 + s0 * 2 - 1 == 0, d0 >= 0)>"
    assert str(parse_set(text)) == text


@pytest.mark.parametrize(
    ("text", "value"), [("7 mod 3", 1), ("(-7) floordiv 2", -4), ("(-7) ceildiv 2", -3), ("2 * 3 + 1", 7)]
)
def test_constants_fold(text, value):
    assert parse_map(f"affine_map<() -> ({text})>").results[0].at([], []) == value
