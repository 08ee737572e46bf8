"""Static checks: balance of channels, cascades, buffers, with the names and places that a learner needs."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from npusim.errors import CapacityError, DesignError, UnsupportedError
from npusim.place import place
from tests.npusim.air.designs import (
    AllocOp,
    Channel,
    ChannelGet,
    ChannelPut,
    FuncOp,
    T,
    channel,
    counts,
    for_,
    herd,
    launch,
    load,
    memory,
    module_builder,
    one_launch,
    placed,
    run,
    segment,
    store,
    where,
    yield_,
)


def echo(put=16, get=16, puts=1, gets=1, channels=None, core=None):
    """The host puts ``puts`` times ``put`` elements, the core gets ``gets`` times ``get`` and sends its last tile back."""

    def around(a, b):
        for i in range(puts):
            ChannelPut("in", a, offsets=[i * put], sizes=[put], strides=[1])
        ChannelGet("out", b)

        @segment(name="s")
        def _():
            @herd(name="h", sizes=[1, 1])
            def _(tx, ty, sx, sy):
                x = AllocOp(memory(16, 2), [], [])
                for _ in range(gets):
                    ChannelGet("in", x, offsets=[0], sizes=[get], strides=[1])
                (core or (lambda y: ChannelPut("out", y)))(x)

    return one_launch([memory(64), memory(16)], around, channels or {"in": {}, "out": {}})


def refusal(module, device="npu2", error=DesignError):
    with pytest.raises(error) as caught:
        placed(module, device)
    return str(caught.value)


def test_a_balanced_design_has_no_warning():
    assert placed(echo()).warnings == []


def test_more_put_than_got_is_a_warning_with_both_counts():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (warning,) = placed(echo(put=16, get=8)).warnings
    assert "puts 16 elements" in warning
    assert "gets 8" in warning
    assert warning.count("test_checks.py") == 2


def test_a_get_that_can_never_be_met_is_an_error():
    text = refusal(echo(gets=2))
    assert "puts 16 elements" in text
    assert "gets 32" in text
    assert "can never be met" in text


def test_a_put_that_nobody_takes_is_an_error():
    text = refusal(echo(puts=2))
    assert "1 of 2 puts" in text
    assert "never taken" in text


@pytest.mark.parametrize(("side", "missing"), [("put", "get"), ("get", "put")])
def test_one_side_alone_is_an_error(side, missing):
    def around(a):
        if side == "put":
            ChannelPut("c", a)
        else:
            ChannelGet("c", a)

    text = refusal(one_launch([memory(16)], around, {"c": {}}))
    assert f"channel 'c' has a {side}" in text
    assert f"no {missing}" in text


def test_an_index_that_no_put_reaches_is_an_error():
    def around(a, b):
        ChannelPut("in", a, indices=[0])
        ChannelGet("out", b)

        @segment(name="s")
        def _():
            @herd(name="h", sizes=[1, 1])
            def _(tx, ty, sx, sy):
                x = AllocOp(memory(16, 2), [], [])
                ChannelGet("in", x, indices=[1])
                ChannelPut("out", x)

    text = refusal(one_launch([memory(16), memory(16)], around, {"in": {"size": [2]}, "out": {}}))
    assert "'in'[1]" in text


def test_a_destination_that_nobody_gets_from_is_an_error():
    def around(a, b):
        ChannelPut("in", a)
        ChannelGet("out", b)

        @segment(name="s")
        def _():
            @herd(name="h", sizes=[1, 1])
            def _(tx, ty, sx, sy):
                x = AllocOp(memory(16, 2), [], [])
                ChannelGet("in", x, indices=[tx, ty])
                ChannelPut("out", x)

    channels = {"in": {"size": [1, 1], "broadcast_shape": [2, 1]}, "out": {}}
    assert "nobody gets from index [1, 0]" in refusal(one_launch([memory(16), memory(16)], around, channels))


def test_two_that_put_on_one_index_are_an_error():
    def around(a, b):
        ChannelPut("in", a)
        ChannelGet("out", b)

        @segment(name="s")
        def _():
            @herd(name="h", sizes=[2, 1])
            def _(tx, ty, sx, sy):
                x = AllocOp(memory(16, 2), [], [])
                where(tx, 0, lambda: ChannelGet("in", x))
                ChannelPut("out", x)

    text = refusal(one_launch([memory(16), memory(16)], around, {"in": {}, "out": {}}))
    assert "h[0,0]" in text
    assert "h[1,0]" in text
    assert "drop one of the two streams" in text


def test_an_unused_channel_is_a_warning():
    with pytest.warns(UserWarning, match="channel 'spare' .* is never used"):
        placed(echo(channels={"in": {}, "out": {}, "spare": {}}))


def test_a_core_that_gets_what_it_puts_is_a_warning():
    def core(x):
        ChannelPut("self", x)
        y = AllocOp(memory(16, 2), [], [])
        ChannelGet("self", y)
        ChannelPut("out", y)

    module = echo(core=core, channels={"in": {}, "out": {}, "self": {}})
    taken = np.zeros(16, np.int32)
    with pytest.warns(UserWarning, match="what it puts itself"):
        run(module, [counts(64), taken])
    np.testing.assert_array_equal(taken, counts(16))


def test_element_types_of_the_two_sides_must_agree():
    @module_builder
    def made():
        Channel("c")

        @FuncOp.from_py_func(memory(16), memory(16, 0, T.f32()))
        def main(a, b):
            @launch(operands=[a, b], sizes=[])
            def _(p, q):
                ChannelPut("c", p)
                ChannelGet("c", q)

    with pytest.raises(DesignError):
        placed(made())


# -- cascades


def cascade(source, dest, columns=2, rows=2):
    def around(a, b):
        ChannelPut("in", a)
        ChannelGet("out", b)

        @segment(name="s")
        def _():
            @herd(name="h", sizes=[columns, rows])
            def _(tx, ty, sx, sy):
                x = AllocOp(memory(16, 2), [], [])

                def at(place, body):
                    where(tx, place[0], lambda: where(ty, place[1], body))

                at(source, lambda: (ChannelGet("in", x), ChannelPut("c", x)))
                at(dest, lambda: (ChannelGet("c", x), ChannelPut("out", x)))

    @module_builder
    def made():
        Channel("in")
        Channel("out")
        channel("c", size=[], channel_type="npu_cascade")

        @FuncOp.from_py_func(memory(16), memory(16))
        def main(a, b):
            @launch(operands=[a, b], sizes=[])
            def _(p, q):
                around(p, q)

    return made()


@pytest.mark.parametrize(("source", "dest"), [((0, 1), (0, 0)), ((0, 0), (1, 0))])
def test_cascades_run_south_and_east(source, dest):
    taken = np.zeros(16, np.int32)
    run(cascade(source, dest), [counts(16), taken])
    np.testing.assert_array_equal(taken, counts(16))


@pytest.mark.parametrize(
    ("source", "dest", "word"), [((0, 0), (0, 1), "north"), ((1, 0), (0, 0), "west"), ((0, 1), (1, 0), "no neighbours")]
)
def test_the_other_ways_are_errors(source, dest, word):
    text = refusal(cascade(source, dest))
    assert word in text
    assert "cascade" in text
    assert "put at test_checks.py" in text


# -- memory and placement


def test_l1_is_64_kilobytes():
    def around(a, b):
        ChannelPut("in", a)
        ChannelGet("out", b)

        @segment(name="s")
        def _():
            @herd(name="h", sizes=[1, 1])
            def _(tx, ty, sx, sy):
                x = AllocOp(memory(17_000, 2), [], [])
                ChannelGet("in", x)
                ChannelPut("out", x)

    text = refusal(one_launch([memory(17_000)] * 2, around, {"in": {}, "out": {}}), error=CapacityError)
    assert "65536" in text


def test_a_memtile_is_512_kilobytes():
    def around(a, b):
        ChannelPut("in", a)
        ChannelGet("out", b)

        @segment(name="s")
        def _():
            staged = AllocOp(memory(140_000, 1), [], [])
            ChannelGet("in", staged)
            ChannelPut("out", staged)

    text = refusal(one_launch([memory(140_000)] * 2, around, {"in": {}, "out": {}}), error=CapacityError)
    assert "524288" in text


@pytest.mark.parametrize(("device", "columns", "fits"), [("npu1", 4, True), ("npu1", 5, False), ("npu2", 8, True)])
def test_a_herd_must_fit_the_array(device, columns, fits):
    def around(a, b):
        @segment(name="s", operands=[a, b])
        def _(p, q):
            @herd(name="h", sizes=[columns, 1])
            def _(tx, ty, sx, sy):
                x = AllocOp(memory(16, 2), [], [])
                zero = tx
                store(load(x, [zero]), x, [zero])

    module = one_launch([memory(16)] * 2, around)
    if fits:
        assert len(placed(module, device).cores) == columns
    else:
        assert f"{columns} x 1" in refusal(module, device, CapacityError)


def test_shim_channels_are_two_a_column():
    def around(a, b):
        for i in range(9):
            ChannelPut("in", a, indices=[i])
        ChannelGet("out", b)

        @segment(name="s")
        def _():
            staged = [AllocOp(memory(16, 1), [], []) for _ in range(9)]
            for i in range(9):
                ChannelGet("in", staged[i], indices=[i])
            ChannelPut("out", staged[0])

    module = one_launch([memory(16)] * 2, around, {"in": {"size": [9]}, "out": {}})
    text = refusal(module, "npu1", CapacityError)
    assert "9 shim MM2S channels" in text
    assert "8 (2 in each of 4 columns)" in text


def test_an_l1_buffer_of_the_segment_belongs_to_one_herd():
    def around(a, b):
        ChannelPut("in", a)
        ChannelGet("out", b)

        @segment(name="s")
        def _():
            kept = AllocOp(memory(16, 2), [], [])

            @herd(name="one", sizes=[1, 1], operands=[kept])
            def _(tx, ty, sx, sy, x):
                ChannelGet("in", x)

            @herd(name="two", sizes=[1, 1], operands=[kept])
            def _(tx, ty, sx, sy, x):
                ChannelPut("out", x)

    text = refusal(one_launch([memory(16)] * 2, around, {"in": {}, "out": {}}), error=UnsupportedError)
    assert "one, two" in text


def test_only_herds_compute():
    def around(a, b):
        ChannelPut("in", a)
        ChannelGet("out", b)

        @segment(name="s")
        def _():
            kept = AllocOp(memory(16, 2), [], [])
            load(kept, [0])

            @herd(name="h", sizes=[1, 1], operands=[kept])
            def _(tx, ty, sx, sy, x):
                ChannelGet("in", x)
                ChannelPut("out", x)

    with pytest.raises(UnsupportedError, match=r"memref.load at test_checks.py:\d+ outside of a herd"):
        placed(one_launch([memory(16)] * 2, around, {"in": {}, "out": {}}))


def test_a_segment_may_have_no_herd():
    def around(a, b):
        ChannelPut("in", a)
        ChannelGet("out", b)

        @segment(name="s")
        def _():
            staged = AllocOp(memory(16, 1), [], [])
            for _ in for_(1):
                ChannelGet("in", staged)
                ChannelPut("out", staged, offsets=[0, 0], sizes=[4, 4], strides=[1, 4])
                yield_([])

    taken = np.zeros(16, np.int32)
    run(one_launch([memory(16)] * 2, around, {"in": {}, "out": {}}), [counts(16), taken])
    np.testing.assert_array_equal(taken, counts(16).reshape(4, 4).T.reshape(-1))


def test_herds_of_one_name_share_their_cores():
    def around(a, b):
        ChannelPut("in", a)
        ChannelGet("out", b)

        @segment(name="s")
        def _():
            kept = AllocOp(memory(16, 2), [], [])

            @herd(name="h", sizes=[1, 1], operands=[kept])
            def _(tx, ty, sx, sy, x):
                ChannelGet("in", x)

            @herd(name="h", sizes=[1, 1], operands=[kept])
            def _(tx, ty, sx, sy, x):
                ChannelPut("out", x)

    module = one_launch([memory(16)] * 2, around, {"in": {}, "out": {}})
    assert len(place(module.design_for("npu2")).cores) == 1
    taken = np.zeros(16, np.int32)
    run(module, [counts(16), taken])
    np.testing.assert_array_equal(taken, counts(16))
