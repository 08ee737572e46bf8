"""Access patterns of the host's transfers: what a shim buffer descriptor can express, and how larger ones are cut.

A shim descriptor walks three dimensions and repeats them in a fourth, the iteration. Sizes over 1023 are factored into two
dimensions or cut into several descriptors, in the order that the compiler tries (mlir-aie's AIEXDialect.cpp,
DmaDecomposition.cpp and AIEDMATasksToNPU.cpp, August 2026), so that what it refuses is refused here and nothing else.

Patterns are (size, stride) in elements, outermost first, as in the host sequence; inside, innermost first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from npusim.graph import Dims

WORD = 4
"""Bytes of a stream word, the granularity of every DMA address."""
SIZE_MAX, STRIDE_MAX, ITERATION_MAX, ITERATION_STRIDE_MAX = 1023, 2**20, 64, 2**20 - 1
_ITERATE = f"use several transfers of up to {ITERATION_MAX} passes, or repeat on a MemTile: forward(repeat_count=...)"


@dataclass(frozen=True)
class Pattern:
    """A shim access pattern, innermost dimension first; four sizes and strides, ``offset`` in elements."""

    sizes: tuple[int, int, int, int]
    strides: tuple[int, int, int, int]
    offset: int = 0

    @classmethod
    def of(cls, sizes: tuple[int, ...], strides: tuple[int, ...], offset: int = 0) -> Pattern:
        """From the host sequence's order (outermost first, up to four dimensions). A stride of size 1 is never taken, so
        it becomes 0, as the compiler's canonicalisation makes it."""
        fill = 4 - len(sizes)
        inner = (*reversed(sizes), *[1] * fill)
        steps = (*reversed(strides), *[0] * fill)
        steps = (steps[0], *(0 if n == 1 else s for n, s in zip(inner[1:], steps[1:], strict=True)))
        return cls(inner, steps, offset)  # type: ignore[arg-type]

    @property
    def dims(self) -> Dims:
        """(size, stride), outermost first."""
        return tuple(zip(reversed(self.sizes), reversed(self.strides), strict=True))

    @property
    def per_iteration(self) -> int:
        """Elements that the three inner dimensions cover."""
        return math.prod(self.sizes[:3])

    @property
    def last(self) -> int:
        """The largest element index that is touched."""
        return self.offset + sum((n - 1) * s for n, s in zip(self.sizes, self.strides, strict=True))

    @property
    def contiguous(self) -> bool:
        """Whether the three inner dimensions walk through memory without a gap: then sizes may be as large as they like."""
        (n0, n1, n2, _), (s0, s1, s2, _) = self.sizes, self.strides
        return s0 == 1 and (n1 == 1 or s1 == n0) and (n2 == 1 or s2 == n0 * n1)


@dataclass(frozen=True)
class Refusal:
    """Why a pattern cannot be a descriptor: the problem, the compiler's phrases, what to do, and whether it is a limit's
    fault."""

    problem: str
    phrase: str | tuple[str, ...]
    hint: str
    capacity: bool = False


def encode(pattern: Pattern, length: int, width: int) -> list[Pattern] | Refusal:
    """The descriptors that a transfer becomes: ``length`` elements of ``width`` bytes an iteration.

    A chain of several is returned in order; a Refusal says why there is none.
    """
    refusal = _alignment(pattern, length, width)
    if refusal:
        return refusal
    if pattern.contiguous:
        return _finish([pattern], length, width, linear=True)
    refusal = _verify(pattern, width)
    if refusal is None:
        return _finish([pattern], length, width)
    pieces = _decompose(pattern, width)
    if not pieces or len(pieces) > 16:
        return refusal
    if len(pieces) > 1:
        return _finish(pieces, None, width)
    finished = _finish(pieces, length, width)
    if isinstance(finished, Refusal):
        return replace(finished, problem=f"{refusal.problem}, and {finished.problem}", capacity=refusal.capacity)
    return finished


def _alignment(pattern: Pattern, length: int, width: int) -> Refusal | None:
    if pattern.offset * width % WORD:
        problem = f"it starts {pattern.offset * width} bytes into the array, which is no multiple of 4 bytes"
        return Refusal(
            problem,
            ("Offset must be aligned to 4 byte boundary.", "Offset must be 4-byte-aligned."),
            f"let it start at a multiple of {WORD // width} elements.",
        )
    if length * width < WORD:
        problem = f"it moves {length * width} bytes, less than the 4 bytes of a word"
        return Refusal(
            problem,
            f"Transfer size of {length * width} bytes falls below minimum hardware transfer unit of 4 bytes.",
            f"move at least {WORD // width} elements.",
        )
    return None


