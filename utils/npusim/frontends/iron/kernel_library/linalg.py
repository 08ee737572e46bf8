"""Linear algebra: ``mm``, ``mv``, ``cascade_mm``, each with the kernel that zeroes its output as ``.zero``."""

from __future__ import annotations

import numpy as np
from ml_dtypes import bfloat16

from npusim import kernels
from npusim.errors import DesignError
from npusim.frontends.iron.kernel import ExternalFunction, Kernel
from npusim.frontends.iron.kernel_library.common import arch, array, extern
from npusim.kernel_models.linalg import CascadeMatMul, MatMul, mac_slots
from npusim.kernels import KernelModel

_NAMES: dict[type, str] = {np.int8: "i8", np.int16: "i16", np.int32: "i32", np.float32: "f32", bfloat16: "bf16"}

_MM = [
    (np.int8, np.int8),
    (np.int8, np.int16),
    (np.int8, np.int32),
    (np.int16, np.int16),
    (np.int16, np.int32),
    (bfloat16, bfloat16),
    (bfloat16, np.float32),
]
_CASCADE = [combination for combination in _MM if combination[0] is not np.int8]

# The (r, s, t) of one aie::mmul, by architecture and input type (mlir-aie aie_kernels/*/mm.cc).
_TILES: dict[str, dict[type, tuple[int, int, int]]] = {
    "aie2": {np.int8: (4, 8, 8), np.int16: (4, 4, 4), bfloat16: (4, 8, 4)},
    "aie2p": {np.int8: (8, 8, 8), np.int16: (4, 4, 8), bfloat16: (4, 8, 8)},
}
_EMULATED_TILE = (8, 8, 8)


def mm(
    dim_m: int = 64,
    dim_k: int = 64,
    dim_n: int = 64,
    input_dtype: type = np.int16,
    output_dtype: type = np.int16,
    vectorized: bool = True,
    b_col_maj: bool = False,
    c_col_maj: bool = False,
    use_chess: bool = False,
    emulate_bf16_mmul_with_bfp16: bool = False,
) -> ExternalFunction:
    """C += A B on flat arrays: (A of m*k, B of k*n, C of m*n elements).

    The vectorised kernel wants its operands in tiles of ``.mac_dims`` = (r, s, t), see :mod:`npusim.kernel_models.linalg`.
    On XDNA 2, ``emulate_bf16_mmul_with_bfp16`` multiplies bf16 as BFP16.
    """
    suffix = _suffix("mm", _MM, input_dtype, output_dtype)
    emulated = emulate_bf16_mmul_with_bfp16 and arch() == "aie2p" and input_dtype is bfloat16
    tile = _EMULATED_TILE if emulated else _TILES[arch()][input_dtype]
    flags = [*_sizes(dim_m, dim_k, dim_n), f"-D{suffix}_ONLY"]
    flags += ["-DB_COL_MAJ"] * b_col_maj + ["-DC_COL_MAJ"] * c_col_maj
    flags += ["-DAIE_API_EMULATE_BFLOAT16_MMUL_WITH_BFP16"] * emulated
    types = [
        array(dim_m * dim_k, input_dtype),
        array(dim_k * dim_n, input_dtype),
        array(dim_m * dim_n, output_dtype),
    ]
    name = f"{'matmul' if vectorized else 'matmul_scalar'}_{suffix}"
    function = extern(name, "mm.cc", types, flags, use_chess=use_chess)
    function.mac_dims = tile
    function.zero = Kernel(
        f"{'zero' if vectorized else 'zero_scalar'}_{_NAMES[output_dtype]}", function.object_file_name, [types[2]]
    )
    slots = mac_slots("AIE2P" if arch() == "aie2p" else "AIE2", _NAMES[input_dtype], emulated)
    shape = tile if vectorized else None
    _check_tiles(name, (dim_m, dim_k, dim_n), shape)
    _register(function, MatMul(dim_m, dim_k, dim_n, shape, b_col_maj, c_col_maj, emulated, slots).model())
    return function


