"""The reader of the generic form: every recorded module, and texts that are wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from npusim.errors import DesignError
from npusim.ir import Op, Region
from npusim.mlir import parse, print_module
from npusim.types import MemRefType

MLIR = Path(__file__).parents[2] / "data" / "reference" / "mlir"
FILES = sorted(p for p in MLIR.rglob("*.mlir") if ".pretty." not in p.name)


def same(a: Region, b: Region) -> bool:
    """Equality of two regions up to the identity of values and blocks."""
    place = [{}, {}]
    for number, region in enumerate((a, b)):
        for i, block in enumerate(region.blocks):
            place[number][block] = i
    return len(a.blocks) == len(b.blocks) and all(
        [v.type for v in x.args] == [v.type for v in y.args]
        and len(x.ops) == len(y.ops)
        and all(same_op(p, q, *place) for p, q in zip(x.ops, y.ops))
        for x, y in zip(a.blocks, b.blocks)
    )


def same_op(a: Op, b: Op, blocks_a: dict, blocks_b: dict) -> bool:
    return (
        (a.name, a.props, a.attrs, len(a.regions)) == (b.name, b.props, b.attrs, len(b.regions))
        and [v.type for v in (*a.operands, *a.results)] == [v.type for v in (*b.operands, *b.results)]
        and [blocks_a[x] for x, _ in a.successors] == [blocks_b[x] for x, _ in b.successors]
        and all(same(x, y) for x, y in zip(a.regions, b.regions))
    )


def test_the_recorded_modules_are_there() -> None:
    assert len(FILES) == 168


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(MLIR)))
def test_round_trip(path: Path) -> None:
    text = path.read_text()
    module = parse(text, path.name)
    printed = print_module(module)
    assert printed.rstrip() == text.rstrip()  # also the numbers of values and the comments with the predecessors
    again = parse(printed)
    assert again.aliases == module.aliases
    assert same(Region([_block(module.op)]), Region([_block(again.op)]))


def _block(op: Op):
    block = Region.single().entry
    block.ops.append(op)
    return block


def test_values_are_objects_and_lines_are_kept() -> None:
    module = parse(
        '"builtin.module"() ({\n'
        '  %0:2 = "a.pair"() : () -> (i32, index)\n'
        '  %1 = "a.sum"(%0#1, %0#0) : (index, i32) -> memref<4x8xbf16, strided<[16, 1], offset: ?>, 2 : i32>\n'
        "}) : () -> ()"
    )
    pair, total = module.op.regions[0].entry.ops
    assert total.operands == (pair.results[1], pair.results[0])
    assert total.result.owner is total
    assert total.loc.line == 3
    assert total.result.type == MemRefType((4, 8), "bf16", 0, (16, 1), True, 2)


def test_attributes_become_python_values() -> None:
    op = parse(
        '"x.y"() <{a = 3 : i8, b = -1.5 : f32, c = true, d = "q\\22\\0A", e = @f::@g, h = [1, 2 : i32, [@k]], '
        "i = array<i64: 4, -5>, j = array<i32>, k = dense<[[1, 2], [3, 4]]> : tensor<2x2xi16>, "
        "l = #aie<bd_dim_layout_array[<size = 2, stride = 8>, <size = 3, stride = 1>]>, m, n = i32, "
        "o = affine_map<(d0)[s0] -> (d0 + s0 >= 1)>, p = dense<0x7F80> : tensor<2xbf16>, q = 0xFF80 : bf16}> "
        ": () -> ()"
    ).op
    got = {name: op.prop(name) for name in op.props}
    assert got.pop("k").tolist() == [[1, 2], [3, 4]]
    assert np.isposinf(got.pop("p").astype(np.float32)).all()
    assert got == {
        "a": 3,
        "b": -1.5,
        "c": True,
        "d": 'q"\n',
        "e": "f::g",
        "h": (1, 2, ("k",)),
        "i": (4, -5),
        "j": (),
        "l": ((2, 8), (3, 1)),
        "m": True,
        "n": "i32",
        "o": "affine_map<(d0)[s0] -> (d0 + s0 >= 1)>",
        "q": float("-inf"),
    }


@pytest.mark.parametrize(
    "attribute",
    [
        "dense<[[0.000000e+00, -1.500000e+00]]> : vector<1x2xbf16>",
        "dense<true> : tensor<3xi1>",
        "dense<[true, false, true]> : tensor<3xi1>",
        'dense<"0x' + np.arange(101, dtype=np.int16).tobytes().hex().upper() + '"> : tensor<101xi16>',
        "0x7FC00000 : f32",
        "3.14159274 : f32",
        "1.000000e-01 : f64",
        "3.1415926535897931 : f64",
        "-1.23456789E-9 : f32",
        "0.00333333341 : f32",
        "123456.789 : f32",
        "array<f32: 1.000000e+00, 2.500000e+00>",
        "array<i1: true, false>",
        '[{a = 1 : i32, "b c"}, unit, (i32, memref<?xi8>) -> (index, index)]',
        "#aie<bd_dim_layout_array_array[[], [<size = 1, stride = 0>]]>",
        "#aie<bd_pad_layout_array[<const_pad_before = 1, const_pad_after = 2>]>",
        "[1, 2 : index, 1.000000e+00]",
        '@"7 wonders"',
        '"\\22\\\\\\0A"',
        "dense_resource<blob> : tensor<4xi8>",
    ],
)
def test_attributes_print_as_they_were(attribute: str) -> None:
    text = f'"x.y"() <{{v = {attribute}}}> : () -> ()\n'
    assert print_module(parse(text)) == text


def test_a_use_may_come_before_the_definition_in_an_enclosing_scope() -> None:
    text = (
        '"m"() ({\n  "r"() ({\n    "use"(%0) : (i32) -> ()\n    "end"() : () -> ()\n  }) : () -> ()\n'
        '  %0 = "def"() : () -> i32\n}) : () -> ()\n'
    )
    module = parse(text)
    region, definition = module.op.regions[0].entry.ops
    assert region.regions[0].entry.ops[0].operands[0] is definition.result
    assert print_module(module) == text


def test_blocks_may_be_named_before_they_come() -> None:
    module = parse('"f"() ({\n  "br"()[^bb1] : () -> ()\n^bb1:\n  "br"()[^bb1] : () -> ()\n}) : () -> ()')
    first, second = module.op.regions[0].blocks
    assert [op.successors for op in (first.ops[0], second.ops[0])] == [[(second, ())]] * 2


def test_locations_are_followed() -> None:
    module = parse(
        '"m"() ({\n "a"() : () -> () loc("d.py":7:3)\n "b"() : () -> () loc(#l)\n}) : () -> ()\n#l = loc(unknown)'
    )
    a, b = module.op.regions[0].entry.ops
    assert (str(a.loc), b.loc.line) == ("d.py:7", 3)


WRONG = [
    ('module {\n}', 1, "--mlir-print-op-generic", "'module'"),
    ('"a"(', 1, "operands", "end of the text"),
    ('"a"() ({\n  "b"() : () -> ()\n', 3, "block label", "the end of the text"),
    ('"a"() ({\n  "b"(%1) : (i32) -> ()\n}) : () -> ()', 2, "a definition of %1", None),
    ('"a"() ({\n  "r"() ({\n %1 = "d"() : () -> i32\n }) : () -> ()\n "b"(%1) : (i32) -> ()\n}) : () -> ()', 5, "%1", None),
    ('"a"() ({\n  %0 = "b"() : () -> i32\n  %0 = "b"() : () -> i32\n}) : () -> ()', 3, "new name", None),
    ('"a"() ({\n  %0 = "b"() : () -> i32\n  "c"(%0) : (i64) -> ()\n}) : () -> ()', 3, "type i32, not i64", None),
    ('"a"() ({\n  "c"(%0) : (i64) -> ()\n  %0 = "b"() : () -> i32\n}) : () -> ()', 3, "i64", None),
    ('"a"() ({\n  "c"(%0) : () -> ()\n}) : () -> ()', 2, "0 operands", None),
    ('%0, %1 = "a"() : () -> i32', 1, "as many results", None),
    ('"a"() ({\n  "br"()[^bb7] : () -> ()\n}) : () -> ()', 2, "block ^bb7", None),
    ('"a"() ({\n^x:\n  "b"() : () -> ()\n^x:\n  "b"() : () -> ()\n}) : () -> ()', 4, "new label", None),
    ('"a"() <{\n x = \n}> : () -> ()', 3, "a type", "'}'"),
    ('"a"() <{x = 1 : i32, x = 2 : i32}> : () -> ()', 1, "only once", None),
    ('"a"() <{x = 1.5 : i32}> : () -> ()', 1, "whole number", None),
    ('"a"() <{x = dense<[1, 2]> : tensor<3xi32>}> : () -> ()', 1, "tensor<3xi32>", None),
    ('"a"() <{x = array<i32: 1, b>}> : () -> ()', 1, "values of type i32", None),
    ('"a"() <{x = #m<(]>}> : () -> ()', 1, "brackets", "']'"),
    ('"a"() <{x = #m<(}> : () -> ()', 1, "brackets", None),
    ('"a"() <{x = 1 : i32} : () -> ()', 1, "'>'", "':'"),
    ('"a"() -> ()', 1, "':'", "'->'"),
    ('"a"() : () -> ()\n"b"() : () -> ()', 2, "end of the module", '"b"'),
    ('', 1, "operation", "the end of the text"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "wanted", "found"), WRONG)
def test_what_does_not_fit_is_named_with_its_line(text: str, line: int, wanted: str, found: str | None) -> None:
    with pytest.raises(DesignError) as error:
        parse(text, "wrong.mlir")
    message = str(error.value)
    assert message.startswith(f"wrong.mlir, line {line}: expected ")
    assert wanted in message
    assert found is None or f"found {found}" in message or found in message


@pytest.mark.parametrize("path", [p for p in FILES if p.name == "iron_rtp_barrier.npu1.high.mlir"])
def test_every_truncation_is_a_design_error(path: Path) -> None:
    text = path.read_text().rstrip()
    for end in range(0, len(text), 97):
        with pytest.raises(DesignError, match="line"):
            parse(text[:end])
