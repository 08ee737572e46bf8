"""What each party of a design runs, and the transfers that its script foretells."""

from __future__ import annotations

from collections import deque

import pytest

from npusim.air.project import Wanted, project
from npusim.air.script import script
from npusim.errors import UnsupportedError
from npusim.ir import walk
from tests.npusim.air.designs import (
    AffineExpr,
    AffineMap,
    AffineSymbolExpr,
    AllocOp,
    ChannelGet,
    ChannelPut,
    InsertionPoint,
    affine,
    arith,
    for_,
    herd,
    memory,
    one_launch,
    scf,
    segment,
    where,
    yield_,
)


def design(sizes=(2,)):
    """Launches over halves of an array; a segment of two instances with a herd of two cores each, of which one gets."""

    def around(i, si, a):
        at = affine.apply(AffineMap.get(0, 1, [AffineSymbolExpr.get(0) * 64]), [i])
        for k in for_(2):
            inner = arith.addi(at, arith.muli(k, arith.ConstantOp(k.type, 32)))
            ChannelPut("in", a, indices=[k], offsets=[inner], sizes=[32], strides=[1])
            yield_([])

        @segment(name="s", sizes=[2, 1])
        def _(x, y, sx, sy):
            staged = AllocOp(memory(32, 1), [], [])
            ChannelGet("in", staged, indices=[x])
            ChannelPut("down", staged, offsets=[0, 0], sizes=[4, 8], strides=[1, 4])

            @herd(name="h", sizes=[1, 2])
            def _(tx, ty, hx, hy):
                tile = AllocOp(memory(32, 2), [], [])
                where(ty, 1, lambda: ChannelGet("down", tile))

    return (
        one_launch([memory(128)], around, {"in": {"size": [2]}, "down": {}}, sizes=sizes)
        .design_for("npu2")
        .air.function
    )


def events(projection, *launches):
    """(side, channel indices, offset, dims) of each transfer; None between launches that are over."""
    run = script(projection)(deque(launches))
    found = []
    for event in run:
        if event is None:
            return found
        move = projection.moves[event[0]].attrs["move"]
        indices, walk_of = move.filled(event[1:])
        found.append((move.side, indices, walk_of.offset, walk_of.dims))
    raise AssertionError("a script never ends")


def test_the_host_moves_what_is_in_ddr():
    found = project(design(), Wanted(0))
    assert found.launch == (2,)
    assert events(found, (0,), (1,)) == [
        ("put", (0,), 0, ((32, 1),)),
        ("put", (1,), 32, ((32, 1),)),
        ("put", (0,), 64, ((32, 1),)),
        ("put", (1,), 96, ((32, 1),)),
    ]
    assert list(found.instances) == [(0, (0, 0)), (0, (1, 0))]
    assert [(v.name, v.sizes) for v in found.visits] == [("h", (1, 2))] * 2


@pytest.mark.parametrize("instance", [0, 1])
def test_a_segment_instance_moves_what_is_on_its_memtiles(instance):
    found = project(design(), Wanted(1, 0, (instance, 0)))
    assert events(found, (0,)) == [("get", (instance,), 0, ((32, 1),)), ("put", (), 0, ((4, 1), (8, 4)))]


@pytest.mark.parametrize(("core", "gets"), [((0, 0), 0), ((0, 1), 1)])
def test_a_core_has_only_its_own_branches(core, gets):
    found = project(design(), Wanted(2, 0, (0, 0), "h", core, computes=True))
    assert len(found.moves) == gets
    assert not any(op.name.startswith(("affine.", "air.herd")) for op in walk(found.region))


def test_a_script_waits_for_launches():
    run = script(project(design(), Wanted(0)))
    queue = deque()
    transfers = run(queue)
    assert next(transfers) is None
    queue.append((1,))
    assert next(transfers) is not None
    assert next(transfers) is not None
    assert next(transfers) is None


def test_a_branch_on_memory_that_moves_data_for_others_is_refused():
    def around(a):
        ChannelPut("in", a)

        @segment(name="s")
        def _():
            staged = AllocOp(memory(16, 1), [], [])
            kept = AllocOp(memory(16, 2), [], [])
            from tests.npusim.air.designs import T, load

            flag = arith.CmpIOp(arith.CmpIPredicate.eq, load(kept, [0]), arith.ConstantOp(T.i32(), 0))
            branch = scf.IfOp(flag)
            with InsertionPoint(branch.then_block):
                ChannelGet("in", staged)
                scf.YieldOp([])

    function = one_launch([memory(16)], around, {"in": {}}).design_for("npu2").air.function
    with pytest.raises(UnsupportedError, match="depends on the contents of memory and moves data"):
        project(function, Wanted(1, 0, ()))


def test_symbols_and_dimensions_fold():
    expr = AffineExpr.get_add(AffineSymbolExpr.get(0) * 2, 3)
    assert expr.at([], [4]) == 11
