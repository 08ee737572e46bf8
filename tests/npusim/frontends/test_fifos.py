"""ObjectFifos, their handles and links."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from npusim import graph
from npusim.errors import DesignError, DesignWarning, UnsupportedError
from npusim.frontends.iron.device import NPU2, Tile
from npusim.frontends.iron.enums import AIETileType
from npusim.frontends.iron.objectfifo import ObjectFifo
from npusim.frontends.iron.program import Program
from npusim.frontends.iron.runtime import Runtime
from npusim.frontends.iron.util import v8bfp16ebs8
from npusim.frontends.iron.worker import Worker
from npusim.types import MemRefType
from tests.npusim.frontends.tracer import array, body, program, resolve


def fifo(name: str = "f", n: int | tuple[int, ...] = 4, **given: Any) -> ObjectFifo:
    return ObjectFifo(array(n), name=name, **given)


def test_handles() -> None:
    f = fifo()
    assert f.prod() is f.prod()
    assert f.cons() is not f.cons()
    assert len(f._cons) == 2
    with pytest.warns(DesignWarning, match="ignored"):
        assert f.prod(depth=5).depth == 2  # the first call decided
    assert f.prod(depth=2) is f.prod()
    h = ObjectFifo(array(8), name="q").cons()
    assert (h.name, h.depth, h.shape, h.dtype, h.handle_type, h.channel, h.endpoint) == (
        ("q", 2, (8,), np.int32, "cons", None, None)
    )
    assert h.obj_type == array(8)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: fifo().prod().dims_from_stream, "no dims_from_stream"),
        (lambda: ObjectFifo(array(4), depth=None).cons(), "no default depth"),
        (lambda: ObjectFifo(array(4), depth=None).prod(), "no default depth"),
        (lambda: fifo(depth=0), "depth of at least 1, got 0"),
        (lambda: fifo().cons(depth=0), "depth of at least 1, got 0"),
        (lambda: fifo().prod(depth=0), "depth of at least 1, got 0"),
        (lambda: (lambda f: (f.prod(), f.prod(depth=0)))(fifo()), "depth of at least 1, got 0"),
        (lambda: (lambda f: (f.prod(), f.prod(channel=1)))(fifo()), "pinned to channel None, cannot re-pin it to 1"),
        (lambda: (lambda f: (f.prod(), f.prod(tile=Tile(0, 0))))(fifo()), "pinned to shim tile None"),
        (lambda: fifo().set_iter_count(0), r"\[1, 256\]"),
        (lambda: fifo().set_iter_count(257), r"\[1, 256\]"),
        (lambda: fifo().prod().split([0, 2]), "split.. works on a consumer's handle"),
        (lambda: fifo().prod().forward(), "forward.. works on a consumer's handle"),
        (lambda: fifo().cons().join([0, 2]), "join.. works on the producer's handle"),
        (lambda: fifo().cons().split([0, 2], names=["a"]), "names.*1 entries for 2 offsets"),
        (lambda: fifo().prod().join([0, 2], depths=[1, 2, 3]), "depths.*3 entries for 2 offsets"),
    ],
)
def test_refusals_at_once(wrong: Any, words: str) -> None:
    with pytest.raises(DesignError, match=words):
        wrong()


def test_keyword_only() -> None:
    with pytest.raises(TypeError):
        ObjectFifo(array(4), 3)  # type: ignore[misc]
    with pytest.raises(TypeError, match="dept"):
        fifo(dept=3)


def test_depth_none_takes_one_from_the_handle() -> None:
    assert ObjectFifo(array(4), depth=None).prod(2).depth == 2


@pytest.mark.parametrize("given", [{"plio": True}, {"aie_stream": (0, 0)}])
def test_what_is_not_served_is_named(given: Any) -> None:
    with pytest.raises(UnsupportedError, match=next(iter(given))):
        fifo(**given)


def test_names() -> None:
    first = ObjectFifo(array(4)).name
    assert ObjectFifo(array(4)).name == f"of{int(first[2:]) + 1}"
    assert fifo("a").cons().forward().name == "a_fwd"
    assert [s.name for s in fifo("b").cons().split([0, 2])] == ["b_split0", "b_split1"]
    assert [s.name for s in fifo("c").prod().join([0, 2])] == ["c_join0", "c_join1"]
    assert fifo("b").cons().split([0, 2])[0].obj_type == array(4)


@pytest.mark.parametrize(("depths", "written"), [((2, 2), 2), ((4, 3), (4, 3)), ((5, 5), 5)])
def test_depths(depths: tuple[int, int], written: Any) -> None:
    x = fifo("x", 8)
    w = Worker(lambda a: None, [x.cons(depth=depths[1])])
    rt = Runtime(lambda a, p: p.fill(a), [array(8), x.prod(depth=depths[0])])
    assert Program(NPU2(), rt, [w]).resolve_program().design.fifo("x").depth == written


def test_attributes_reach_the_graph() -> None:
    own = Tile(0, 2, tile_type=AIETileType.CoreTile)
    loop = fifo("loop", 16, via_DMA=True, disable_synchronization=True, delegate_tile=own, repeat_count=3, depth=1)
    loop.set_iter_count(4)
    values = [np.arange(16, dtype=np.int32)]
    init = fifo("init", 16, depth=1, init_values=values, consumer_obj_type=array(8))

    def core(a: Any, b: Any, *rest: Any) -> None:
        assert rest[3].acquire(1).shape == (8,)
        assert rest[2].acquire(1).shape == (16,)

    ends = [loop.prod(channel=1), loop.cons(channel=0), init.prod(), init.cons()]
    design = resolve(core, extra=ends, worker={"tile": own})
    f, g = design.fifo("loop"), design.fifo("init")
    assert (f.via_dma, f.disable_synchronization, f.repeat_count, f.iter_count) == (True, True, 3, 4)
    assert (f.producer_channel, f.consumer_channels) == (1, (0,))
    assert f.delegate_tile is f.producer is f.consumers[0] is design.cores[0].tile
    assert g.init_values is not None
    assert np.array_equal(g.init_values[0], values[0])
    assert g.consumer_type == MemRefType((8,), "i32")
    assert f.loc.file == __file__


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"init_values": [np.zeros(16, np.int32)]}, "1 init_values for a producer depth of 2"),
        ({"init_values": [np.zeros(4, np.int32)] * 2}, "init value has shape"),
        ({"init_values": [np.zeros(16, np.int16)] * 2}, "dtype int16"),
        ({"consumer_obj_type": array(5)}, "multiple"),
        ({"repeat_count": 0}, "repeat_count must be at least 1"),
        ({"dims_to_stream": [[16, 1]]}, "list of tuples"),
        ({"dims_to_stream": ((16, 1),)}, "list of tuples"),
        ({"dims_to_stream": np.array([[16, 1]])}, "list of tuples"),
        ({"dims_to_stream": [(0, 1)]}, "size of at least 1"),
        ({"dims_to_stream": [(4, -1)]}, "stride of at least 0"),
        ({"dims_to_stream": [(4, 1.0)]}, "must hold ints"),
        ({"pad_dimensions": [(-1, 0)]}, "must not be negative"),
        ({"dims_from_stream_per_cons": [[4, 1]]}, "list of tuples"),
    ],
)
def test_refusals_on_resolve_name_the_fifo(given: Any, words: str) -> None:
    with pytest.raises(DesignError, match=words) as refused:
        resolve(lambda a, b: None, x=given)
    assert "'x'" in str(refused.value)


@pytest.mark.parametrize(
    ("kind", "error", "words"),
    [
        (np.int32, DesignError, r"objects of ObjectFifo 'x' \(made at .*expected np.ndarray"),
        (array((4, 0)), DesignError, "'x'.*positive"),
        (array(4, v8bfp16ebs8), UnsupportedError, "'x'.*v8bfp16ebs8"),
    ],
)
def test_types_of_objects(kind: Any, error: Any, words: str) -> None:
    x = ObjectFifo(kind, name="x")
    w = Worker(lambda h: None, [x.cons()])
    with pytest.raises(error, match=words):
        Program(NPU2(), Runtime(lambda p: None, [x.prod()]), [w]).resolve_program()


def test_a_triple_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="must be a pair"):
        resolve(lambda a, b: None, x={"dims_to_stream": [(8, 1, 2)]})


@pytest.mark.parametrize(
    ("dims", "kept"),
    [
        ([(4, 4), (4, 1)], ((4, 4), (4, 1))),
        ([(1, 1), (4, 4), (4, 1)], ((1, 1), (4, 4), (4, 1))),
        ([(2, 0), (16, 1)], ((2, 0), (16, 1))),
        ([(np.int64(16), np.int64(1))], ((16, 1),)),
        ([], ()),
    ],
)
def test_layout_transforms(dims: Any, kept: Any) -> None:
    design = resolve(lambda a, b: None, x={"dims_to_stream": dims}, y={"dims_from_stream_per_cons": dims})
    assert design.fifo("x").to_stream == kept
    assert design.fifo("y").from_stream == (kept,)
    assert design.fifo("x").from_stream == ((),)


def test_consumers_have_their_own_transform() -> None:
    x = fifo("x", 16, dims_from_stream_per_cons=[(2, 8), (8, 1)])
    assert [x.cons().dims_from_stream, x.cons(dims_from_stream=[(16, 1)]).dims_from_stream] == [
        [(2, 8), (8, 1)],
        [(16, 1)],
    ]
    with pytest.raises(DesignError, match="belongs to a consumer"):
        type(x.prod())(x, True, 2, [(16, 1)])


# -- acquire and release


def test_acquire() -> None:
    seen: list[Any] = []

    def core(a: Any, b: Any) -> None:
        seen.extend([a.acquire(1), a.acquire(2), a.acquire(np.int64(1))])
        a.release(2)
        b.acquire(1)
        b.release(1)

    ops = [o for o in body(core) if o.name.startswith("aie.")]
    assert [(o.name.split(".")[-1], o.attrs) for o in ops] == [
        ("acquire", {"objFifo_name": "x", "port": 1, "size": 1}),
        ("access", {"index": 0}),
        ("acquire", {"objFifo_name": "x", "port": 1, "size": 2}),
        ("access", {"index": 0}),
        ("access", {"index": 1}),
        ("acquire", {"objFifo_name": "x", "port": 1, "size": 1}),
        ("access", {"index": 0}),
        ("release", {"objFifo_name": "x", "port": 1, "size": 2}),
        ("acquire", {"objFifo_name": "y", "port": 0, "size": 1}),
        ("access", {"index": 0}),
        ("release", {"objFifo_name": "y", "port": 0, "size": 1}),
    ]
    one, two, three = seen
    assert [type(one).__name__, type(two), len(two), type(three).__name__] == ["MemRefValue", list, 2, "MemRefValue"]


@pytest.mark.parametrize("call", ["acquire", "release"])
@pytest.mark.parametrize(
    ("count", "kind", "words"),
    [
        (0, DesignError, "at least one"),
        (-1, DesignError, "at least one"),
        (3, DesignError, r"\(3\) on the cons handle of ObjectFifo 'x' is more than its depth 2"),
        (1.0, TypeError, "needs an int"),
        ("1", TypeError, "needs an int"),
        (True, TypeError, "needs an int"),
    ],
)
def test_counts(call: str, count: Any, kind: Any, words: str) -> None:
    with pytest.raises(kind, match=words):
        resolve(lambda a, b: getattr(a, call)(count))


def test_counts_are_known_while_tracing() -> None:
    with pytest.raises(TypeError, match="known while tracing"):
        resolve(lambda a, b: a.acquire(a.acquire(1)[0]))


def test_handles_belong_to_their_worker() -> None:
    mine, other = fifo("mine"), fifo("other")
    kept = mine.cons()

    def first(x: Any) -> None:
        kept.acquire(1)

    ws = [Worker(first, [other.cons()]), Worker(lambda h: None, [kept])]
    rt = Runtime(lambda a, p, q: None, [array(4), mine.prod(), other.prod()])
    with pytest.raises(
        DesignError, match=r"acquire\(\) on the cons handle of 'mine' in the core function of worker 'first'"
    ):
        Program(NPU2(), rt, ws).resolve_program()


def test_not_in_the_sequence_and_not_outside() -> None:
    with pytest.raises(DesignError, match="does not belong in the host sequence"):
        resolve(lambda a, b: None, seq=lambda a, b, p, c: c.acquire(1))
    with pytest.raises(DesignError, match="works only while"):
        fifo().cons().acquire(1)


# -- ends


def test_both_ends_must_be_used() -> None:
    z = fifo("z")
    with pytest.raises(DesignError, match="nobody consumes from ObjectFifo 'z'"):
        resolve(lambda a, b, c: None, extra=[z.prod()])
    z = fifo("z")
    with pytest.raises(DesignError, match="nobody produces into ObjectFifo 'z'"):
        resolve(lambda a, b, c: None, extra=[z.cons()])
    z = fifo("z")
    z.cons()
    with pytest.raises(DesignError, match=r"each call of cons\(\) makes one more consumer"):
        resolve(lambda a, b, c, d: None, extra=[z.prod(), z.cons()])


def test_a_worker_needs_a_handle() -> None:
    with pytest.raises(DesignError, match=r"pass its prod\(\) to produce, or its cons\(\)"):
        Worker(lambda f: None, [fifo("x")])


@pytest.mark.parametrize("end", ["prod", "cons"])
def test_an_end_has_one_user(end: str) -> None:
    h = getattr(fifo("x"), end)()
    Worker(lambda f: None, [h])
    with pytest.raises(DesignError, match=f"the {end} handle of ObjectFifo 'x' is already used by worker"):
        Worker(lambda f: None, [h])


def test_self_loop() -> None:
    z = fifo("z")
    design = resolve(lambda a, b, p, c: None, extra=[z.prod(), z.cons()])
    assert design.fifo("z").producer is design.fifo("z").consumers[0]


def test_two_fifos_of_one_name() -> None:
    with pytest.raises(
        DesignError, match=r"two ObjectFifos are named 'x' \(made at .*test_fifos.py:\d+ and .*tracer.py"
    ):
        resolve(lambda a, b, c: None, extra=[fifo("x").prod()])


def test_fifos_are_written_in_the_order_of_their_names() -> None:
    z, a = fifo("zz"), fifo("aa")
    w = Worker(lambda i, o: None, [z.cons(), a.prod()])
    rt = Runtime(lambda u, v, p, c: None, [array(4), array(4), z.prod(), a.cons()])
    assert [f.name for f in Program(NPU2(), rt, [w]).resolve_program().design.fifos] == ["aa", "zz"]


# -- links


def linked(make: Any, n: int = 16) -> graph.Design:
    """A design where ``make(x)`` links fifo x (16 elements from the host) to fifos that one worker consumes."""
    x = fifo("x", n)
    parts = make(x)
    w = Worker(lambda *h: None, [p.cons() for p in parts])
    return Program(NPU2(), Runtime(lambda a, p: p.fill(a), [array(n), x.prod()]), [w]).resolve_program().design


def test_split() -> None:
    design = linked(lambda x: x.cons().split([0, 8], obj_types=[array(8)] * 2, depths=[1, 3], repeat_counts=[None, 2]))
    (link,) = design.links
    assert [f.name for f in link.inputs] == ["x"]
    assert [(f.name, f.depth, f.repeat_count) for f in link.outputs] == [("x_split0", 1, None), ("x_split1", 3, 2)]
    assert (link.src_offsets, link.dst_offsets) == ((), (0, 8))
    tiles = {f.producer for f in link.outputs} | set(link.inputs[0].consumers)
    assert [t.kind for t in tiles] == ["mem"]


def test_forward_on_another_tile() -> None:
    core = Tile(1, 2, tile_type=AIETileType.CoreTile)
    design = linked(lambda x: [x.cons().forward(tile=core, name="g", depth=3, obj_type=array((4, 4)))])
    link = design.links[0]
    assert (link.dst_offsets, link.src_offsets) == ((0,), ())
    out = link.outputs[0]
    assert (out.name, out.depth, out.type.shape) == ("g", 3, (4, 4))
    assert (out.producer.kind, out.producer.col, out.producer.row) == ("core", 1, 2)


def test_padding() -> None:
    design = linked(lambda x: [x.cons().forward(obj_type=array(20), pad_dimensions=[(1, 3)], pad_value=7)])
    assert (design.fifo("x_fwd").pad, design.fifo("x_fwd").pad_value) == (((1, 3),), 7)


def test_join() -> None:
    y = fifo("y", 16)
    parts = y.prod().join([0, 8], obj_types=[array(8)] * 2, dims_from_stream=[[(8, 1)], [(2, 4), (4, 1)]])
    ws = [Worker(lambda h: None, [p.prod()]) for p in parts]
    rt = Runtime(lambda b, c: c.drain(b, wait=True), [array(16), y.cons()])
    design = Program(NPU2(), rt, ws).resolve_program().design
    (link,) = design.links
    assert ([f.name for f in link.inputs], link.src_offsets, link.dst_offsets) == (["y_join0", "y_join1"], (0, 8), ())
    assert [f.from_stream for f in link.inputs] == [(((8, 1),),), (((2, 4), (4, 1)),)]
    assert len({id(f.consumers[0]) for f in link.inputs}) == 1


def test_one_link_for_a_fifo() -> None:
    with pytest.raises(DesignError, match=r"'x_fwd'.*takes part in two links"):
        linked(lambda x: [x.cons().forward().cons().forward(name="again")])
    with pytest.raises(DesignError, match=r"'x'.*takes part in two links"):
        linked(lambda x: [x.cons().forward(name="one"), x.cons().forward(name="two")])


def test_transforms_of_a_join_stay_in_their_part() -> None:
    y = ObjectFifo(array(16), name="y", dims_to_stream=[(2, 8), (8, 1)])
    ws = [Worker(lambda h: None, [p.prod()]) for p in y.prod().join([0, 8], obj_types=[array(8)] * 2)]
    with pytest.raises(DesignError, match=r"reaches element 15, but .* part 'y_join0' has 8"):
        Program(NPU2(), Runtime(lambda b, c: None, [array(16), y.cons()]), ws).resolve_program()


def test_str_is_the_recorded_one() -> None:
    text = "ObjectFifo(numpy.ndarray[(4,), numpy.dtype[numpy.int32]], depth=2, name='f', prod=None, cons=[])"
    assert str(fifo()) == text


def test_used_in_two_programs() -> None:
    shared = program(lambda a, b: None)
    shared.resolve_program()
    again = Program(NPU2(), Runtime(lambda: None, []), shared._workers)
    with pytest.raises(DesignError, match="belongs to a program that was resolved already"):
        again.resolve_program()
