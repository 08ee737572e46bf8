"""Linear algebra: matrix-matrix and matrix-vector products, the cascade variant, zeroing.

The matrix kernel wants its operands in tiles of the ``aie::mmul`` shape (r, s, t), tiles and their elements row by row:
A as [m/r, k/s, r, s], B as [k/s, n/t, s, t], C as [m/r, n/t, r, t]. It adds to C. Products are accumulated in fp32 (bf16)
or wide integers; integers that do not fit the type of C are cut off.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from npusim.devices import Device
from npusim.kernel_models.rounding import bfp16
from npusim.kernel_models.timing import GUIDE, MATMUL_EFFICIENCY, START_AND_END, pipelined, scalar
from npusim.kernels import KernelModel
from npusim.types import MemRefType

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class MatMul:
    """One variant of the matrix kernel: C (m x n) += A (m x k) B (k x n), in elements.

    ``tile`` is (r, s, t), or None for the scalar kernel, whose operands are row-major. ``b_col_major`` has B's tiles
    column by column, each transposed; ``c_col_major`` likewise C's. ``slots`` are the multiply-accumulate slots of one
    r x s x t product. ``emulated`` rounds A and B to bfp16 first.
    """

    m: int
    k: int
    n: int
    tile: tuple[int, int, int] | None
    b_col_major: bool = False
    c_col_major: bool = False
    emulated: bool = False
    slots: float = 1

    def model(self) -> KernelModel:
        """Numpy and cycle model of this variant."""
        if self.tile is None:
            return KernelModel(
                self.compute, self._scalar_cycles, source=f"from the scalar loop in {GUIDE}", confidence="L"
            )
        source = f"{GUIDE}: 80 % of the multiply-accumulate slots"
        return KernelModel(self.compute, self._cycles, self._bound, source=source, confidence="M")

    def compute(self, a: Array, b: Array, c: Array) -> None:
        """In place on flat arrays."""
        left, right, out = self._a(a.reshape(-1)), self._b(b.reshape(-1)), self._c(c.reshape(-1))
        if np.issubdtype(a.dtype, np.integer):
            out[...] = (out.astype(np.int64) + _unblocked_product(left, right, np.int64)).astype(c.dtype)
            return
        x, y = left.astype(np.float32), right.astype(np.float32)
        if self.emulated:  # blocks of eight along k: B's are those of its transpose
            x, y = bfp16(x), np.swapaxes(bfp16(np.swapaxes(y, -1, -2)), -1, -2)
        out[...] = (out.astype(np.float32) + _unblocked_product(x, y, np.float32)).astype(c.dtype)

    # Views of shape [tile row, tile column, row, column]; the scalar kernel's matrices are one tile.

    def _shape(self) -> tuple[int, int, int]:
        return self.tile or (self.m, self.k, self.n)

    def _a(self, a: Array) -> Array:
        r, s, _ = self._shape()
        return a.reshape(self.m // r, self.k // s, r, s)

    def _b(self, b: Array) -> Array:
        _, s, t = self._shape()
        if self.b_col_major:
            return b.reshape(self.n // t, self.k // s, t, s).transpose(1, 0, 3, 2)
        return b.reshape(self.k // s, self.n // t, s, t)

    def _c(self, c: Array) -> Array:
        r, _, t = self._shape()
        if self.c_col_major:
            return c.reshape(self.n // t, self.m // r, t, r).transpose(1, 0, 3, 2)
        return c.reshape(self.m // r, self.n // t, r, t)

    def _bound(self, *types: Any, device: Device) -> int:
        r, s, t = self._shape()
        return ceil((self.m // r) * (self.k // s) * (self.n // t) * self.slots)

    def _cycles(self, *types: Any, device: Device) -> int:
        return ceil(self._bound(device=device) / MATMUL_EFFICIENCY) + START_AND_END

    def _scalar_cycles(self, *types: Any, device: Device) -> int:
        return scalar(self.m * self.k * self.n)


def _unblocked_product(a: Array, b: Array, dtype: Any) -> Array:
    """[I, K, r, s] times [K, J, s, t] is [I, J, r, t]: one matrix product of the whole matrices."""
    (rows, inner, r, s), (_, cols, _, t) = a.shape, b.shape
    left = a.transpose(0, 2, 1, 3).reshape(rows * r, inner * s).astype(dtype)
    right = b.transpose(0, 2, 1, 3).reshape(inner * s, cols * t).astype(dtype)
    product: Array = left @ right
    return product.reshape(rows, r, cols, t).transpose(0, 2, 1, 3)


def mac_slots(arch: str, element: str, emulated: bool) -> float:
    """Multiply-accumulate slots of one product of the library's tile shape (``element``: i8, i16, bf16).

    XDNA 2 multiplies floating point as BFP16 8x8x8 only. Its bf16 product of 4x8x8 is eight operations of 32
    multiplications (aie_api detail/aie2p/mmul_bf16_bf16.hpp); emulated with BFP16, a 2x2 block of products takes four
    multiply-accumulates and two multiplications that transpose B (same file).
    """
    if arch == "AIE2P" and element == "bf16":
        return 1.5 if emulated else 8
    return 1


# ---- matrix-vector

_R = 16  # rows that one turn of the vectorised loop handles


def _matvec(a: Array, b: Array, c: Array, pairs: bool) -> None:
    m, k = c.size, b.size
    matrix = a.reshape(k // 2, m, 2).transpose(1, 0, 2).reshape(m, k) if pairs else a.reshape(m, k)
    product = matrix.astype(np.int64) @ b.reshape(-1).astype(np.int64)
    c[...] = (c.astype(np.int64) + product.reshape(c.shape)).astype(c.dtype)


def _matvec_vector(a: Array, b: Array, c: Array) -> None:
    """A is transposed in words of two i16: [k/2, m, 2]."""
    _matvec(a, b, c, pairs=True)


def _matvec_scalar(a: Array, b: Array, c: Array) -> None:
    _matvec(a, b, c, pairs=False)


def _matvec_slots(a: MemRefType, b: MemRefType, c: MemRefType, *, device: Device) -> int:
    # A turn: 16 rows by 8 columns, that is 256 B of A and 64 B of C loaded, 64 B stored, 8 multiply-accumulates.
    return pipelined(device, a.size, _R * 8, 320, 64, 8)


def _matvec_cycles(a: MemRefType, b: MemRefType, c: MemRefType, *, device: Device) -> int:
    turns = -(-b.size // 8)
    return _matvec_slots(a, b, c, device=device) + turns * START_AND_END


def _matvec_scalar_cycles(a: MemRefType, b: MemRefType, c: MemRefType, *, device: Device) -> int:
    return scalar(a.size)


# ---- cascade


@dataclass(frozen=True)
class CascadeMatMul:
    """A scalar matrix kernel that passes its sums down the cascade, one to a 512-bit word (row-major operands)."""

    m: int
    k: int
    n: int
    receives: bool
    sends: bool

    def model(self) -> KernelModel:
        return KernelModel(
            self.compute,
            self._cycles,
            uses_cascade=True,
            source=f"from the scalar loop in {GUIDE}",
            confidence="L",
            cascade_bytes=self._bytes,
        )

    def compute(self, a: Array, b: Array, c: Array, *, cascade: Any) -> None:
        """The bottom of a chain only sends, the top only receives and adds to C."""
        wide = np.int64 if np.issubdtype(a.dtype, np.integer) else np.float32
        sums = a.reshape(self.m, self.k).astype(wide) @ b.reshape(self.k, self.n).astype(wide)
        sums = sums.astype(c.dtype)
        if self.receives:
            word = cascade.get((self.m * self.n, 16), np.int32)[:, 0].reshape(self.m, self.n)
            sums = (sums.astype(wide) + word.astype(wide)).astype(c.dtype)
        if self.sends:
            words = np.zeros((self.m * self.n, 16), dtype=np.int32)
            words[:, 0] = (
                sums.reshape(-1).astype(np.float64).astype(np.int32)
            )  # the kernel sends integers, also of bf16
            cascade.put(words)
        else:
            c[...] = (c.astype(wide) + sums.astype(wide).reshape(c.shape)).astype(c.dtype)

    def _cycles(self, *types: Any, device: Device) -> int:
        return scalar(self.m * self.k * self.n)

    def _bytes(self, *types: Any) -> tuple[int, int]:
        words = self.m * self.n * 64
        return words * self.receives, words * self.sends


# ---- zeroing


def _zero(c: Array) -> None:
    c[...] = 0


def _zero_slots(c: MemRefType, *, device: Device) -> int:
    return pipelined(device, c.nbytes, 32, 0, 32, 1)


def _zero_cycles(c: MemRefType, *, device: Device) -> int:
    return _zero_slots(c, device=device) + START_AND_END


def _zero_scalar_cycles(c: MemRefType, *, device: Device) -> int:
    return scalar(c.size, 4)


def _zeroing() -> dict[str, KernelModel]:
    vector = KernelModel(_zero, _zero_cycles, _zero_slots, source="a 256-bit store a cycle", confidence="M")
    one_by_one = KernelModel(_zero, _zero_scalar_cycles, source="assumed: store and loop", confidence="L")
    names = ("i8", "i16", "i32", "f32", "bf16")
    return (
        {f"zero_{name}": vector for name in names}
        | {f"zero_vectorized_{name}": vector for name in names}
        | {f"zero_scalar_{name}": one_by_one for name in names}
    )


_LOOP = "issue slots of the loop in aie_kernels; its start and end once for eight columns"

MODELS: dict[str, KernelModel] = {
    **_zeroing(),
    "matvec_vectorized_i16_i32": KernelModel(
        _matvec_vector, _matvec_cycles, _matvec_slots, source=_LOOP, confidence="L"
    ),
    "matvec_scalar_i16_i32": KernelModel(
        _matvec_scalar, _matvec_scalar_cycles, source=f"from the scalar loop in {GUIDE}", confidence="L"
    ),
}
