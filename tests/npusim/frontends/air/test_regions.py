"""Launches, segments and herds: their arguments, what may be used in them, what is refused."""

from __future__ import annotations

import pytest

from npusim.errors import CapacityError, DesignError, UnsupportedError
from tests.npusim.air.designs import (
    AllocOp,
    Channel,
    ChannelGet,
    ChannelPut,
    FuncOp,
    arith,
    dma_memcpy_nd,
    herd,
    launch,
    memory,
    module_builder,
    one_launch,
    placed,
    segment,
)


def in_segment(body, arrays=(16, 16)):
    """A module whose launch has a segment with ``body``."""

    def around(*given):
        @segment(name="s", operands=list(given))
        def inner(*passed):
            body(*passed)

    return one_launch([memory(n) for n in arrays], around, {"c": {"size": [2, 2]}})


def test_bodies_get_ids_sizes_and_operands():
    seen = {}

    def body(a, b):
        @herd(name="h", sizes=[2, 3], operands=[a, b])
        def _(*args):
            seen["herd"] = [str(x.type) for x in args]

    in_segment(body)
    assert seen["herd"] == ["index"] * 4 + ["memref<16xi32>"] * 2


def test_a_launch_with_sizes_has_an_id_and_a_size_for_each():
    seen = []
    one_launch([memory(16)], lambda *args: seen.append([str(x.type) for x in args]), sizes=[2, 3])
    assert seen == [["index"] * 4 + ["memref<16xi32>"]]


def test_a_body_with_too_few_arguments_is_refused():
    def body(a, b):
        @herd(name="h", sizes=[1, 1], operands=[a])
        def _(tx, ty):
            pass

    with pytest.raises(DesignError, match=r"body of the herd 'h' must take 5 arguments"):
        in_segment(body)


def test_a_value_from_outside_is_refused():
    def body(a, b):
        @herd(name="h", sizes=[1, 1])
        def _(tx, ty, sx, sy):
            x = AllocOp(memory(16, 2), [], [])
            dma_memcpy_nd(x, a)

    with pytest.raises(DesignError, match=r"(?s)captured from outside.*operands="):
        in_segment(body)


def test_what_becomes_code_belongs_into_a_function():
    with pytest.raises(DesignError, match=r"belongs into a function.*from_py_func"):
        AllocOp(memory(16, 2), [], [])


def test_a_herd_has_two_sizes():
    def body(a, b):
        @herd(name="h", sizes=[2])
        def _(*args):
            pass

    with pytest.raises(DesignError, match="two sizes"):
        in_segment(body)


def test_a_herd_larger_than_the_array_is_refused():
    def body(a, b):
        @herd(name="h", sizes=[2, 5])
        def _(tx, ty, sx, sy):
            x = AllocOp(memory(16, 2), [], [])
            ChannelPut("c", x, indices=[tx, ty])

    with pytest.raises((CapacityError, DesignError), match=r"herd.*rows"):
        placed(in_segment(body))


@pytest.mark.parametrize(("space", "words"), [(0, "segment allocates"), (1, "herd can only allocate L1")])
def test_memory_is_allocated_where_it_belongs(space, words):
    def body(a, b):
        @herd(name="h", sizes=[1, 1])
        def _(tx, ty, sx, sy):
            AllocOp(memory(16, space), [], [])

    if space == 0:

        def body(a, b):
            AllocOp(memory(16, 0), [], [])

    with pytest.raises(DesignError, match=words):
        in_segment(body)


def test_tokens_and_several_devices_are_refused_by_name():
    def body(a, b):
        @herd(name="h", sizes=[1, 1], async_token=1)
        def _(*args):
            pass

    with pytest.raises(UnsupportedError, match="async_token"):
        in_segment(body)


def test_a_second_function_is_refused():
    @module_builder
    def made():
        @FuncOp.from_py_func(memory(16))
        def one(a):
            pass

        @FuncOp.from_py_func(memory(16))
        def two(a):
            pass

    with pytest.raises(UnsupportedError, match=r"second function \('two'\)"):
        made()


def test_an_undeclared_channel_is_refused():
    @module_builder
    def made():
        Channel("known")

        @FuncOp.from_py_func(memory(16))
        def one(a):
            @launch(operands=[a], sizes=[])
            def _(x):
                ChannelPut("unknown", x)
                ChannelGet("known", x)

    with pytest.raises(DesignError, match=r"channel 'unknown'.*declared: 'known'"):
        made()


def test_a_python_if_on_an_id_is_refused():
    def body(a, b):
        @herd(name="h", sizes=[2, 1])
        def _(tx, ty, sx, sy):
            if arith.CmpIOp(arith.CmpIPredicate.eq, tx, sx):
                pass

    with pytest.raises(DesignError, match=r"scf\.IfOp or affine\.AffineIfOp"):
        in_segment(body)
