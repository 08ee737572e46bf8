"""What the IRON designs of attention have in common: layouts, ways through MemTiles, kernels, the host's walks.

As pure as the designs themselves: nothing but IRON's own names. They are imported when they are used, so that the designs and
this file always speak of the same backend.
"""

from pathlib import Path

import numpy as np
from ml_dtypes import bfloat16

KERNELS = Path(__file__).parents[1] / "kernels"


def array(*shape, dtype=bfloat16):
    """IRON's type of an array."""
    return np.ndarray[shape, np.dtype[dtype]]


# ---- layouts: (size, stride) of each dimension of a walk, outermost first


def to_panels(rows, columns):
    """The walk through rows that gives panels of eight columns, the layout of the matrix kernels' tiles."""
    return [(columns // 8, 8), (rows, columns), (8, 1)]


def from_panels(rows, columns):
    """The walk through panels that gives rows."""
    return [(rows, 8), (columns // 8, 8 * rows), (8, 1)]


# ---- ways through the MemTile of a column, from and to the shim tile below it; objects are tiles of rows x columns, which
# the host has row by row and the compute tiles in panels


def through(fifo, name, column, walk, depth=2):
    """A fifo that goes on through a MemTile, with room for ``depth`` objects there, in another layout."""
    from aie.iron.device import Tile

    return fifo.cons(depth).forward(Tile(column, 1), name=name, dims_to_stream=walk, depth=depth)


def broadcast(name, column, rows, columns):
    """From the host to all who want it: (the host's end, everybody's fifo)."""
    from aie.iron import ObjectFifo
    from aie.iron.device import Tile

    host = ObjectFifo(array(rows, columns), name=name)
    return host.prod(tile=Tile(column, 0)), through(host, f"{name}_all", column, to_panels(rows, columns))


def split(name, column, parts, rows, columns, walk=to_panels):
    """From the host to several tiles: (the host's end, each tile's fifo)."""
    from aie.iron import ObjectFifo
    from aie.iron.device import Tile

    host = ObjectFifo(array(parts * rows, columns), name=name)
    offsets, types = [i * rows * columns for i in range(parts)], [array(rows, columns)] * parts
    names, walks = [f"{name}_{i}" for i in range(parts)], [walk(rows, columns)] * parts
    each = host.cons().split(offsets, Tile(column, 1), obj_types=types, names=names, dims_to_stream=walks)
    return host.prod(tile=Tile(column, 0)), each


def join(name, column, parts, rows, columns, walk=from_panels):
    """From several tiles to the host: (the host's end, each tile's fifo)."""
    from aie.iron import ObjectFifo
    from aie.iron.device import Tile

    host = ObjectFifo(array(parts * rows, columns), name=name, dims_to_stream=walk(rows, columns))
    offsets, types = [i * rows * columns for i in range(parts)], [array(rows, columns)] * parts
    names = [f"{name}_{i}" for i in range(parts)]
    each = host.prod().join(offsets, Tile(column, 1), obj_types=types, names=names)
    return host.cons(tile=Tile(column, 0)), each


def as_it_lies(rows, columns):
    """No walk: for ``split`` and ``join`` of what is not in panels."""
    return []


# ---- the host's walks through its arrays


def piece(size, start, length, times=1, stride=0):
    """The walk through ``length`` elements in a row of an array of ``size`` elements; ``times`` times, ``stride`` elements
    further each time (at most 64 times, which is what a shim tile's descriptor can count)."""
    from aie.helpers.taplib import TensorAccessPattern

    return TensorAccessPattern((size,), start, [times, 1, 1, length], [stride, 0, 0, 1])


def run_in_turn(rounds, fills, drains, ahead=1):
    """In the host sequence: one round of transfers after the other, ``ahead`` of them begun before the first is done.

    ``fills`` and ``drains`` are pairs (host's array, end of a fifo); a round has a walk for each of both, or None.
    """
    from aie.iron import TaskGroup

    running = []
    for inwards, outwards in rounds:
        tasks = TaskGroup()
        for (data, end), walk in zip(fills, inwards):
            if walk:
                end.fill(data, tap=walk, group=tasks)
        for (data, end), walk in zip(drains, outwards):
            if walk:
                end.drain(data, tap=walk, group=tasks, wait=True)
        running.append(tasks)
        if len(running) > ahead:
            running.pop(0).finish()
    for tasks in running:
        tasks.finish()


# ---- kernels


def kernels(bq, bk, d):
    """The functions of designs/kernels for blocks of bq queries and bk keys, d wide, by name: ``kernels(64, 64, 64)("zero_scores")``.

    Made once for all workers that call them.
    """
    q, kv, s, rows = array(bq, d), array(bk, d), array(bq, bk), array(bq)
    types = {
        "zero_scores": [s],
        "zero_output": [q],
        "zero_sums": [rows],
        "lowest_maxima": [rows],
        "copy_rows": [rows, rows],
        "matmul_qk": [q, kv, s],
        "matmul_pv": [s, kv, q],
        "mask_causal": [s, np.int32, np.int32],
        "mask_keys": [s, np.int32, np.int32],
        "online_softmax": [s, s, rows, rows, rows, np.float32],
        "online_softmax_rows": [s, s, rows, rows, rows, np.float32],
        "rescale_output": [rows, q],
        "accumulate_output": [q, rows, q],
        "divide_output": [rows, q],
    }
    flags = [f"-DBQ={bq}", f"-DBK={bk}", f"-DDK={d}", f"-DDV={d}"]
    flags.append("-DAIE_API_EMULATE_BFLOAT16_MMUL_WITH_BFP16")  # XDNA 2 multiplies in BFP16
    made = {}

    def chosen(*names):
        for name in names:
            if name not in made:
                source = name if name == "online_softmax_rows" else "attention"
                made[name] = function(name, source, types[name], flags)
        return [made[name] for name in names]

    return chosen


def row_kernels(rows, columns):
    """Softmax of whole rows; and of pieces of rows, first maximum and sum, then P."""
    tile, row = array(rows, columns), array(rows)
    types = {"softmax_rows": [tile, tile], "softmax_stats": [tile, row, row], "softmax_apply": [tile, row, row, tile]}
    flags = [f"-DROWS={rows}", f"-DCOLS={columns}"]
    return [function(name, "softmax", [*t, np.float32], flags) for name, t in types.items()]


def function(name, source, types, flags):
    """A C++ function of designs/kernels/``source``.cc."""
    from aie.iron import ExternalFunction
    from aie.utils.config import cxx_header_path

    return ExternalFunction(
        name,
        object_file_name=f"{source}.o",
        source_file=str(KERNELS / f"{source}.cc"),
        arg_types=types,
        include_dirs=[cxx_header_path()],
        compile_flags=flags,
    )
