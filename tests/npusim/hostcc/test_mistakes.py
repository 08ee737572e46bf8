"""What a kernel can do wrong, each with a clear error: it does not compile, does not fit its declaration, or misbehaves."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from ml_dtypes import bfloat16

from npusim.devices import NPU1, NPU2
from npusim.errors import DesignError, DesignWarning, UnsupportedError
from npusim.graph import KernelDecl
from npusim.hostcc import compile_kernel
from npusim.types import MemRefType
from tests.designs.hostcheck import compiled, needs_compiler

pytestmark = needs_compiler

N = 256
I32 = MemRefType((N,), "i32")
BF16 = MemRefType((N,), "bf16")


def kernel(text, *types, name="f", flags=(), device=NPU2):
    return compile_kernel(KernelDecl(name, types or (I32, I32), source_string=text, compile_flags=flags), device)


def scalar(body, head=""):
    return f"""#include <stdint.h>
{head}
extern "C" void f(const int32_t *in, int32_t *out) {{
  {body}
}}"""


def vectors(body):
    return f"""#include <aie_api/aie.hpp>
extern "C" void f(const bfloat16 *in, bfloat16 *out) {{
  {body}
}}"""


# ---- it does not compile


def test_a_syntax_error_is_shown_with_its_line():
    with pytest.raises(DesignError) as caught:
        kernel(scalar("for (int i = 0; i < 256; ++i)\n    out[i] = in[i] + ;"))
    said = str(caught.value)
    assert re.match(r"kernel 'f' does not compile:\nf\.cc:5: expected (primary-)?expression", said)
    assert "out[i] = in[i] + ;" in said
    assert "unit.cc" not in said
    assert "npusim_host" not in said


def test_an_unknown_name():
    with pytest.raises(DesignError, match=r"f\.cc:4: ('k' was not declared|use of undeclared identifier 'k')"):
        kernel(scalar("out[0] = k;"))


def test_only_the_first_errors_are_shown():
    with pytest.raises(DesignError, match=r"(?s)f\.cc:4: .*'a'.*f\.cc:4: .*'b'.*f\.cc:4: .*'c'.*\.\.\. and \d more$"):
        kernel(scalar("a; b; c; d;"))


def test_a_missing_file_and_a_missing_include(tmp_path):
    with pytest.raises(DesignError, match=r"there is no source file .*none\.cc"):
        compile_kernel(KernelDecl("f", (I32, I32), source_file=str(tmp_path / "none.cc")), NPU1)
    with pytest.raises(DesignError, match=r"f\.cc:2: (table\.h: No such file|'table\.h' file not found)"):
        kernel(scalar("", '#include "table.h"'))


def test_a_wrong_use_of_the_api_is_shown_where_it_is_used():
    with pytest.raises(DesignError, match=r"f\.cc:3: a vector has a power of two of elements and at least 128 bits"):
        kernel(vectors("aie::vector<bfloat16, 4> v; (void)v;"), BF16, BF16)
    with pytest.raises(DesignError, match=r"f\.cc:3: a scalar in a product has the type of the vector's elements"):
        kernel(vectors("aie::store_v(out, aie::mul(aie::load_v<32>(in), 0.5f).to_vector<bfloat16>());"), BF16, BF16)


def test_exp2_is_for_one_generation():
    text = vectors(
        "aie::store_v(out, aie::exp2<bfloat16>(aie::accum<accfloat, 16>(aie::load_v<16>(in)).to_vector<float>()));"
    )
    kernel(text, BF16, BF16, device=NPU2)
    with pytest.raises(DesignError, match=r"f\.cc:3: aie::exp2 exists on AIE2P \(XDNA 2\) only"):
        kernel(text, BF16, BF16, device=NPU1)


def test_what_the_header_does_not_have_is_our_gap():
    with pytest.raises(UnsupportedError, match=r"aie::sliding_mul_ops is not in the host's aie_api header"):
        kernel(vectors("using ops = aie::sliding_mul_ops<8, 8, 1, 1, 1, bfloat16, bfloat16>;"), BF16, BF16)
    with pytest.raises(UnsupportedError, match=r"bfp16ebs8, which Peano may know, is not in the host's aie_api header"):
        kernel(vectors("bfp16ebs8 *p; (void)p;"), BF16, BF16)
    with pytest.raises(UnsupportedError, match=r"mul_elem_16_2, which Peano may know"):
        kernel(vectors("auto a = mul_elem_16_2(aie::load_v<32>(in), aie::load_v<32>(in));"), BF16, BF16)


def test_a_misspelt_name_of_the_api_is_a_mistake():
    with pytest.raises(DesignError, match=r"f\.cc:3: .*'laod_v'"):
        kernel(vectors("aie::store_v(out, aie::laod_v<32>(in));"), BF16, BF16)


def test_a_header_of_the_api_that_the_host_has_not_is_our_gap():
    with pytest.raises(UnsupportedError, match=r"aie_api/aie.hpp, but not aie_api/no_such_part.hpp"):
        kernel("#include <aie_api/no_such_part.hpp>\n" + vectors(""), BF16, BF16)


def test_an_undefined_function():
    with pytest.raises(DesignError, match="nothing defines helper"):
        kernel(scalar("out[0] = helper();", 'extern "C" int helper();'))


# ---- it does not fit its declaration


def test_there_is_no_function_of_that_name():
    with pytest.raises(DesignError, match=r"kernel 'g': its source g\.cc defines no function of that name"):
        kernel(scalar(""), name="g")


@pytest.mark.parametrize("linkage", ["", "static ", 'extern "C" static '])
def test_its_symbol_is_hidden(linkage):
    text = f"{linkage}void f(const int *in, int *out) {{ out[0] = in[0]; }}"
    if linkage.startswith("extern"):
        text = 'extern "C" { static void f(const int *in, int *out) { out[0] = in[0]; } }'
    with pytest.raises(
        DesignError, match=r'not visible to the linker.*extern "C" and not static.*f\(const int ?\*, int ?\*\)'
    ):
        kernel(text)


def test_another_number_of_arguments():
    with pytest.raises(
        DesignError, match=r"the design declares 3 arguments, the C\+\+ function takes 2: f\(const int ?\*, int ?\*\)"
    ):
        kernel(scalar(""), I32, I32, "i32")


def test_arguments_of_another_sort():
    with pytest.raises(DesignError, match=r"argument 1: the design declares i32, the C\+\+ function takes int ?\*"):
        kernel(scalar(""), I32, "i32")
    with pytest.raises(DesignError, match=r"argument 0: .*256xi32.*the C\+\+ function takes int"):
        kernel('extern "C" void f(int n) {}', I32)
    with pytest.raises(
        DesignError, match=r"argument 0: .*256xbf16.* have 2 bytes, the C\+\+ function takes const int ?\*"
    ):
        kernel(scalar(""), BF16, I32)
    with pytest.raises(DesignError, match=r"argument 0: the design declares f32.*takes int"):
        kernel('extern "C" void f(int n) {}', "f32")


def test_other_elements_of_the_same_size_are_a_warning():
    with pytest.warns(DesignWarning, match=r"argument 1: .*256xi32.*takes float ?\*: the same bits are read as float"):
        kernel('extern "C" void f(const int *in, float *out) {}')
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernel('extern "C" void f(const unsigned *in, void *out) {}')
        kernel('extern "C" void f(short n, unsigned char m) {}', "i32", "i32")


def test_an_unknown_compile_flag():
    kernel(scalar(""), flags=("-O3", "-Wall", "-std=c++23", "--target=aie2p-none-unknown-elf", "-D", "A=1", "-I", "."))
    with pytest.raises(UnsupportedError, match="the compile flag '--chess' has no meaning"):
        kernel(scalar(""), flags=("--chess",))


# ---- it misbehaves


def run(text, *types, seconds=5.0):
    kernels = compiled(text, ["f"], "AIE2P")
    dtype = bfloat16 if types else np.int32
    a, b = np.ones(N, dtype), np.zeros(N, dtype)
    kernels.call("f", a, b, seconds=seconds)
    return b


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "out[0] = in[256];",
            r"out of bounds: kernel f accesses byte 1024 of argument 0, which has 1024 bytes \(kernels\.cc:4\)",
        ),
        ("out[0] = in[-1];", r"out of bounds: kernel f accesses byte -4 of argument 0.*\(kernels\.cc:4\)"),
        ("out[256] = 1;", r"out of bounds: kernel f (accesses|writes) byte 1024 of argument 1"),
        ("out[-1] = 1;", r"out of bounds: kernel f accesses byte -4 of argument 1"),
        ("out[300] = 1;", r"out of bounds: kernel f (accesses|writes) byte 1200 of argument 1"),
        ("for (int i = 0; i <= 256; ++i) out[i] = in[i];", r"out of bounds: kernel f \w+ byte 1024 of argument [01]"),
        (
            "*(volatile int *)16 = 1;",
            r"kernel f accesses memory that is none of its arguments \(address 0x10\) \(kernels\.cc:4\)",
        ),
        ("out[0] = 100 / (in[0] - 1);", r"kernel f divides an integer by zero \(kernels\.cc:4\)"),
        ("__builtin_abort();", "kernel f aborted"),
        ("__builtin_trap();", "kernel f executes what is no instruction"),
    ],
)
def test_scalar_code(body, message):
    with pytest.raises(DesignError, match=message):
        run(scalar(body))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            "aie::store_v(out, aie::load_v<32>(in + 240));",
            r"a vector load of 64 bytes at byte 480 of argument 0, which has 512 bytes \(kernels\.cc:3, kernel f\)",
        ),
        (
            "aie::store_v(out + 4, aie::load_v<16>(in));",
            r"misaligned: a vector store of 32 bytes at byte 8 of argument 1 must be aligned to 32 bytes",
        ),
        (
            "auto it = aie::begin_vector<32>(in); for (int i = 0; i < 9; ++i) aie::store_v(out, *it++);",
            r"a vector load of 64 bytes at byte 512 of argument 0.*kernels\.cc:3",
        ),
        (
            "aie::vector<bfloat16, 16> v = aie::load_v<16>(in); v[16] = 1;",
            "out of range: vector element 16, there are 16",
        ),
        ("out[0] = aie::load_v<16>(in).get(20);", r"out of range: vector element 20, there are 16 \(kernels\.cc:3"),
        (
            "aie::store_v(out, aie::load_v<32>(in).extract<16>(2));",
            r"out of range: part of a vector 2, there are 2 \(kernels\.cc:3",
        ),
        ("aie::store_v(out, aie::transpose(aie::load_v<32>(in), 4, 4));", r"transpose: 4 x 4 are not the 32 elements"),
        ("aie::store_v(out, aie::filter_even(aie::load_v<32>(in), 3));", "chunk size 3: it must be a power of two"),
    ],
)
def test_vector_code(body, message):
    with pytest.raises(DesignError, match=message):
        run(vectors(body), BF16)


def test_an_endless_loop():
    with pytest.raises(DesignError, match=r"endless loop\? kernel f did not return within 0\.2 s \(kernels\.cc:5\)"):
        run(scalar("int i = 0;\n  while (in[i % 256]) out[i++ % 256] = i;\n"), seconds=0.2)


def test_after_a_failure_the_next_call_works():
    text = scalar("out[0] = in[in[0] > 4 ? 4096 : 3];")
    kernels = compiled(text, ["f"], "AIE2")
    a, b = np.arange(N, dtype=np.int32), np.zeros(N, np.int32)
    kernels.f(a, b)
    assert b[0] == 3
    a[0] = 5
    with pytest.raises(DesignError, match="out of bounds"):
        kernels.f(a, b)
    a[0], b[0] = 0, 0
    kernels.f(a, b)
    assert b[0] == 3


def test_an_uninitialised_register_shows():
    out = run(vectors("aie::vector<bfloat16, 32> v; v.insert(0, aie::load_v<16>(in)); aie::store_v(out, v);"), BF16)
    assert (out[:16] == 1).all()
    assert np.isnan(out[16:32].astype(np.float32)).all()


def test_views_keep_their_misalignment_and_arrays_passed_twice_are_one():
    text = vectors("aie::store_v(out, aie::add(aie::load_v<32>(in), aie::load_v<32>(out)));")
    kernels = compiled(text, ["f"], "AIE2P")
    a = np.ones(N + 32, bfloat16)
    kernels.f(a[32:], a[:N].copy())
    with pytest.raises(DesignError, match="misaligned: a vector load of 64 bytes at byte 0 of argument 0"):
        kernels.f(a[8 : N + 8], a[:N].copy())
    same = np.ones(N, bfloat16)
    kernels.f(same, same)
    assert (same[:32] == 2).all()
    assert (same[32:] == 1).all()
    with pytest.raises(UnsupportedError, match="two of its arrays overlap in part"):
        kernels.f(a[:N], a[32:])


def test_arrays_of_any_strides():
    text = scalar("for (int i = 0; i < 256; ++i) out[i] = 2 * in[i];")
    kernels = compiled(text, ["f"], "AIE2P")
    a, b = np.arange(2 * N, dtype=np.int32).reshape(N, 2), np.zeros((2, N), np.int32)
    kernels.f(a[:, 1], b.T[:, 0])
    assert (b[0] == 2 * a[:, 1]).all()
    assert not b[1].any()
