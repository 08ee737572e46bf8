"""Operators of run-time values: what the real package was seen to emit, and what it refuses (semantics/probes.txt)."""

from __future__ import annotations

import operator as op
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

from npusim.errors import DesignError
from tests.npusim.frontends.tracer import array, body, names, resolve

INTEGER = {
    op.add: "addi",
    op.sub: "subi",
    op.mul: "muli",
    op.truediv: "divsi",
    op.floordiv: "floordivsi",
    op.mod: "remsi",
    op.and_: "andi",
    op.or_: "ori",
}
FLOAT = {op.add: "addf", op.sub: "subf", op.mul: "mulf", op.truediv: "divf", op.mod: "remf"}
SIGNED = {op.eq: 0, op.ne: 1, op.lt: 2, op.le: 3, op.gt: 4, op.ge: 5}
ORDERED = {op.eq: 1, op.gt: 2, op.ge: 3, op.lt: 4, op.le: 5, op.ne: 6}
ABSENT = [op.pow, op.lshift, op.rshift, op.xor, op.matmul]


def apply(f: Any, dtype: Any, *numbers: Any) -> list[str]:
    """What ``f(x[0], x[1])`` (or ``f`` of x[0] and numbers) emits beside loads."""

    def core(a: Any, b: Any) -> None:
        u = a.acquire(1)
        f(u[0], *(numbers or (u[1],)))

    return [n.removeprefix("arith.") for n in names(core, taken=array(16, dtype)) if n != "memref.load"]


@pytest.mark.parametrize("dtype", [np.int32, np.int16, np.int8])
@pytest.mark.parametrize(("f", "name"), INTEGER.items())
def test_integers(f: Any, name: str, dtype: Any) -> None:
    assert apply(f, dtype) == [name]
    assert apply(f, dtype, 3) == ["constant", name]
    assert apply(lambda x, k: f(k, x), dtype, 3) == ["constant", name]


@pytest.mark.parametrize("dtype", [np.float32, bfloat16])
@pytest.mark.parametrize(("f", "name"), FLOAT.items())
def test_floats(f: Any, name: str, dtype: Any) -> None:
    assert apply(f, dtype) == [name]
    assert apply(f, dtype, 1.5) == ["constant", name]
    assert apply(f, dtype, 1) == ["constant", name]
    assert apply(lambda x, k: f(k, x), dtype, 1.5) == ["constant", name]


@pytest.mark.parametrize("number", [False, True])
@pytest.mark.parametrize(("dtype", "predicates", "name"), [(np.int16, SIGNED, "cmpi"), (bfloat16, ORDERED, "cmpf")])
def test_comparisons(dtype: Any, predicates: dict[Any, int], name: str, number: bool) -> None:
    for f, predicate in predicates.items():
        found: list[Any] = []

        def core(a: Any, b: Any, f: Any = f, found: list[Any] = found) -> None:
            u = a.acquire(1)
            found.append(f(u[0], 3 if number else u[1]))

        emitted = body(core, taken=array(16, dtype))[-1]
        assert (emitted.name, emitted.attrs) == (f"arith.{name}", {"predicate": predicate})
        assert found[0].type == "i1"


def test_number_first_turns_the_comparison_round() -> None:
    emitted = body(lambda a, b: a.acquire(1)[0] < 3)[-1]
    assert emitted.attrs == {"predicate": SIGNED[op.lt]}


@pytest.mark.parametrize("dtype", [np.int32, np.float32, bfloat16, np.uint8])
@pytest.mark.parametrize("f", ABSENT)
def test_operators_that_iron_has_not(f: Any, dtype: Any) -> None:
    with pytest.raises(TypeError, match="unsupported operator"):
        apply(f, dtype)
    with pytest.raises(TypeError, match="unsupported operator"):
        apply(lambda x, k: f(k, x), dtype, 2)
    for unary in (op.neg, op.invert, abs):
        with pytest.raises(TypeError, match="unsupported operator"):
            apply(lambda x, y, unary=unary: unary(x), dtype)


@pytest.mark.parametrize("f", [op.floordiv, op.and_, op.or_])
@pytest.mark.parametrize("dtype", [np.float32, bfloat16])
def test_no_integer_operators_on_floats(f: Any, dtype: Any) -> None:
    with pytest.raises(DesignError, match="does not exist for"):
        apply(f, dtype)


@pytest.mark.parametrize("f", [*INTEGER, *SIGNED])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
def test_unsigned_arithmetic_is_refused(f: Any, dtype: Any) -> None:
    for numbers in ((), (3,)):
        with pytest.raises(DesignError, match="unsigned"):
            apply(f, dtype, *numbers)


