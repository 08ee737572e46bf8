"""One buffer descriptor at work: y is what it makes of x.

x goes to a tile as one object, and the tile's DMA sends it on in the order of
`dims`: (size, stride) pairs, the outermost first. In row 1 that is a MemTile, in
row 2 a compute tile (whose core does nothing). In row 0 it is the shim tile,
where the host's own transfer does the walk. A MemTile can also put zeros around
what it sends, and send it more than once.
"""

from math import prod

import aie.iron as iron
import numpy as np
from aie.dialects.aie import AIETileType
from aie.helpers.taplib import TensorAccessPattern
from aie.iron import CompileTime, In, ObjectFifo, Out, Program, Runtime
from aie.iron.device import Tile
from ml_dtypes import bfloat16

DTYPES = {"i32": np.int32, "bf16": bfloat16}


def place(row):
    """The tile through which the object passes."""
    kind = AIETileType.CoreTile if row == 2 else AIETileType.MemTile
    return Tile(0, max(row, 1), tile_type=kind)


def access(shape, dims):
    """The walk of a host transfer over an array."""
    sizes, strides = zip(*dims)
    return TensorAccessPattern(shape, 0, list(sizes), list(strides))


def transform(dims, pad, repeat):
    """The walk of a tile's DMA over an object, in the words of an ObjectFifo."""
    words = {"dims_to_stream": list(dims)} if dims else {}
    if pad:
        words["pad_dimensions"] = list(pad)
    if repeat > 1:
        words["repeat_count"] = repeat
    return words


def sequence(x_ddr, y_ddr, x_prod, y_cons, tap):
    """What the host asks for: x in, in the order of a tap if there is one; y out."""
    x_prod.fill(x_ddr, tap=tap)
    y_cons.drain(y_ddr, wait=True)


@iron.jit
def walk(
    x: In,
    y: Out,
    *,
    shape: CompileTime[tuple],
    dims: CompileTime[tuple] = (),
    row: CompileTime[int] = 1,
    pad: CompileTime[tuple] = (),
    repeat: CompileTime[int] = 1,
    dtype: CompileTime[str] = "i32",
):
    """x: an array of ``shape``. pad: (zeros before, zeros behind) for each of dims.
    y has as many elements as leave the tile."""
    element = np.dtype[DTYPES[dtype]]
    at_shim = dims and row == 0
    # What the host's walk brings is one object; one that is padded grows.
    inside = (prod(size for size, _ in dims),) if at_shim else shape
    around = [before + behind for before, behind in pad or ((0, 0),) * len(inside)]
    outside = tuple(size + more for size, more in zip(inside, around))

    of_x = ObjectFifo(np.ndarray[inside, element], name="x")
    words = {} if at_shim else transform(dims, pad, repeat)
    out_type = np.ndarray[outside, element]
    of_y = of_x.cons().forward(name="y", obj_type=out_type, tile=place(row), **words)

    arrays = [np.ndarray[shape, element], np.ndarray[(repeat * prod(outside),), element]]
    tap = access(shape, dims) if at_shim else None
    runtime = Runtime(sequence, [*arrays, of_x.prod(), of_y.cons(), tap])
    return Program(iron.get_current_device(), runtime).resolve_program()
