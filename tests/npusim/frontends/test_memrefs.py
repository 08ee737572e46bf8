"""Elements and views of acquired objects, and buffers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from npusim.errors import DesignError
from npusim.frontends.iron.buffer import Buffer
from npusim.frontends.iron.controlflow import range_
from npusim.frontends.views import DYNAMIC
from npusim.types import MemRefType
from tests.npusim.frontends.tracer import array, body, resolve, sequence


def last(index: Any, shape: tuple[int, ...] = (4, 8)) -> Any:
    """The operation that indexing an object of that shape ends with."""
    return body(lambda a, b: a.acquire(1)[index], taken=array(shape))[-1]


def test_all_indices_load_an_element() -> None:
    ops = body(lambda a, b: a.acquire(1)[1, 2], taken=array((4, 8)))
    assert [o.name for o in ops[-3:]] == ["arith.constant", "arith.constant", "memref.load"]
    assert [o.attrs["value"] for o in ops[-3:-1]] == [1, 2]
    assert ops[-1].operands[1:] == (ops[-3].result, ops[-2].result)


def test_an_integer_value_is_cast_to_an_index() -> None:
    def core(a: Any, b: Any) -> None:
        u = a.acquire(1)
        b.acquire(1)[u[0]] = u[u[1]]

    casts = [o for o in body(core) if o.name == "arith.index_cast"]
    assert [(o.operands[0].type, o.result.type) for o in casts] == [("i32", "index")] * 2
    with pytest.raises(DesignError, match="f32 cannot be an index"):
        resolve(lambda a, b: a.acquire(1)[a.acquire(1)[0]], taken=array(16, np.float32))


@pytest.mark.parametrize(
    ("index", "offsets", "sizes", "steps", "kind"),
    [
        (1, (1, 0), (1, 8), (1, 1), MemRefType((1, 8), "i32", 8, (8, 1))),
        ((0,), (0, 0), (1, 8), (1, 1), MemRefType((1, 8), "i32")),
        (slice(2, 4), (2, 0), (2, 8), (1, 1), MemRefType((2, 8), "i32", 16, (8, 1))),
        ((slice(None), slice(0, 8, 2)), (0, 0), (4, 4), (1, 2), MemRefType((4, 4), "i32", 0, (8, 2))),
        ((1, slice(2, 6)), (1, 2), (1, 4), (1, 1), MemRefType((1, 4), "i32", 10, (8, 1))),
    ],
)
def test_fewer_indices_give_a_view(index: Any, offsets: Any, sizes: Any, steps: Any, kind: MemRefType) -> None:
    view = last(index)
    assert view.name == "memref.subview"
    assert view.attrs == {"static_offsets": offsets, "static_sizes": sizes, "static_strides": steps}
    assert view.result.type == kind


def test_recorded_view_of_a_vector() -> None:
    assert str(last(slice(2, 6), (16,)).result.type) == "memref<4xi32, strided<[1], offset: 2>>"
    assert str(last(1, (4, 4)).result.type) == "memref<1x4xi32, strided<[4, 1], offset: 4>>"


def test_views_at_run_time_and_of_views() -> None:
    kinds: list[str] = []

    def core(a: Any, b: Any) -> None:
        u = a.acquire(1)
        for i in range_(4):
            row = u[i]
            kinds.extend([str(row.type), str(row[:, 2:4].type), row[0, 3].type])

    ops = [o for o in body(core, taken=array((4, 8))) if o.name == "memref.subview"]
    assert ops[0].attrs["static_offsets"] == (DYNAMIC, 0)
    assert len(ops[0].operands) == 2
    strided = "strided<[8, 1], offset: ?>>"
    assert kinds == [f"memref<1x8xi32, {strided}", f"memref<1x2xi32, {strided}", "i32"]


@pytest.mark.parametrize("index", [..., slice(None), (slice(None), slice(None))])
def test_everything_is_the_memref_itself(index: Any) -> None:
    def core(a: Any, b: Any) -> None:
        u = a.acquire(1)
        assert u[index] is u

    resolve(core, taken=array((4, 8)))


@pytest.mark.parametrize(
    ("index", "words"),
    [
        ((4, 0), "index 4 is out of range for dimension 0 of memref<4x8xi32>"),
        ((0, 8), "index 8 is out of range for dimension 1"),
        ((0, -1), "negative indices"),
        ((0, 0, 0), "3 indices for memref<4x8xi32>"),
        (slice(4, 8), "empty or leaves"),
        (slice(0, 9), "empty or leaves"),
        (slice(-2, None), "non-negative"),
    ],
)
def test_indices_are_checked(index: Any, words: str) -> None:
    with pytest.raises(DesignError, match=words):
        last(index)


@pytest.mark.parametrize("index", [1.0, "a", None, np.int64(1), True])
def test_indices_of_a_wrong_type(index: Any) -> None:
    with pytest.raises(TypeError, match="cannot index"):
        last((index, 0))


def test_the_trap_of_two_brackets() -> None:
    with pytest.raises(DesignError, match=r"write x\[i, j\]"):
        resolve(lambda a, b: a.acquire(1)[1][2], taken=array((4, 8)))


def test_stores() -> None:
    def core(a: Any, b: Any) -> None:
        b.acquire(1)[1, 2] = 7

    *before, store = body(core, given=array((4, 8)))
    assert store.name == "memref.store"
    assert [o.attrs["value"] for o in before[-3:]] == [1, 2, 7]  # indices first, as recorded
    with pytest.raises(TypeError, match="slice"):
        resolve(lambda a, b: b.acquire(1).__setitem__(slice(0, 4), 1))
    with pytest.raises(DesignError, match="needs 2 indices, got 1"):
        resolve(lambda a, b: b.acquire(1).__setitem__(0, 1), given=array((4, 8)))
    with pytest.raises(DesignError, match="out of range"):
        resolve(lambda a, b: b.acquire(1).__setitem__(16, 1))


def test_what_an_object_says_of_itself() -> None:
    def core(a: Any, b: Any) -> None:
        u = a.acquire(1)
        assert (u.shape, str(u.dtype), u.rank, u.n_elements) == ((4, 8), "i32", 2, 32)
        assert (a.shape, a.dtype) == ((4, 8), np.int32)
        assert type(u).__name__ == "MemRefValue"
        assert type(u[0, 0]).__name__ == "ScalarValue"
        for refused in (iter, bool):
            with pytest.raises(DesignError):
                refused(u)
        with pytest.raises(TypeError):
            len(u)

    resolve(core, taken=array((4, 8)))


# -- buffers


def test_buffer_in_a_core() -> None:
    table = Buffer(array(4), name="table")

    def core(a: Any, b: Any, t: Any) -> None:
        t[1] = t[0] + 1

    design = resolve(core, extra=[table])
    load, _, _, _, store = [o for o in body_of(design) if o.name.split(".")[0] in ("memref", "arith")][1:]
    assert load.operands[0] is store.operands[1] is design.buffers[0].value
    assert design.buffers[0].tile is design.cores[0].tile
    assert (table.shape, table.dtype) == ((4,), np.int32)


def body_of(design: Any) -> Any:
    loop = design.cores[0].body.entry.ops[3]
    return loop.regions[0].entry.ops


def test_buffer_default_names_and_types() -> None:
    first, second = Buffer(array(4)), Buffer(initial_value=np.ones((2, 3), np.int16))
    n = int(first._name.removeprefix("buf_"))
    assert second._name == f"buf_{n + 1}"
    assert (second.shape, second.dtype) == ((2, 3), np.int16)
    with pytest.raises(DesignError, match="a type, an initial value, or both"):
        Buffer()
    with pytest.raises(TypeError, match="numpy array"):
        Buffer(initial_value=[1, 2])  # type: ignore[arg-type]
    with pytest.raises(DesignError, match="initial value of Buffer 'b'"):
        resolve(lambda a, b, t: None, extra=[Buffer(array(4), np.arange(5, dtype=np.int32), name="b")])
    with pytest.raises(DesignError, match="shape \\(1,\\) and dtype int16"):
        resolve(lambda a, b, t: None, extra=[Buffer(array(4), np.ones(1, np.int16), name="b")])


def test_equal_initial_values_fill_a_buffer() -> None:
    lowest = Buffer(array(4), np.array([-5], np.int32), name="lowest")
    design = resolve(lambda a, b, t: None, extra=[lowest])
    initial = design.buffers[0].initial
    assert initial is not None
    assert (initial.shape, initial.tolist()) == ((4,), [-5] * 4)


def test_buffer_outside_of_its_place() -> None:
    loose = Buffer(array(4), name="loose")
    with pytest.raises(DesignError, match=r"'loose'.*pass it to a Worker"):
        loose[0]
    with pytest.raises(DesignError, match=r"'loose'.*pass it to a Worker"):
        resolve(lambda a, b: loose[0])
    table = Buffer(array(4), name="table")
    with pytest.raises(DesignError, match="does not belong in the host sequence"):
        sequence(lambda a, b, p, c, t: t[0], extra=[table], more=[table])
    for wrong in (slice(0, 2), (0, 0)):
        with pytest.raises(DesignError):
            resolve(lambda a, b, t, wrong=wrong: t[wrong], extra=[Buffer(array(4), name="t")])
    with pytest.raises(DesignError, match="gives elements only"):
        resolve(lambda a, b, t: t[1], extra=[Buffer(array((4, 4)), name="t")])


def test_run_time_parameters() -> None:
    rtp = Buffer(array(4), name="rtp", use_write_rtp=True)

    def seq(a: Any, b: Any, px: Any, cy: Any, n: Any, p: Any) -> None:
        p[2] = 5
        p[0] = n
        cy.drain(b, wait=True)

    design = resolve(lambda a, b, p: p[0], extra=[rtp], seq=seq, more=[np.int32, rtp])
    assert design.sequence is not None
    writes = [o for o in design.sequence.body.entry.ops if o.name == "aiex.npu.rtp_write"]
    assert [o.attrs for o in writes] == [{"buffer": "rtp", "index": 2}, {"buffer": "rtp", "index": 0}]
    assert design.buffers[0].host_written
    assert writes[1].operands == (design.sequence.body.entry.args[2],)


@pytest.mark.parametrize(
    ("write", "kind", "words"),
    [
        (lambda p: p.__setitem__(4, 1), DesignError, "out of range"),
        (lambda p: p.__setitem__((0,), 1), DesignError, "one int index"),
        (lambda p: p.__setitem__(0, 1.5), TypeError, "int or a run-time i32"),
    ],
)
def test_run_time_parameters_are_checked(write: Any, kind: Any, words: str) -> None:
    rtp = Buffer(array(4), name="rtp", use_write_rtp=True)
    with pytest.raises(kind, match=words):
        sequence(lambda a, b, p, c, r: write(r), extra=[rtp], more=[rtp])


@pytest.mark.parametrize("dtype", [np.int16, np.float32])
def test_run_time_parameters_are_words(dtype: Any) -> None:
    rtp = Buffer(array(4, dtype), name="rtp", use_write_rtp=True)
    with pytest.raises(DesignError, match=r"make it of np.int32"):
        sequence(lambda a, b, p, c, r: r.__setitem__(0, 1), extra=[rtp], more=[rtp])


def core_two(a: Any, b: Any, t: Any) -> None:
    """A core function that takes a buffer and leaves it alone."""


def test_who_may_write_which_buffer() -> None:
    with pytest.raises(DesignError, match="use_write_rtp=True"):
        table = Buffer(array(4), name="t")
        resolve(core_two, extra=[table], seq=lambda a, b, p, c, t: t.__setitem__(0, 1), more=[table])
    with pytest.raises(DesignError, match="only the host sequence writes it"):
        rtp = Buffer(array(4), name="t", use_write_rtp=True)
        resolve(lambda a, b, t: t.__setitem__(0, 1), extra=[rtp])