def test_mixed_types() -> None:
    def mixed(a: Any, b: Any) -> None:
        a.acquire(1)[0] + b.acquire(1)[0]

    with pytest.raises(DesignError, match=r"i32 \+ f32"):
        resolve(mixed, given=array(16, np.float32))
    with pytest.raises(DesignError, match=r"i32 \+ i16"):
        resolve(mixed, given=array(16, np.int16))
    with pytest.raises(DesignError, match=r"1.5 does not fit the integer type i32"):
        apply(op.add, np.int32, 1.5)
    with pytest.raises(TypeError, match=r"\+: a run-time i32 and str"):
        apply(op.add, np.int32, "1")
    with pytest.raises(DesignError, match="numpy scalar"):
        apply(op.add, np.int32, np.int32(1))
    with pytest.raises(DesignError, match="numpy scalar"):
        apply(lambda x, k: k + x, np.int32, np.int32(1))


def test_index_is_cast_to_the_other_type() -> None:
    from npusim.frontends.iron.controlflow import range_

    kinds: list[str] = []

    def core(a: Any, b: Any) -> None:
        for i in range_(4):
            u = a.acquire(1)[0]
            kinds.extend(str(v.type) for v in (i, i + u, u + i, i * 2 + 1))

    emitted = [o for o in body(core) if o.name.startswith("arith.") and o.name != "arith.constant"]
    assert [o.name for o in emitted] == [
        "arith.index_cast",
        "arith.addi",
        "arith.index_cast",
        "arith.addi",
        "arith.muli",
        "arith.addi",
    ]
    assert kinds == ["index", "index", "i32", "index"]


@pytest.mark.parametrize(
    ("dtype", "number", "stored"),
    [
        (np.int8, 300, 44),
        (np.int8, 200, -56),
        (np.int32, 2**31, -(2**31)),
        (np.int16, True, 1),
        (np.float32, 1, 1.0),
        (bfloat16, 1.1, 1.1015625),
        (np.float32, 0.1, float(np.float32(0.1))),
    ],
)
def test_constants_take_the_element_type(dtype: Any, number: Any, stored: Any) -> None:
    def core(a: Any, b: Any) -> None:
        b.acquire(1)[0] = number

    constant = [o for o in body(core, given=array(16, dtype)) if o.name == "arith.constant"][-1]
    assert constant.attrs["value"] == stored
    assert type(constant.attrs["value"]) is type(stored)


def test_what_is_stored_must_have_the_element_type() -> None:
    with pytest.raises(DesignError, match=r"1.5 does not fit the integer type i32"):
        resolve(lambda a, b: b.acquire(1).__setitem__(0, 1.5))
    with pytest.raises(DesignError, match="run-time i32 cannot be stored into memref<16xi16>"):
        resolve(lambda a, b: b.acquire(1).__setitem__(0, a.acquire(1)[0]), given=array(16, np.int16))
    with pytest.raises(DesignError, match="needs one scalar element"):
        resolve(lambda a, b: b.acquire(1).__setitem__(0, a.acquire(1)))
    with pytest.raises(DesignError, match="needs one scalar element, got NoneType"):
        resolve(lambda a, b: b.acquire(1).__setitem__(0, None))


def test_equality_with_what_is_no_number() -> None:
    answers: list[Any] = []

    def core(a: Any, b: Any) -> None:
        x = a.acquire(1)[0]
        answers.extend([x == None, x != None, x == "x", x == x, x != x])  # noqa: E711

    resolve(core)
    assert answers == [False, True, False, True, False]


def test_constants_are_numbers_while_tracing() -> None:
    def seq(a: Any, b: Any, px: Any, cy: Any, n: Any) -> None:
        for _ in range(int(n)):
            px.fill(a)
        assert float(n) == 3.0
        cy.drain(b, wait=True)

    made = resolve(lambda a, b: None, seq=seq, more=[3]).sequence
    assert made is not None
    assert sum(o.name == "aiex.dma_start_task" for o in made.body.entry.ops) == 4


def test_run_time_values_are_none() -> None:
    for use in (int, float):
        with pytest.raises(DesignError, match="known only on the core"):
            resolve(lambda a, b, use=use: use(a.acquire(1)[0]))
    with pytest.raises(TypeError, match="range_"):
        resolve(lambda a, b: range(a.acquire(1)[0]))
    with pytest.raises(TypeError, match="index memrefs, not lists"):
        resolve(lambda a, b: [1, 2][a.acquire(1)[0]])
    with pytest.raises(TypeError, match="cannot be iterated"):
        resolve(lambda a, b: list(a.acquire(1)[0]))


@pytest.mark.parametrize(
    "decide",
    [
        lambda x: 1 if x > 3 else 2,
        lambda x: x and 1,
        lambda x: x or 1,
        lambda x: not x,
        lambda x: max(x, 3),
        lambda x: 1 < x < 3,
        lambda x: x in [1, 2],
    ],
)
def test_python_decisions_are_refused(decide: Any) -> None:
    with pytest.raises(DesignError, match="if_"):
        resolve(lambda a, b: decide(a.acquire(1)[0]))
