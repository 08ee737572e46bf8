"""The kernels' C++, compiled for the host, against their numpy models: bit for bit, but for the order of sums in products."""

from __future__ import annotations

import numpy as np
import pytest
from ml_dtypes import bfloat16

from designs.kernels.arithmetic import AIE2, AIE2P
from designs.kernels.models import KERNELS
from npusim.devices import NPU1, NPU2
from npusim.errors import DesignError
from tests.designs.hostcheck import (
    ARCHES,
    PROGRAM_MEMORY,
    compiled,
    needs_compiler,
    needs_peano,
    peano_sizes,
    same_bits,
)
from tests.designs.kernels.sources import (
    BLOCKS,
    HERE,
    ROWS,
    SHAPES,
    arguments,
    copied,
    defines,
    dims_of,
    exists,
    exported,
    macros_of,
    model,
    numbers,
    program,
    whole,
)

PRODUCTS = ("matmul_qk", "matmul_pv", "matmul_bf16_f32")
ORDERED = [k for k in KERNELS.values() if k.name not in PRODUCTS]
SORTS = ("normal", "spread", "denormal", "equal", "zero", "half masked", "masked", "lowest", "one hot", "huge")
WITHOUT_INFINITIES = ("normal", "spread", "denormal", "equal", "zero", "lowest", "one hot")  # where 0 * inf would be NaN
SCORES = ("row_max", "max_with", "exp_scores", "exp_correction", "softmax_step", "online_softmax", "online_softmax_rows", "mask_causal",
          "mask_window", "mask_keys", "softmax_rows", "softmax_stats", "softmax_apply", "relu_bf16")  # fmt: skip


class Stream:
    """Stands in for the cascade: gives the bytes it was made with, keeps those that are put."""

    def __init__(self, received: bytes = b"") -> None:
        self.received, self.sent = received, b""

    def get(self, shape, dtype):
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        raw, self.received = self.received[:size], self.received[size:]
        return np.frombuffer(raw, dtype).reshape(shape).copy()

    def put(self, array):
        self.sent += np.ascontiguousarray(array).tobytes()


