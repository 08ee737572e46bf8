"""What the compiler said, trimmed to the lines of the kernel's own source."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from npusim.errors import DesignError, NpuError, UnsupportedError
from npusim.hostcc.compiler import INCLUDE
from npusim.hostcc.source import Source

_DIAGNOSTIC = re.compile(
    r"^(?P<file>[^\s:][^:]*):(?P<line>\d+):(?:(?P<column>\d+):)? (?P<kind>fatal error|error|note|warning): (?P<text>.*)$"
)
_VIA = re.compile(
    r"^(?P<file>[^\s:][^:]*):(?P<line>\d+):(?:\d+:)?\s+(?:required from|in .*required|recursively required)"
)
_MISSING = re.compile(
    r"'(?P<a>\w+)' is not a member of 'aie'|'(?P<b>\w+)' in namespace 'aie' does not name|"
    r"no (?:member|type|template) named '(?P<c>\w+)' in namespace 'aie'"
)
_API = re.compile(
    r"sliding_m\w+|fft_\w+|sparse_\w+|block_\w+|bfp_\w+|op_\w+|make_\w+|tensor_\w+|unaligned_\w+|interleave_\w+|buffered_\w+|"
    r"vector_\w+|print\w*|unroll_\w+|c?begin_\w+|sincos\w*|(?:load|store)_floor\w*|m(?:ul|ac)_(?:anti)?sym\w*|"
    r"\w*circular\w*|\w*pattern\w*|\w*span\w*|\w+_(?:stream|lock|sem|iterator)|pipelined_loops?|filter_mode|abs_square|"
    r"accumulate|mma?c?ul_fn|mmac_fn|conj|real|imag|cos|sin|clz|contains|mutex|cfr"
)
"""Names of Xilinx/aie_api (include/aie_api/*.hpp) that our header does not have. What is in neither is a mistake."""
_UNDECLARED = re.compile(
    r"'(?P<a>\w+)' (?:was not declared in this scope|does not name a type)|(?:undeclared identifier|unknown type name) '(?P<b>\w+)'"
)
_BELOW = re.compile(
    r"u?int4|c(?:int16|int32|float|bfloat16)|bfp16\w+|(?:undef_)?v\d+\w+|(?:mul|mac|msc|negmul|addmac)_(?:elem|conv|\d)\w*|"
    r"load_lut\w*|(?:get|put)_(?:ss|ms|wss)\w*|get_scd\w*|(?:lock_)?(?:acquire|release)\w*|broadcast_\w+|extract_v\w+|l?srs\w*|l?ups\w*|"
    r"shift_bytes|shuffle"
)
"""Types and intrinsics of the core's compiler that are below the API (Xilinx/llvm-aie clang/lib/Headers)."""
_NO_HEADER = re.compile(r"'?(?P<name>(?:aie_api|adf)/[^':]+)'?(?:: No such file| file not found)")
_STATIC = re.compile(r"^static assertion failed(?: due to requirement .*?)?: ")


@dataclass
class _Message:
    """One error: where in the kernel's source, what, and the quoted lines that follow it."""

    file: str
    line: int
    text: str
    quoted: list[str] = field(default_factory=list)


def _foreign(file: str) -> bool:
    """Whether a file is not the kernel's: our header, the generated unit, the system's headers."""
    return file.startswith((str(INCLUDE), "/usr/", "/opt/")) or Path(file).name == "unit.cc"


def _errors(said: str) -> Iterator[_Message]:
    via: tuple[str, int] | None = None  # the kernel's line that led to what is being reported
    current: _Message | None = None
    for line in said.splitlines():
        through, diagnostic = _VIA.match(line), _DIAGNOSTIC.match(line)
        if through:
            via = via if _foreign(through["file"]) else (through["file"], int(through["line"]))
        elif diagnostic and "error" in diagnostic["kind"]:
            if current:
                yield current
            at = (diagnostic["file"], int(diagnostic["line"]))
            quoted = not _foreign(at[0])
            current = _Message(*(at if quoted else via or at), _STATIC.sub("", diagnostic["text"]))
            via = None
        elif diagnostic:
            # clang names the kernel's line in a note that comes after the error.
            if current and _foreign(current.file) and not _foreign(diagnostic["file"]):
                current.file, current.line = diagnostic["file"], int(diagnostic["line"])
            quoted = False
        elif current and quoted and line.startswith(" ") and len(current.quoted) < 2:
            current.quoted.append(line)
    if current:
        yield current


def explain(source: Source, said: str) -> NpuError:
    """The error to raise for what the compiler said about a source.

    UnsupportedError where the source names something of the AIE API or of Peano that our header does not have, else
    DesignError.
    """
    kernel = ", ".join(source.names)
    errors = list(_errors(said))
    missing = _named(errors, _MISSING, _API)
    if missing:
        return UnsupportedError(
            f"kernel {kernel!r}: aie::{missing} is not in the host's aie_api header; the real one has it\n{_text(errors)}"
        )
    below = _named(errors, _UNDECLARED, _BELOW)
    if below:
        return UnsupportedError(
            f"kernel {kernel!r}: {below}, which Peano may know, is not in the host's aie_api header\n{_text(errors)}"
        )
    header = next((m["name"] for e in errors if (m := _NO_HEADER.search(e.text))), None)
    if header:
        return UnsupportedError(
            f"kernel {kernel!r}: the host has aie_api/aie.hpp, but not {header} (the real toolchain may have it)\n{_text(errors)}"
        )
    undeclared = next((n for n in source.names for e in errors if _names(e, n)), None)
    if undeclared:
        return DesignError(f"kernel {undeclared!r}: its source {source.title} defines no function of that name")
    return DesignError(f"kernel {kernel!r} does not compile:\n{_text(errors) or said[-2000:]}")


def _named(errors: list[_Message], what: re.Pattern[str], known: re.Pattern[str]) -> str | None:
    """The first name that an error of one sort complains of, if it is a known one."""
    found = (match for e in errors if (match := what.search(e.text)))
    names = (next(filter(None, match.groups())) for match in found)
    return next((name for name in names if known.fullmatch(name)), None)


def _names(error: _Message, name: str) -> bool:
    """Whether the error is that the table of kernels in the generated unit cannot find a function."""
    return Path(error.file).name == "unit.cc" and re.search(rf"'(?:::)?{re.escape(name)}'", error.text) is not None


def _text(errors: list[_Message]) -> str:
    """At most three errors, as lines ``file:line: what``."""
    lines = []
    for e in errors[:3]:
        lines += [f"{Path(e.file).name}:{e.line}: {e.text}", *e.quoted]
    if len(errors) > 3:
        lines.append(f"... and {len(errors) - 3} more")
    return "\n".join(lines)
