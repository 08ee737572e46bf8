"""The factories of iron.kernels against the recorded defaults of the real package."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path

import numpy as np
import pytest
from ml_dtypes import bfloat16

from npusim import kernels
from npusim.errors import DesignError, UnsupportedError
from npusim.frontends.iron import current, kernel_library
from npusim.frontends.iron.device import NPU1, NPU2
from npusim.frontends.iron.kernel_library.common import forget
from npusim.frontends.iron.kernel_library.refused import NAMES
from npusim.graph import KernelDecl

RECORDED = json.loads((Path(__file__).parents[1] / "data/api/kernels_defaults.json").read_text())
SERVED = [name for name in RECORDED["npu1"] if name not in NAMES]


@pytest.fixture(params=["npu1", "npu2"])
def device(request):
    forget()
    current.set_current_device({"npu1": NPU1, "npu2": NPU2}[request.param]())
    yield request.param
    current.set_current_device(None)


def plain(symbol):
    """A symbol or object name without the digits that tell variants apart."""
    return re.sub(r"(^[0-9a-f]{8}_)|(_[0-9a-f]{8}(?=\.o$))", "", symbol)


def described(function):
    return {
        "class": type(function).__name__,
        "arg_types": [str(t) for t in function.arg_types()],
        "name": plain(function._name),
        "object_file_name": plain(function.object_file_name),
        "compile_flags": getattr(function, "_compile_flags", None),
    }


def recorded(entry):
    kept = {key: entry[key] for key in ("class", "arg_types", "compile_flags")}
    return kept | {key: plain(entry[key]) for key in ("name", "object_file_name")}


@pytest.mark.parametrize("name", SERVED)
def test_default_calls(name, device):
    entry = RECORDED[device][name]["default_call"]
    function = getattr(kernel_library, name)()
    assert described(function) == recorded(entry)
    assert (function._name == plain(function._name)) == (entry["name"] == plain(entry["name"]))
    if "source_basename" in entry:
        assert function._source_file == f"aie_kernels/{entry['source_basename']}"
    if "mac_dims" in entry:
        assert function.mac_dims == tuple(entry["mac_dims"])
    for sibling in ("zero", "get_only", "put_only", "put_get"):
        if sibling in entry:
            assert described(getattr(function, sibling)) == recorded(entry[sibling])


@pytest.mark.parametrize("name", SERVED)
def test_signatures(name, device):
    wanted = RECORDED[device][name]["signature"]
    got = str(inspect.signature(getattr(kernel_library, name)))
    parameters = inspect.signature(getattr(kernel_library, name)).parameters
    assert re.findall(r"(\w+): ", wanted) == list(parameters)
    for shown, parameter in zip(re.findall(r"= ([^,)]+)", wanted), parameters.values()):
        assert shown == (repr(parameter.default)), (got, wanted)


def test_every_default_kernel_has_a_model(device):
    for name in SERVED:
        function = getattr(kernel_library, name)()
        symbols = [function._name] + [
            getattr(function, s)._name for s in ("zero", "put_only", "put_get") if hasattr(function, s)
        ]
        for symbol in symbols:
            model = kernels.lookup(KernelDecl(symbol, ()))
            assert model.source


@pytest.mark.parametrize("name", NAMES)
def test_the_rest_refuses_with_its_name(name):
    with pytest.raises(UnsupportedError, match=f"iron.kernels.{name} is not served"):
        getattr(kernel_library, name)(1, 2, three=3)


def test_nothing_recorded_is_missing():
    references = {"relu_ref", "silu_ref", "gelu_ref", "bf16_exp_ref", "softmax_ref"}
    assert set(kernel_library.__all__) == set(RECORDED["npu1"]) | references


def test_variants_have_their_own_symbols():
    current.set_current_device(NPU1())
    try:
        plain_mm, by_columns = kernel_library.mm(), kernel_library.mm(c_col_maj=True)
        assert kernel_library.mm() is plain_mm
        assert plain_mm._name != by_columns._name
        assert plain_mm.object_file_name != by_columns.object_file_name
    finally:
        current.set_current_device(None)


def test_two_sizes_of_one_shared_object_collide(device):
    """As in the real package, which compiles reduce_max.cc once for all of its kernels."""
    kernel_library.reduce_max(512)
    with pytest.raises(DesignError, match=r"reduce_max\.cc\.o"):
        kernel_library.reduce_max(1024)
    forget()
    kernel_library.reduce_max(1024)


def test_emulation_is_of_the_second_generation_only(device):
    emulated = kernel_library.mm(64, 64, 64, bfloat16, np.float32, emulate_bf16_mmul_with_bfp16=True)
    assert emulated.mac_dims == ((8, 8, 8) if device == "npu2" else (4, 8, 4))
    assert any("BFP16" in flag for flag in emulated._compile_flags) == (device == "npu2")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda k: k.add(512), "tile_size must be 1024"),
        (lambda k: k.add(dtype=np.float32), "dtype must be bfloat16"),
        (lambda k: k.passthrough(dtype=np.float32), "unsupported dtype"),
        (lambda k: k.reduce_add(dtype=np.int16), "dtype must be np.int32"),
        (lambda k: k.compute_max(np.int16), "np.int32 or bfloat16"),
        (lambda k: k.mm(input_dtype=np.int32), r"unsupported \(input_dtype, output_dtype\)"),
        (lambda k: k.mm(60, 64, 64), "dim_m is 60, which is no multiple of 8"),
        (lambda k: k.mv(input_dtype=np.int8), r"only \(np.int16, np.int32\)"),
        (lambda k: k.cascade_mm(input_dtype=np.int8), "unsupported"),
        (lambda k: k.softmax_ref(np.zeros(100)), "not a multiple of tile_size"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(DesignError, match=message):
        call(kernel_library)


def test_references():
    x = np.linspace(-4, 4, 2048).astype(bfloat16)
    v = x.astype(np.float64)
    assert np.allclose(kernel_library.silu_ref(x).astype(np.float64), v / (1 + np.exp(-v)), atol=0.02)
    assert np.array_equal(kernel_library.relu_ref(x), np.maximum(x, 0).astype(bfloat16))
    assert np.allclose(kernel_library.softmax_ref(x).astype(np.float64).reshape(2, -1).sum(axis=1), 1, atol=0.02)
    assert kernel_library.gelu_ref(x).dtype == bfloat16
    assert kernel_library.bf16_exp_ref(np.array([0.0])) == 1
