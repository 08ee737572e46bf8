"""The served part of ``air.api``: herds over grids, transfers, elementwise arithmetic, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from ml_dtypes import bfloat16

from npusim.errors import CapacityError, DesignError, UnsupportedError
from npusim.frontends.air.api.index import IndexExpr
from npusim.frontends.finder import simulated

with simulated("air"):
    from air import api as air
    from air.api import bf16, i32, ui8

    OPS = air.ops


def kernel(body, *tensors, name="k"):
    """A launch over tensors ((shape, dtype), ...); ``body(herd helpers..., tensors)`` is traced inside of it."""
    declared = [air.tensor(shape, dtype) for shape, dtype in tensors]
    with air.launch(name=name) as made:

        @made.body
        def _():
            body(*declared)

    return made


def elementwise(expression, n=64, dtype=i32, tile=16, **how):
    """out = expression(a) over tiles of one axis."""

    def body(a, out):
        with air.herd(range(0, n, tile), name="h", **how) as h:

            @h.body
            def _(tx):
                x = air.alloc([tile], dtype, scope=h.private())
                y = air.alloc([tile], dtype, scope=h.private())
                OPS.load(x, a[tx * tile : tx * tile + tile])
                y[:] = expression(x)
                OPS.store(y, out[tx * tile : tx * tile + tile])

    return kernel(body, ([n], dtype), ([n], dtype))


@pytest.mark.parametrize("device", ["npu1", "npu2"])
def test_a_kernel_computes(device):
    a = np.arange(64, dtype=np.int32)
    made = elementwise(lambda x: 2 * x[:] - 3).compile(target=device)
    np.testing.assert_array_equal(made(a), 2 * a - 3)
    made.unload()


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (lambda x: -x[:], lambda a: -a),
        (lambda x: 1 - x[:] * x[:], lambda a: 1 - a * a),
        (lambda x: x[:] / 3, lambda a: np.trunc(a / 3)),
        (lambda x: OPS.relu(x[:]), lambda a: np.maximum(a, 0)),
        (lambda x: OPS.maximum(OPS.minimum(x[:], 5), -5), lambda a: np.clip(a, -5, 5)),
        (lambda x: 7, lambda a: np.full_like(a, 7)),
    ],
)
def test_arithmetic_on_tiles(expression, expected):
    a = np.arange(-32, 32, dtype=np.int32)
    np.testing.assert_array_equal(elementwise(expression).compile()(a), expected(a))


def test_floats_round_after_each_operation():
    a = np.linspace(-2, 2, 64).astype(bfloat16)
    out = elementwise(lambda x: x[:] * 3.0 + 0.1, dtype=bf16).compile()(a)
    np.testing.assert_array_equal(out, a * bfloat16(3.0) + bfloat16(0.1))


def test_a_tile_that_fills_no_vector_is_done_element_by_element():
    a = np.arange(60, dtype=np.int32)
    made = elementwise(lambda x: x[:] + 1, n=60, tile=12)
    assert "vector." not in made.mlir()
    np.testing.assert_array_equal(made.compile()(a), a + 1)


def test_a_grid_larger_than_the_herd_is_done_in_turns():
    text = elementwise(lambda x: x[:] + 1).build("npu1")
    assert str(text).count('"scf.for"') == 1  # 4 tiles on 4 cores: only the loop over vectors
    assert str(elementwise(lambda x: x[:] + 1, n=128).build("npu1")).count('"scf.for"') == 2
    a = np.arange(128, dtype=np.int32)
    np.testing.assert_array_equal(elementwise(lambda x: x[:] + 1, n=128, shape=(2,)).compile("npu1")(a), a + 1)


def test_a_coordinate_is_a_number_in_arithmetic():
    def body(a, out):
        with air.herd([range(2), range(2)], name="h") as h:

            @h.body
            def _(tx, ty):
                x = air.alloc([16], i32, scope=h.private())
                OPS.load(x, a[tx, ty * 16 : ty * 16 + 16])
                x[:] = x[:] + tx * 10 + ty
                OPS.store(x, out[tx, ty * 16 : ty * 16 + 16])

    out = kernel(body, ([2, 32], i32), ([2, 32], i32)).compile()(np.zeros((2, 32), np.int32))
    np.testing.assert_array_equal(out, np.repeat([[0, 1], [10, 11]], 16, axis=1))


def test_a_loop_stays_a_loop():
    def body(a, out):
        with air.herd(range(1), name="h") as h:

            @h.body
            def _(tx):
                x = air.alloc([16], i32, scope=h.private())
                total = air.alloc([16], i32, scope=h.private())
                total[:] = 0
                for k in air.sequential(0, 64, 16):
                    OPS.load(x, a[k : k + 16])
                    total[:] = total[:] + x[:]
                OPS.store(total, out)

    a = np.arange(64, dtype=np.int32)
    np.testing.assert_array_equal(kernel(body, ([64], i32), ([16], i32)).compile()(a), a.reshape(4, 16).sum(0))


def test_tiles_end_after_their_last_use():
    def body(a, out):
        with air.herd(range(1), name="h") as h:

            @h.body
            def _(tx):
                x = air.alloc([16], i32, scope=h.private())
                y = air.alloc([16], i32, scope=h.private())
                OPS.load(x, a)
                y[:] = x[:]
                OPS.store(y, out)

    lines = kernel(body, ([16], i32), ([16], i32)).mlir().splitlines()
    ends = [i for i, line in enumerate(lines) if "memref.dealloc" in line]
    moves = [i for i, line in enumerate(lines) if "dma_memcpy_nd" in line]
    assert moves[0] < ends[0] < moves[1] < ends[1]


def test_symbols_are_their_hint_or_first_choice():
    tile, other = air.symbol(choices=[8, 16], hint=16, name="tile"), air.symbol(choices=[4, 2], name="other")
    made = elementwise(lambda x: x[:], tile=int(tile))
    assert (tile * 2, other + 1, 64 // tile) == (32, 5, 4)
    assert made.search_space == {"tile": 16, "other": 4}
    with pytest.raises(DesignError, match="none of its choices"):
        air.symbol(choices=[1], hint=2)


def test_index_arithmetic_is_linear():
    x, y = IndexExpr.leaf(None, "x"), IndexExpr.leaf(None, "y")
    assert ((x + 4) - x).as_const() == 4
    assert repr(x * 3 - y + 2) == "3*x + -1*y + 2"
    with pytest.raises(DesignError, match="no affine index"):
        _ = x * y
    with pytest.raises(UnsupportedError, match="// of a coordinate"):
        _ = x // 2


def refused(body, *tensors, error=DesignError):
    with pytest.raises(error) as caught:
        kernel(body, *(tensors or (([64], i32), ([64], i32)))).build("npu2")
    return str(caught.value)


def in_herd(body):
    def around(a, out):
        with air.herd(range(0, 64, 16), name="h") as h:

            @h.body
            def _(tx):
                body(h, tx, a, out)

    return around


def test_refusals_name_what_is_wrong():
    def alloc(h, n=16, dtype=i32):
        return air.alloc([n], dtype, scope=h.private())

    assert "65536" in refused(in_herd(lambda h, tx, a, out: alloc(h, 20_000)), error=CapacityError)
    assert "shapes" in refused(in_herd(lambda h, tx, a, out: OPS.load(alloc(h), a)))
    assert "element types" in refused(in_herd(lambda h, tx, a, out: OPS.load(alloc(h, 64, bf16), a)))
    assert "writes no output" in refused(in_herd(lambda h, tx, a, out: OPS.load(alloc(h, 64), a)))
    assert "scope=h.private()" in refused(in_herd(lambda h, tx, a, out: air.alloc([16], i32)))
    assert "no fixed size" in refused(in_herd(lambda h, tx, a, out: OPS.load(alloc(h), a[tx : tx * 2])))
    assert "divide the grid" in refused(lambda a, out: air.herd(range(4), shape=(3,)))
    assert "whole tile" in refused(lambda a, out: air.herd(range(0, 64, 24)))
    assert "begin at 0" in refused(lambda a, out: air.herd(range(4, 8)))


def test_an_output_before_an_input_is_refused():
    def body(out, a):
        with air.herd(range(1)) as h:

            @h.body
            def _(tx):
                x = air.alloc([64], i32, scope=h.private())
                OPS.load(x, a)
                OPS.store(x, out)

    assert "declared behind" in refused(body)


def test_unsigned_tiles_are_moved_and_copied_only():
    a = np.arange(64, dtype=np.uint8)
    np.testing.assert_array_equal(elementwise(lambda x: x[:], dtype=ui8).compile()(a), a)
    with pytest.raises(UnsupportedError, match=r"air\.api\.i8"):
        elementwise(lambda x: x[:] + 1, dtype=ui8).build("npu2")


@pytest.mark.parametrize("name", ["segment", "channel", "extern", "micro_tile", "wait"])
def test_the_rest_is_refused_by_name(name):
    with simulated("air"), pytest.raises(UnsupportedError, match=rf"air\.api\.{name} is not served"):
        from air import api

        getattr(api, name)


def test_a_launch_with_a_grid_is_refused():
    with pytest.raises(UnsupportedError, match="grid="):
        air.launch(grid=range(4))