def _verify(pattern: Pattern, width: int, *, sizes_matter: bool = True) -> Refusal | None:
    """The compiler's check of one descriptor; sizes do not matter for a contiguous one."""
    return _verify_steps(pattern, width) or _verify_ranges(pattern, width, sizes_matter)


def _verify_steps(pattern: Pattern, width: int) -> Refusal | None:
    nbytes = pattern.sizes[0] * width
    if nbytes % WORD:
        return Refusal(
            f"its inner size is {pattern.sizes[0]} elements = {nbytes} bytes, which is no multiple of 4 bytes",
            f"Transfer sizes must be multiples of 4 bytes. {pattern.sizes[0]} elements at {width} bytes each equal "
            f"{nbytes} "
            "bytes, which is not divisible by 4.",
            f"the DMA moves 4-byte words: make the inner size a multiple of {WORD // width} elements.",
        )
    for i, (size, stride) in enumerate(zip(pattern.sizes, pattern.strides, strict=True)):
        if size > 1 and stride < (1 if i < 3 else 0):
            return Refusal(
                f"its stride {stride} of size {size} repeats elements; only the outermost dimension of four can do "
                "that",
                (f"Stride {i} must be a positive integer.", f"Stride {i} must be a non-negative integer."),
                "give four sizes with the repetition first, or repeat on a MemTile: forward(repeat_count=...).",
            )
    for i, stride in enumerate(pattern.strides):
        if stride * width % WORD and not (i == 0 and stride == 1):
            return Refusal(
                f"its stride {stride} is {stride * width} bytes, which is no multiple of 4 bytes",
                f"Stride {i} is {stride} elements * {width} bytes = {stride * width} bytes, which is not divisible "
                "by 4.",
                _step_hint(stride, width),
            )
    return None


def _step_hint(stride: int, width: int) -> str:
    if stride * width < WORD:
        return (
            f"the DMA moves 4-byte words and cannot pick single elements of {width} bytes: keep {WORD // width} "
            "neighbours together as the "
            "inner dimension, and rearrange them in the kernel."
        )
    return (
        f"the DMA steps in 4-byte words: let every stride be a multiple of {WORD // width} elements, with the rows of "
        "the host array padded "
        "to such a length."
    )