def mv(
    dim_m: int = 32,
    dim_k: int = 32,
    input_dtype: type = np.int16,
    output_dtype: type = np.int32,
    vectorized: bool = True,
    use_chess: bool = False,
) -> ExternalFunction:
    """c += A b: (A of m*k, b of k, c of m elements). Vectorised, A is transposed in words of two elements."""
    if (input_dtype, output_dtype) != (np.int16, np.int32):
        raise DesignError(f"mv(): only (np.int16, np.int32) is supported, got ({input_dtype}, {output_dtype})")
    types = [array(dim_m * dim_k, np.int16), array(dim_k, np.int16), array(dim_m, np.int32)]
    variant = "vectorized" if vectorized else "scalar"
    flags = [f"-DDIM_M={dim_m}", f"-DDIM_K={dim_k}"]
    function = extern(f"matvec_{variant}_i16_i32", "mv.cc", types, flags, use_chess=use_chess)
    function.zero = Kernel(f"zero_{variant}_i32", function.object_file_name, [types[2]])
    return function


def cascade_mm(
    dim_m: int = 64,
    dim_k: int = 64,
    dim_n: int = 64,
    input_dtype: type = np.int16,
    output_dtype: type = np.int16,
    use_chess: bool = False,
) -> ExternalFunction:
    """C += A B summed over a chain of cores by the cascade, row-major operands.

    The function itself (``.get_only``) is the top of the chain; ``.put_only`` is its bottom, ``.put_get`` the middle.
    """
    suffix = _suffix("cascade_mm", _CASCADE, input_dtype, output_dtype)
    types = [
        array(dim_m * dim_k, input_dtype),
        array(dim_k * dim_n, input_dtype),
        array(dim_m * dim_n, output_dtype),
    ]
    flags = _sizes(dim_m, dim_k, dim_n)
    function = extern(f"matmul_scalar_cascade_get_only_{suffix}", "cascade_mm.cc", types, flags, use_chess=use_chess)
    function.mac_dims = (1, 1, 1)
    function.get_only = function
    function.put_only = Kernel(f"matmul_scalar_cascade_put_only_{suffix}", function.object_file_name, types)
    function.put_get = Kernel(f"matmul_scalar_cascade_put_get_{suffix}", function.object_file_name, types)
    function.zero = Kernel(f"zero_scalar_{_NAMES[output_dtype]}", function.object_file_name, [types[2]])
    for kernel, receives, sends in (
        (function, True, False),
        (function.put_only, False, True),
        (function.put_get, True, True),
    ):
        _register(kernel, CascadeMatMul(dim_m, dim_k, dim_n, receives, sends).model())
    return function


def _suffix(factory: str, known: list[tuple[type, type]], input_dtype: type, output_dtype: type) -> str:
    if (input_dtype, output_dtype) not in known:
        raise DesignError(
            f"{factory}(): unsupported (input_dtype, output_dtype) = {(input_dtype, output_dtype)}. Supported: {known}"
        )
    return f"{_NAMES[input_dtype]}_{_NAMES[output_dtype]}"


def _sizes(m: int, k: int, n: int) -> list[str]:
    return [f"-DDIM_M={m}", f"-DDIM_K={k}", f"-DDIM_N={n}"]


def _check_tiles(name: str, sizes: tuple[int, int, int], tile: tuple[int, int, int] | None) -> None:
    """The C++ refuses to compile where sizes are no multiples; say so here. It handles two tiles of m and n at once."""
    if tile is None:
        return
    for what, size, step in zip("mkn", sizes, (2 * tile[0], tile[1], 2 * tile[2]), strict=True):
        if size % step:
            raise DesignError(f"{name}: dim_{what} is {size}, which is no multiple of {step} (mac_dims {tile})")


def _register(kernel: Kernel, model: KernelModel) -> None:
    """Tell npusim.kernels what this variant computes; its symbol says nothing of sizes and layouts."""
    kernels.add(kernel._name, model)