def both(kernel, arch, shape, given, emulate=True, folder=HERE):
    """Run C++ and model on copies of the same arguments; gives both lists of arguments afterwards."""
    ours, theirs = ([a.copy() for a in given] for _ in range(2))
    bound = model(kernel, arch, shape, emulate)
    received, rest = b"", {}
    if kernel.moved is not None:
        got, _ = kernel.moved(dims_of(kernel, shape))
        received = numbers(np.random.default_rng(5), (got // 2,), "normal").tobytes()
        rest = {"cascade": Stream(received)}
    with np.errstate(all="ignore"):
        bound.compute(*theirs, **rest)
    result = program(kernel, arch, shape, emulate, folder).call(kernel.name, *ours, received=received)
    if rest:
        assert result.sent == rest["cascade"].sent
        assert rest["cascade"].received == b""
    return ours, theirs


def agree(ours, theirs):
    """Equal bits, zeros of either sign alike: which zero is the larger one is not specified."""
    return all(
        same_bits(np.where(a == 0, np.zeros_like(a), a), np.where(b == 0, np.zeros_like(b), b))
        for a, b in zip(ours, theirs, strict=True)
        if np.ndim(a)
    )


@needs_compiler
@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("kernel", ORDERED, ids=lambda k: k.name)
def test_bit_for_bit(kernel, arch):
    shapes = SHAPES if kernel.source in BLOCKS else ["square"]
    for number, shape in enumerate(shapes):
        if not exists(kernel, SHAPES[shape]):
            continue
        for sort in SORTS if kernel.name in SCORES else WITHOUT_INFINITIES:
            given = arguments(kernel, dims_of(kernel, shape), np.random.default_rng(number), sort)
            ours, theirs = both(kernel, arch, shape, given)
            assert agree(ours, theirs), (shape, sort)


@needs_compiler
@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("name", ["mask_causal", "mask_window", "mask_keys"])
def test_masks_for_every_block(name, arch):
    kernel = KERNELS[name]
    s = numbers(np.random.default_rng(1), (32, 32), "normal")
    blocks = range(4)
    calls = {
        "mask_causal": [(q, k) for q in blocks for k in blocks],
        "mask_window": [(q, k, w) for q in blocks for k in blocks for w in (1, 2)],
        "mask_keys": [(k, keys) for k in blocks for keys in (0, 1, 31, 32, 37, 40, 63, 64, 127)],
    }[name]
    for call in calls:
        ours, theirs = both(kernel, arch, "small", [s, *map(np.int32, call)])
        assert agree(ours, theirs), call


# ---- products: sums in another order than the model's


def small_whole_numbers(shape):
    return whole(np.random.default_rng(2), shape, 3)


def products(name, dims, make):
    kernel = KERNELS[name]
    return [make(tuple(dims[d] for d in p.dims)).astype(np.float32 if p.element == "f32" else bfloat16) for p in kernel.parameters]


VARIANTS = [("AIE2", True), ("AIE2P", True), ("AIE2P", False)]


@needs_compiler
@pytest.mark.parametrize(("arch", "emulate"), VARIANTS)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_of_whole_numbers_are_exact(name, arch, emulate):
    for shape in SHAPES if name != "matmul_bf16_f32" else ["square"]:
        # Up to 3 * 3 * 64 = 576 and an old value up to 3: no rounding in float; BFP16 holds these numbers exactly.
        given = products(name, dims_of(KERNELS[name], shape), small_whole_numbers)
        ours, theirs = both(KERNELS[name], arch, shape, given, emulate)
        assert agree(ours, theirs), shape


@needs_compiler
@pytest.mark.parametrize(("arch", "emulate"), VARIANTS)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_differ_by_rounding_only(name, arch, emulate):
    rng = np.random.default_rng(3)
    dims = dims_of(KERNELS[name], "square")
    given = products(name, dims, lambda s: numbers(rng, s, "normal"))
    ours, theirs = both(KERNELS[name], arch, "square", given, emulate)
    a, b = (x[2].astype(np.float64) for x in (ours, theirs))
    if name == "matmul_bf16_f32":  # at most 64 additions of terms below 32, each half a unit of 2**-19 off
        assert np.abs(a - b).max() <= 64 * 2.0**-19
        return
    # Float sums differ by less than that, so bf16 results are equal or neighbours, and seldom neighbours.
    apart = np.abs(ours[2].view(np.int16).astype(int) - theirs[2].view(np.int16).astype(int))
    assert apart.max() <= 1
    assert (apart > 0).mean() < 0.002


@needs_compiler
@pytest.mark.parametrize("arch", ARCHES)
def test_products_use_the_block_format_only_where_asked(arch):
    kernel = KERNELS["matmul_qk"]
    dims = dims_of(kernel, "small")
    q, k = np.zeros((dims["BQ"], dims["DK"]), bfloat16), np.zeros((dims["BK"], dims["DK"]), bfloat16)
    q[...], k[...] = 1, 1
    q.reshape(dims["DK"] // 8, dims["BQ"], 8)[:, :, 0] = 256  # beside 256, a one is a quarter of a step of 4
    given = [q, k, np.zeros((dims["BQ"], dims["BK"]), bfloat16)]
    for emulate in (True, False):
        ours, theirs = both(kernel, arch, "small", given, emulate)
        assert agree(ours, theirs)
        lost = arch == "AIE2P" and emulate
        assert (ours[2].astype(float) == (2048 if lost else 2112)).all()  # 8 * 256 + 8 * 7 = 2104, in bf16 2112


# ---- what a broken kernel does to these tests

MUTATIONS = {
    "index: a result of the wrong panel": ("matmul_block.cc", "c01.mac(a0, b1);", "c01.mac(a0, b0);", "matmul_qk", "AIE2P"),
    "index: halves swapped": ("matmul_block.cc", "sums.add(left, halves.first, halves.second);",
                              "sums.add(left, halves.second, halves.first);", "matmul_pv", "AIE2"),
    "stride: panels of B": ("matmul_block.cc", "sums.add(left, aie::load_v<64>(right), aie::load_v<64>(right + b_panel));",
                            "sums.add(left, aie::load_v<64>(right), aie::load_v<64>(right + a_panel));", "matmul_pv", "AIE2P"),
    "stride: rows between panels": ("online_softmax.h", "const bfloat16 *at = s + j * BQ * width + row * width;",
                                    "const bfloat16 *at = s + j * BK * width + row * width;", "row_max", "AIE2"),
    "rounding: down": ("panels.h", "set_rounding(aie::rounding_mode::conv_even)", "set_rounding(aie::rounding_mode::floor)",
                       "rescale_output", "AIE2"),
    "rounding: of the exponent": ("exp2.h", "return exp2(aie::mul(difference, scale));",
                                  "return exp2(Sums(aie::mul(difference, scale).to_vector<bfloat16>()));", "exp_scores", "AIE2"),
    "value: a table's entry": ("exp2.h", "int(sum * 128 + 0.5)", "int(sum * 128)", "exp_scores", "AIE2"),
    "value: the diagonal": ("masks.cc", "if (c > row + r)", "if (c >= row + r)", "mask_causal", "AIE2P"),
    "order: of a fold": ("online_softmax.h", "return f(aie::filter_even(two), aie::filter_odd(two));",
                         "return f(aie::filter_even(two), aie::filter_even(two));", "row_sum", "AIE2P"),
    "role: weights": ("merge.h", "Sums sum = aie::mul(take(at), a);\n    sum = aie::mac(sum, aie::load_v<lanes>(o + at), b);",
                      "Sums sum = aie::mul(take(at), b);\n    sum = aie::mac(sum, aie::load_v<lanes>(o + at), a);",
                      "cascade_merge_partial", "AIE2"),
}  # fmt: skip


@needs_compiler
@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_broken_kernel_is_noticed(mutation, tmp_path):
    file, old, new, name, arch = MUTATIONS[mutation]
    folder = copied(tmp_path, file, old, new)
    kernel, rng = KERNELS[name], np.random.default_rng(4)
    shape = "small" if name == "mask_causal" else "uneven"
    dims = dims_of(kernel, shape)
    if name in PRODUCTS:
        given = products(name, dims, small_whole_numbers)
    elif name == "mask_causal":
        given = [numbers(rng, (32, 32), "normal"), np.int32(1), np.int32(1)]
    else:
        given = arguments(kernel, dims, rng, "normal")
    assert agree(*both(kernel, arch, shape, given))
    try:
        same = agree(*both(kernel, arch, shape, given, folder=folder))
    except DesignError:  # an access outside an argument, say
        return
    assert not same


# ---- every kernel has its three parts


def test_sources_and_models_agree_on_names_and_parameters():
    declared = {}
    for file in HERE.glob("*.cc"):
        for name, parameters in exported(file).items():
            assert name not in declared, f"{name} is in two sources"
            declared[name] = (file.name, parameters)
    assert declared.keys() == KERNELS.keys()
    for name, (file, parameters) in declared.items():
        kernel = KERNELS[name]
        assert kernel.source == file
        assert [(p.name, p.element, bool(p.dims)) for p in kernel.parameters] == parameters, name


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=lambda k: k.name)
def test_every_kernel_has_a_cost(kernel, arch):
    device = {"AIE2": NPU1, "AIE2P": NPU2}[arch]
    small = kernel.cost(dims_of(kernel, "small"), device)
    large = kernel.cost(dims_of(kernel, "square"), device)
    assert 0 < small.bound <= small.calibrated
    assert small.bound <= large.bound <= large.calibrated


@needs_compiler
@pytest.mark.parametrize("source", BLOCKS)
def test_each_source_compiles_by_itself(source):
    names = [k.name for k in KERNELS.values() if k.source == source]
    assert compiled(HERE / source, names, "AIE2P", defines("AIE2P", SHAPES["square"])).program.functions


@needs_peano
@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("source", ["attention.cc", "online_softmax_rows.cc", "softmax.cc", "layout.cc"])
def test_size_and_stack_on_the_core(source, arch, tmp_path):
    dims = ROWS if source in ("softmax.cc", "layout.cc") else SHAPES["square"]
    code, stack = peano_sizes(HERE / source, arch, defines(arch, dims), tmp_path)
    assert 0 < code <= PROGRAM_MEMORY, f"{source}: {code} bytes of code"
    assert max(stack.values(), default=0) <= 1024, stack


def test_arithmetic_follows_device_and_flags():
    qk = KERNELS["matmul_qk"]
    assert macros_of(qk) == {"BQ", "BK", "DK"}
    assert model(qk, "AIE2").compute.args[0] is AIE2
    assert model(qk, "AIE2P").compute.args[0] is AIE2P
    assert not model(qk, "AIE2P", emulate=False).compute.args[0].blocks
