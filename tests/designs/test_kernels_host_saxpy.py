"""designs/saxpy/kernels.cc against its numpy model, bit for bit, on both generations."""

from __future__ import annotations

import numpy as np
import pytest
from ml_dtypes import bfloat16

from designs.saxpy import models
from npusim.devices import DEVICES, NPU1, NPU2
from npusim.errors import DesignError
from npusim.hostcc import rates
from tests.designs.hostcheck import (
    ARCHES,
    PROGRAM_MEMORY,
    adversarial,
    compiled,
    mutated,
    needs_compiler,
    needs_peano,
    peano_sizes,
    same_bits,
)

TILE = 1024
pytestmark = needs_compiler


@pytest.fixture(scope="module")
def source(root):
    return root / "designs" / "saxpy" / "kernels.cc"


def saxpy(source, arch, x, y, a, tile=TILE):
    out = np.zeros(tile, bfloat16)
    compiled(source, ["saxpy_bf16"], arch, {"TILE": tile}).saxpy_bf16(x, y, out, np.float32(a))
    return out


def expected(x, y, a):
    out = np.zeros(x.size, bfloat16)
    with np.errstate(all="ignore"):
        models.saxpy_bf16(x, y, out, np.float32(a))
    return out


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("a", [3.0, 0.1, -1.0, 0.0, 3.0e38, 1e-40, float("inf"), 1 + 2.0**-8])
def test_bit_for_bit(source, arch, a):
    x, y = adversarial(TILE, 1), adversarial(TILE, 2)[::-1].copy()
    assert same_bits(saxpy(source, arch, x, y, a), expected(x, y, a))


@pytest.mark.parametrize("arch", ARCHES)
def test_ties_round_to_even(source, arch):
    y = (np.arange(TILE) % 128 + 128).astype(bfloat16)  # whole numbers of 8 significant bits: a half is a tie
    x = np.full(TILE, 0.5, bfloat16)
    got = saxpy(source, arch, x, y, 1.0).astype(np.float32)
    assert same_bits(got, np.rint(y.astype(np.float32) + np.float32(0.5)))


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("load_v<lanes>(x + i)", "load_v<lanes>(x + i % 512)"),  # an index
        ("i += lanes", "i += 2 * lanes"),  # a stride
        ("conv_even", "floor"),  # a rounding
        ("aie::mac(sum,", "aie::msc(sum,"),  # a sign
        ("(out + i,", "(out + (TILE - lanes - i),"),  # where it goes
    ],
)
def test_a_broken_kernel_differs(source, arch, old, new):
    x, y = adversarial(TILE, 1), adversarial(TILE, 2)
    broken = saxpy(mutated(source, old, new), arch, x, y, 3.1)
    assert not same_bits(broken, expected(x, y, 3.1))


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("i < TILE", "i <= TILE", "out of bounds: a vector load of 64 bytes at byte 2048 of argument 1, .*kernels.cc:"),
        (
            "load_v<lanes>(x + i)",
            "load_v<lanes>(x + i - lanes)",
            "out of bounds: a vector load .* at byte -64 of argument 0",
        ),
        ("store_v(out + i,", "store_v(out + i + 1,", "misaligned: a vector store of 64 bytes at byte 2 of argument 2"),
    ],
)
def test_a_wild_kernel_is_caught(source, arch, old, new, message):
    with pytest.raises(DesignError, match=message):
        saxpy(mutated(source, old, new), arch, adversarial(TILE, 1), adversarial(TILE, 2), 3.1)


@pytest.mark.parametrize("device", [NPU1, NPU2], ids=lambda d: d.name)
def test_the_hand_made_cycles_and_the_counted_ones_are_close(source, device):
    out = np.zeros(TILE, bfloat16)
    kernels = compiled(source, ["saxpy_bf16"], device.arch, {"TILE": TILE})
    counts = kernels.saxpy_bf16(out.copy(), out.copy(), out, np.float32(1)).counts
    types = [np.zeros(TILE, bfloat16)] * 3
    by_hand = models.bound(*types, 1.0, device=DEVICES[device.name])
    assert rates.bound(counts, device) == pytest.approx(by_hand, rel=0.01)
    assert 0.4 < rates.cycles(counts, device) / models.cycles(*types, 1.0, device=device) < 1.1


@needs_peano
@pytest.mark.parametrize("arch", ARCHES)
def test_fits_the_core(source, arch, tmp_path):
    code, stack = peano_sizes(source, arch, {"TILE": TILE}, tmp_path)
    assert code < PROGRAM_MEMORY
    assert all(used <= 1024 for used in stack.values())
