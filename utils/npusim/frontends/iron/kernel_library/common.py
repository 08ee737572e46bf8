"""How a factory makes its ExternalFunction: source file, symbol, flags, and the current device's architecture."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from npusim.errors import DesignError
from npusim.frontends.iron import current
from npusim.frontends.iron.kernel import ExternalFunction

Arch = Literal["aie2", "aie2p"]

# Sources that mlir-aie has for the second generation; for all others it takes those of the first, or generic ones.
_AIE2P = {"mm.cc", "softmax.cc", "gelu.cc", "silu.cc", "swiglu.cc", "bf16_exp.cc", "zero.cc"}
_GENERIC = {"passThrough.cc"}

_made: dict[tuple[Any, ...], ExternalFunction] = {}


def forget() -> None:
    """Start anew, as each design of ``@iron.jit`` does: variants of other designs cannot collide with its own."""
    _made.clear()
    ExternalFunction._instances.clear()


def arch() -> Arch:
    """The current device's architecture; the first generation's if no device is set, as in the real package."""
    device = current.get_current_device(probe_runtime=False)
    return "aie2p" if device is not None and str(device.arch).lower().endswith("aie2p") else "aie2"


def source_of(filename: str) -> str:
    """Where a kernel's C++ lies below mlir-aie's header directory, for the current device."""
    folder = "generic" if filename in _GENERIC else "aie2p" if filename in _AIE2P and arch() == "aie2p" else "aie2"
    return f"aie_kernels/{folder}/{filename}"


def array(size: int, dtype: Any) -> Any:
    """IRON's spelling of a 1-D array type."""
    return np.ndarray[(size,), np.dtype[dtype]]  # type: ignore[misc]


def extern(
    name: str,
    filename: str,
    arg_types: Sequence[Any],
    flags: Sequence[str] = (),
    *,
    use_chess: bool = False,
    shared_object: str | None = None,
) -> ExternalFunction:
    """The external function of a library kernel; the same object for the same arguments.

    Variants are told apart by eight hexadecimal digits of what they are, in front of the symbol and in the object's name.
    The digits differ from the real package's, which hashes where it is installed. Kernels of one source that a design may
    use together share an object file (``shared_object``) and keep their plain symbols.
    """
    source = source_of(filename)
    key = (name, source, tuple(map(str, arg_types)), tuple(flags), use_chess)
    if key not in _made:
        digest = None if shared_object else hashlib.sha256(repr(key).encode()).hexdigest()[:8]
        _made[key] = ExternalFunction(
            name,
            object_file_name=shared_object or f"{name}_{digest}.o",
            source_file=source,
            arg_types=list(arg_types),
            include_dirs=[],
            compile_flags=list(flags),
            symbol_prefix=None if use_chess else digest,
            use_chess=use_chess,
        )
    return _made[key]


def bit_width(dtype: Any, factory: str) -> int:
    """8, 16 or 32; DesignError for a type that the copy and scale kernels do not know."""
    widths = {np.dtype(np.uint8): 8, np.dtype(np.int16): 16, np.dtype(np.int32): 32}
    width = widths.get(np.dtype(dtype))
    if width is None:
        raise DesignError(f"{factory}: unsupported dtype {dtype}. Use np.uint8, np.int16, or np.int32.")
    return width


def require_tile_size(factory: str, tile_size: int, expected: int = 1024) -> None:
    """DesignError unless the tile has the size that the C++ loop is written for."""
    if tile_size != expected:
        raise DesignError(
            f"{factory}() tile_size must be {expected} to match the hard-coded C++ loop bound, got {tile_size}."
        )


def dma_aligned(dtype: Any) -> int:
    """The fewest elements that a DMA can move: a 4-byte word."""
    return max(1, 4 // int(np.dtype(dtype).itemsize))
