"""Loops, branches and the rules of traced code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from npusim.errors import DesignError, UnsupportedError
from npusim.frontends.control import else_, for_, if_
from npusim.frontends.control import yield_ as scf_yield
from npusim.frontends.iron.controlflow import range_, yield_
from npusim.frontends.iron.dialects_arith import constant
from npusim.frontends.iron.worker import Worker
from npusim.ir import FOREVER, Op
from tests.npusim.frontends.tracer import array, body, program, resolve


def loops(core: Any, **given: Any) -> list[Op]:
    return [o for o in body(core, **given) if o.name == "scf.for"]


def bounds(loop: Op) -> list[Any]:
    return [v.owner.attrs["value"] for v in loop.operands[:3]]


def test_worker_loops() -> None:
    for while_true, bound in ((True, FOREVER), (False, 1)):
        core = resolve(lambda a, b: None, worker={"while_true": while_true}).cores[0]
        *constants, loop, end = core.body.entry.ops
        assert [o.attrs["value"] for o in constants] == [0, bound, 1]
        assert (loop.name, end.name) == ("scf.for", "aie.end")
        assert [o.name for o in loop.regions[0].entry.ops] == ["scf.yield"]


def test_worker_without_a_function_spins() -> None:
    from npusim.frontends.iron.device import NPU2
    from npusim.frontends.iron.program import Program
    from npusim.frontends.iron.runtime import Runtime

    core = Program(NPU2(), Runtime(lambda: None, []), [Worker(None)]).resolve_program().design.cores[0]
    inner = core.body.entry.ops[3].regions[0].entry.ops[3]
    assert [bounds(o) for o in (core.body.entry.ops[3], inner)] == [[0, FOREVER, 1]] * 2


@pytest.mark.parametrize(
    ("args", "want"), [((5,), [0, 5, 1]), ((2, 9), [2, 9, 1]), ((1, 9, 2), [1, 9, 2]), ((np.int64(4),), [0, 4, 1])]
)
def test_bounds(args: Any, want: Any) -> None:
    def core(a: Any, b: Any) -> None:
        for i in range_(*args):
            assert i.type == "index"

    assert bounds(loops(core)[0]) == want


def test_bounds_at_run_time_are_cast() -> None:
    def core(a: Any, b: Any) -> None:
        for i in range_(a.acquire(1)[0]):
            for _ in range_(i):
                pass

    outer, inner = loops(core)
    assert outer.operands[1].owner.name == "arith.index_cast"
    assert inner.operands[1] is outer.regions[0].entry.args[0]


@pytest.mark.parametrize("wrong", [(3.0,), (0, 3.0), ("a",), (0, 4, 1.5)])
def test_bounds_are_integers(wrong: Any) -> None:
    with pytest.raises(DesignError, match="range_ needs integers"):
        resolve(lambda a, b: [0 for _ in range_(*wrong)])


def test_loops_go_upwards() -> None:
    for step in (-1, 0):
        with pytest.raises(DesignError, match="counts upwards"):
            resolve(lambda a, b, step=step: [0 for _ in range_(10, 0, step)])


def test_iter_args() -> None:
    def core(a: Any, b: Any) -> None:
        u, o = a.acquire(1), b.acquire(1)
        for i, acc, res in range_(16, iter_args=[constant(0)], insert_yield=False):  # noqa: B007
            yield_([acc + u[i]])
        o[0] = res

    ops = body(core)
    loop, store = next(o for o in ops if o.name == "scf.for"), ops[-1]
    assert [v.type for v in loop.results] == ["i32"]
    add, end = loop.regions[0].entry.ops[-2:]
    assert (add.operands[0], end.operands) == (loop.regions[0].entry.args[1], (add.result,))
    assert store.operands[0] is loop.result


def test_several_iter_args() -> None:
    def core(a: Any, b: Any) -> None:
        for _, (p, q), (r, s) in for_(4, iter_args=[constant(0), constant(1.5)], insert_yield=False):  # noqa: B007
            scf_yield([p + 1, q])
        b.acquire(1)[0] = r
        assert s.type == "f32"

    assert [v.type for v in loops(core)[0].results] == ["i32", "f32"]


def test_mistakes_with_iter_args() -> None:
    def no_yield(a: Any, b: Any) -> None:
        for _, _, _ in range_(4, iter_args=[constant(0)], insert_yield=False):
            pass

    def left_in(a: Any, b: Any) -> None:
        for _, acc, _ in range_(4, iter_args=[constant(0)]):
            yield_([acc])

    def wrong_type(a: Any, b: Any) -> None:
        for i, _, _ in range_(4, iter_args=[constant(0)], insert_yield=False):
            yield_([i])

    def too_early(a: Any, b: Any) -> None:
        for _, acc, res in range_(4, iter_args=[constant(0)], insert_yield=False):
            yield_([acc + res])

    def forgotten(a: Any, b: Any) -> None:
        for _, _, _ in range_(4, iter_args=[constant(0)]):
            pass

    for core, words in (
        (no_yield, "does not end with yield_"),
        (left_in, "yields twice"),
        (wrong_type, r"carries 1 value\(s\) \(i32\) but yields \(index\)"),
        (too_early, "only after it"),
        (forgotten, r"but yields \(\)"),
        (lambda a, b: list(range_(4, iter_args=[0])), "constant"),
    ):
        with pytest.raises(DesignError, match=words):
            resolve(core)


def test_branches() -> None:
    def core(a: Any, b: Any) -> None:
        u, o = a.acquire(1), b.acquire(1)
        for i in range_(16):
            with if_(u[i] > 3) as op:
                o[i] = 1
            with else_(op):
                o[i] = 2

    branch = next(o for o in body(core) if o.name == "scf.if")
    then, other = (r.entry.ops for r in branch.regions)
    assert [o.name for o in then] == [o.name for o in other] == ["arith.constant", "memref.store", "scf.yield"]


def test_branches_without_else() -> None:
    def core(a: Any, b: Any, has: bool) -> None:
        with if_(a.acquire(1)[0] == 3, hasElse=has):
            b.acquire(1)[0] = 1

    def branch(has: bool) -> Op:
        return next(o for o in body(core, extra=[has]) if o.name == "scf.if")

    assert [o.name for o in branch(True).regions[1].entry.ops] == ["scf.yield"]
    assert branch(False).regions[1].blocks == []


def test_nested_control_and_loop_inside_branch() -> None:
    def core(a: Any, b: Any) -> None:
        u, o = a.acquire(1), b.acquire(1)
        with if_((u[0] > 1) & (u[1] < 2)) as op:
            for i in range_(4):
                o[i] = u[i]
        with else_(op), if_(u[3] != 0):
            o[0] = 1

    names = [o.name for o in body(core)]
    assert names.count("scf.if") == 2
    assert names.count("scf.for") == 1


@pytest.mark.parametrize(
    ("core", "words"),
    [
        (lambda a, b: if_(True).__enter__(), "decided with a Python if"),
        (lambda a, b: if_(a.acquire(1)[0]).__enter__(), r"needs a condition \(i1\), got a run-time i32"),
        (lambda a, b: else_(None).__enter__(), "else_ needs what"),
    ],
)
def test_mistakes_with_branches(core: Any, words: str) -> None:
    with pytest.raises(DesignError, match=words):
        resolve(core)


def test_else_without_else_and_else_elsewhere() -> None:
    def no_else(a: Any, b: Any) -> None:
        with if_(a.acquire(1)[0] > 1, hasElse=False) as op:
            pass
        with else_(op):
            pass

    def elsewhere(a: Any, b: Any) -> None:
        with if_(a.acquire(1)[0] > 1) as op:
            pass
        for _ in range_(2):
            with else_(op):
                pass

    with pytest.raises(DesignError, match="hasElse=False"):
        resolve(no_else)
    with pytest.raises(DesignError, match="beside its if_"):
        resolve(elsewhere)


def test_what_a_branch_computed_later_is_not_there_in_else() -> None:
    def core(a: Any, b: Any) -> None:
        u, o = a.acquire(1), b.acquire(1)
        with if_(u[0] > 1) as op:
            pass
        later = u[1] + 1
        with else_(op):
            o[0] = later

    with pytest.raises(DesignError, match="does not dominate"):
        resolve(core)


def test_values_stay_in_their_loop() -> None:
    def sum_(a: Any, b: Any) -> None:
        u = a.acquire(1)
        s = u[0]
        for i in range_(1, 16):
            s = s + u[i]
        b.acquire(1)[0] = s

    def variable(a: Any, b: Any) -> None:
        for i in range_(4):  # noqa: B007
            pass
        b.acquire(1)[i] = 1

    def branch(a: Any, b: Any) -> None:
        with if_(a.acquire(1)[0] > 1):
            v = a.acquire(1)[1]
        b.acquire(1)[0] = v

    def acquired(a: Any, b: Any) -> None:
        for _ in range_(4):
            u = a.acquire(1)
        u[0]

    for core in (sum_, variable, branch, acquired):
        with pytest.raises(DesignError, match=r"(?s)does not dominate.*iter_args"):
            resolve(core)


def test_values_stay_in_their_core() -> None:
    stolen: list[Any] = []

    def thief(a: Any, b: Any) -> None:
        if stolen:
            b.acquire(1)[0] = stolen[0]
        stolen.append(a.acquire(1)[0])

    resolve(thief)
    with pytest.raises(DesignError, match="captured from outside"):
        resolve(thief)
    with pytest.raises(DesignError, match="captured from outside"):
        resolve(lambda a, b: None, seq=lambda a, b, p, c: stolen[0] + 1)


def test_arguments_of_the_sequence_stay_there() -> None:
    kept: list[Any] = []

    def seq(a: Any, b: Any, px: Any, cy: Any, n: Any) -> None:
        kept.append(n)

    resolve(lambda a, b: None, seq=seq, more=[np.int32])
    with pytest.raises(DesignError, match="given to another body"):
        resolve(lambda a, b: [0 for _ in range_(kept[0])])


def test_loops_are_not_left_early() -> None:
    def breaks(a: Any, b: Any) -> None:
        for i in range_(4):  # noqa: B007
            if b is not None:
                break
        b.acquire(1)[0] = 1

    def returns(a: Any, b: Any) -> Any:
        for i in range_(4):
            return i

    for core in (breaks, returns):
        with pytest.raises(DesignError, match="left early"):
            resolve(core)


def test_an_exception_in_a_loop_is_what_is_reported() -> None:
    def core(a: Any, b: Any) -> None:
        for _ in range_(4):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        resolve(core)
    assert loops(lambda a, b: [0 for _ in range_(4)])  # and the tracer is usable again


def test_outside_of_any_trace() -> None:
    for use in (lambda: list(range_(4)), lambda: constant(1), lambda: if_(constant(True)).__enter__()):
        with pytest.raises(DesignError, match=r"resolve_program\(\) traces your code"):
            use()


def test_places_are_not_served() -> None:
    with pytest.raises(UnsupportedError, match="loc="):
        resolve(lambda a, b: list(for_(4, loc="here")))
    with pytest.raises(TypeError):
        resolve(lambda a, b: list(range_(4, steps=2)))


def test_python_control_flow_is_unrolled() -> None:
    def core(a: Any, b: Any) -> None:
        for _ in range(3):
            a.acquire(1)
            a.release(1)

    assert [o.name.split(".")[-1] for o in body(core)].count("acquire") == 3


def test_missing_and_surplus_arguments_of_a_core_function() -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'c'"):
        resolve(lambda a, b, c: None)
    with pytest.raises(TypeError, match="takes 1 positional argument but 2 were given"):
        resolve(lambda a: None)
    resolve(lambda a, b: 5)  # what it returns is ignored


def test_locations_are_the_learners_lines() -> None:
    def core(a: Any, b: Any) -> None:
        a.acquire(1)
        for _ in range_(2):
            pass

    first = core.__code__.co_firstlineno
    ops = body(core)
    assert {(o.loc.file, o.loc.line) for o in ops} == {(__file__, first + 1), (__file__, first + 2)}


def test_a_program_is_resolved_once() -> None:
    made = program(lambda a, b: None, taken=array(8), given=array(8))
    made.resolve_program()
    with pytest.raises(DesignError, match="resolved once"):
        made.resolve_program()