def _verify_ranges(pattern: Pattern, width: int, sizes_matter: bool) -> Refusal | None:
    words = (pattern.sizes[0] * width // WORD, pattern.sizes[1])
    for i, size in enumerate(words):
        if sizes_matter and size > SIZE_MAX:
            words_of = f" (of {width} bytes, {size} words)" if i == 0 and width != WORD else ""
            return Refusal(
                f"its size {pattern.sizes[i]}{words_of} is over {SIZE_MAX}, where the hardware's field ends",
                (f"Size {i} exceeds the [0:{SIZE_MAX}] range.", f"D{i} Size exceeds the [0:{SIZE_MAX}] range."),
                f"cut it into several transfers with sizes of up to {SIZE_MAX}, or write the size as two, such as (n "
                "// 512, 512).",
                capacity=True,
            )
    if pattern.sizes[3] - 1 > ITERATION_MAX:
        return Refusal(
            f"its outermost size (the iteration) is {pattern.sizes[3]}; a descriptor iterates {ITERATION_MAX} times "
            "at most",
            f"Size 3 exceeds the [1:{ITERATION_MAX}] range.",
            f"{_ITERATE}.",
            capacity=True,
        )
    for i, (size, stride) in enumerate(zip(pattern.sizes, pattern.strides, strict=True)):
        if (size > 1 or i == 0) and _step(stride, width) > STRIDE_MAX:
            return _stride_refusal(i, stride, width)
    return None


def _step(stride: int, width: int) -> int:
    """A stride as the hardware's field holds it: words minus one."""
    return max(stride * width // WORD - 1, 0)


def _stride_refusal(i: int, stride: int, width: int) -> Refusal:
    return Refusal(
        f"its stride {stride} is {stride * width // WORD} words; a descriptor steps {STRIDE_MAX} words at most",
        f"Stride {i} exceeds the [1:{STRIDE_MAX}] range.",
        "use several transfers, each with an offset of its own.",
        capacity=True,
    )


def _finish(pieces: list[Pattern], length: int | None, width: int, *, linear: bool = False) -> list[Pattern] | Refusal:
    """The last checks, on what would be written into the descriptor's registers."""
    for piece in pieces:
        refusal = _verify(piece, width, sizes_matter=not linear) or _registers(piece, width, linear)
        if refusal:
            return refusal
        if length is not None and piece.per_iteration != length:
            return _mismatch(piece, length, width)
    return pieces


def _registers(pattern: Pattern, width: int, linear: bool) -> Refusal | None:
    for i, (size, stride) in enumerate(zip(pattern.sizes[:3], pattern.strides[:3], strict=True)):
        if not linear and (size > 1 or i == 0) and _step(stride, width) >= STRIDE_MAX:
            return replace(_stride_refusal(i, stride, width), phrase=f"D{i} Stride exceeds the [0:1M-1] range.")
    size, stride = pattern.sizes[3], pattern.strides[3]
    if size > ITERATION_MAX and stride > 0:
        return Refusal(
            f"its outermost size (the iteration) is {size}; a descriptor iterates {ITERATION_MAX} times at most",
            f"Iteration Size exceeds the [0:{ITERATION_MAX - 1}] range.",
            f"{_ITERATE}.",
            capacity=True,
        )
    if size > 1 and _step(stride, width) > ITERATION_STRIDE_MAX:
        return replace(
            _stride_refusal(3, stride, width), phrase=f"Iteration Stride exceeds the [0:{ITERATION_STRIDE_MAX}] range."
        )
    return None


def _mismatch(piece: Pattern, length: int, width: int) -> Refusal:
    walked = f"sizes {[n for n, _ in piece.dims]}"
    return Refusal(
        f"cut to {walked}, the three inner dimensions move {piece.per_iteration * width} bytes instead of "
        f"{length * width} "
        "(the outermost of four is the iteration and does not count)",
        "Buffer descriptor length does not match length of transfer expressed by lowest three dimensions of data "
        "layout "
        "transformation strides/wraps.",
        "use several transfers whose three inner sizes are small enough as they are.",
    )


def _decompose(pattern: Pattern, width: int) -> list[Pattern] | None:
    """The same walk as one or several descriptors: factor a dimension into two, else cut the outermost one."""
    if _verify(pattern, width) is None:
        return [pattern]
    if all(size == 1 for size in pattern.sizes):
        return None
    if pattern.sizes[3] == 1:
        for level in range(3):
            for inner in _divisors(pattern.sizes[level]):
                if level == 0 and inner * width % WORD:
                    continue
                found = _decompose(_factor(pattern, level, inner), width)
                if found:
                    return found
    return _slice(pattern, width)


def _divisors(n: int) -> list[int]:
    """Proper divisors above 1, the largest first."""
    return [d for d in range(n // 2, 1, -1) if n % d == 0]


def _factor(pattern: Pattern, level: int, inner: int) -> Pattern:
    sizes, strides = list(pattern.sizes[:3]), list(pattern.strides[:3])
    sizes.insert(level + 1, sizes[level] // inner)
    strides.insert(level + 1, strides[level] * inner)
    sizes[level] = inner
    return Pattern(tuple(sizes), tuple(strides), pattern.offset)  # type: ignore[arg-type]


def _slice(pattern: Pattern, width: int) -> list[Pattern] | None:
    level = max(i for i, size in enumerate(pattern.sizes) if size > 1)
    chunk = {0: SIZE_MAX * WORD // width, 3: ITERATION_MAX}.get(level, SIZE_MAX)
    size = pattern.sizes[level]
    if level == 0 and width < WORD:
        chunk -= chunk % (WORD // width)
    if chunk <= 0 or chunk >= size:
        return None
    pieces: list[Pattern] = []
    for start in range(0, size, chunk):
        sizes = list(pattern.sizes)
        sizes[level] = min(chunk, size - start)
        piece = Pattern(tuple(sizes), pattern.strides, pattern.offset + start * pattern.strides[level])  # type: ignore[arg-type]
        found = _decompose(piece, width)
        if found is None:
            return None
        pieces += found
    return pieces


def as_walked(dims: Dims, width: int) -> Dims:
    """What the shim really walks: with elements below 4 bytes and an inner stride over 1, whole words are taken.

    The compiler accepts such a pattern silently; each step then moves the word at the stride's place, so a bf16 pattern
    with inner stride 2 reads contiguously.
    """
    if not dims or width >= WORD or dims[-1][1] == 1 or dims[-1][0] == 1:
        return dims
    per_word = WORD // width
    size, stride = dims[-1]
    return (*dims[:-1], (size // per_word, stride), (per_word, 1))
