"""The shared kernels called from an IRON design: two cores, half of the keys each, merged over the cascade."""

from __future__ import annotations

import math
import textwrap

import numpy as np
import pytest
from ml_dtypes import bfloat16

from designs.kernels.layout import matrix, tile_of
from designs.kernels.numerics import attention, exact, variant
from npusim.errors import DesignError
from npusim.frontends.finder import simulated
from npusim.frontends.iron import current, tensor_factory
from npusim.frontends.iron.device import NPU1, NPU2
from npusim.load import python_file
from tests.designs.kernels.sources import HERE

SCALE = math.log2(math.e) / 8
DEVICES = {"npu1": (NPU1, "bf16-tables"), "npu2": (NPU2, "bfp16-linear")}

DESIGN = '''
import aie.iron as iron
import numpy as np
from aie.iron import Buffer, CascadeFlow, ExternalFunction, In, ObjectFifo, Out, Program, Runtime, Worker
from aie.iron.controlflow import range_
from aie.iron.device import Tile
from ml_dtypes import bfloat16

B, BLOCKS = 64, 2
FLAGS = [f"-D{name}={ROWS}" for name in ("BQ", "BK", "DK", "DV")] + ["-DAIE_API_EMULATE_BFLOAT16_MMUL_WITH_BFP16"]


@iron.jit
def attention(q: In, kv0: In, kv1: In, out: Out):
    tile, rows, f32 = np.ndarray[(B, B), np.dtype[bfloat16]], np.ndarray[(B,), np.dtype[bfloat16]], np.float32
    many = np.ndarray[(2 * BLOCKS * B, B), np.dtype[bfloat16]]

    def kernel(name, *types):
        return ExternalFunction(name, object_file_name="attention.o", source_file=SOURCE, arg_types=list(types), compile_flags=FLAGS)

    qk, pv = kernel("matmul_qk", tile, tile, tile), kernel("matmul_pv", tile, tile, tile)
    step = kernel("softmax_step", tile, rows, rows, rows, f32)
    rescale, sums = kernel("rescale_output", rows, tile), kernel("accumulate_sums", rows, rows, rows)
    zero_s, zero_o = kernel("zero_scores", tile), kernel("zero_output", tile)
    zero_l, lowest = kernel("zero_sums", rows), kernel("lowest_maxima", rows)
    put, merge = kernel("cascade_put_partial", tile, rows, rows), kernel("cascade_merge_partial", tile, rows, rows, f32)
    divide = kernel("divide_output", rows, tile)
    compute = [qk, pv, step, rescale, sums, zero_s, zero_o, zero_l, lowest]

    of_q = ObjectFifo(tile, name="q", depth=1)
    of_kv = [ObjectFifo(tile, name=f"kv{i}") for i in range(2)]
    of_out = ObjectFifo(tile, name="out", depth=1)

    def half(q, kv, o, s, m, l, t, r, qk, pv, step, rescale, sums, zero_s, zero_o, zero_l, lowest):
        zero_o(o)
        zero_l(l)
        lowest(m)
        queries = q.acquire(1)
        for _ in range_(BLOCKS):
            zero_s(s)
            qk(queries, kv.acquire(1), s)
            kv.release(1)
            step(s, m, t, r, SCALE)
            rescale(r, o)
            pv(s, kv.acquire(1), o)
            kv.release(1)
            sums(t, r, l)
        q.release(1)

    def upper(q, kv, o, s, m, l, t, r, put, *kernels):
        half(q, kv, o, s, m, l, t, r, *kernels)
        put(o, m, l)

    def lower(q, kv, out, s, m, l, t, r, merge, divide, *kernels):
        o = out.acquire(1)
        half(q, kv, o, s, m, l, t, r, *kernels)
        merge(o, m, l, SCALE)
        divide(l, o)
        out.release(1)

    def state(core):
        return [Buffer(type=tile, name=f"s{core}")] + [Buffer(type=rows, name=f"{n}{core}") for n in "mltr"]

    w1 = Worker(upper, [of_q.cons(), of_kv[1].cons(), Buffer(type=tile, name="o1"), *state(1), put, *compute], tile=Tile(0, 3))
    w0 = Worker(lower, [of_q.cons(), of_kv[0].cons(), of_out.prod(), *state(0), merge, divide, *compute], tile=Tile(0, 2))
    CascadeFlow(w1, w0)

    def sequence(q, a, b, out, q_prod, a_prod, b_prod, out_cons):
        q_prod.fill(q)
        a_prod.fill(a)
        b_prod.fill(b)
        out_cons.drain(out, wait=True)

    runtime = Runtime(sequence, [tile, many, many, tile, of_q.prod(), of_kv[0].prod(), of_kv[1].prod(), of_out.cons()])
    return Program(iron.get_current_device(), runtime, workers=[w0, w1]).resolve_program()
'''


@pytest.fixture
def run(tmp_path):
    """run(device name, q, k, v, rows) -> (output matrix, report)."""

    def call(name, q, k, v, rows=64):
        path = tmp_path / "design.py"
        names = f"SOURCE = {str(HERE / 'attention.cc')!r}\nSCALE = {SCALE!r}\nROWS = {rows}\n"
        path.write_text(names + textwrap.dedent(DESIGN))
        with simulated(), python_file(path) as module:
            current.set_current_device(DEVICES[name][0]())
            tiles = [tile_of(x, bfloat16) for x in np.concatenate([k, v], axis=1).reshape(4, 64, 2, 64).transpose(0, 2, 1, 3).reshape(8, 64, 64)]
            given = [tile_of(q, bfloat16), np.concatenate(tiles[:4]), np.concatenate(tiles[4:])]
            arrays = [tensor_factory.tensor(x, dtype=bfloat16) for x in given]
            out = tensor_factory.zeros((64, 64), dtype=bfloat16)
            _, result = module.attention(*arrays, out)
        current.set_current_device(None)
        return matrix(out.numpy()).astype(np.float32), result.report

    return call


def inputs():
    rng = np.random.default_rng(1)
    return [rng.standard_normal(shape).astype(bfloat16).astype(np.float32) for shape in ((64, 64), (256, 64), (256, 64))]


@pytest.mark.parametrize("device", DEVICES)
def test_attention_of_two_cores(run, device):
    q, k, v = inputs()
    got, report = run(device, q, k, v)
    assert report.warnings == []
    truth = exact(q, k, v)
    assert (np.abs(got - truth) <= 1e-1 + 1.6e-2 * np.abs(truth)).all()
    want = attention(variant(DEVICES[device][1]), q, k, v, stages=2)
    assert np.abs(got - want).max() <= 0.01 * np.abs(want).max()


def test_a_kernel_compiled_for_another_shape_is_refused(run):
    with pytest.raises(DesignError, match=r"with BQ=32, declared as"):
        run("npu2", *inputs(), rows=32)
