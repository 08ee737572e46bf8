"""What is compiled: a kernel's source, its options, and the device."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from npusim.errors import DesignError, UnsupportedError
from npusim.graph import KernelDecl
from npusim.hostcc.compiler import Arch

_KEPT = ("-D", "-U", "-I", "-isystem", "-include")
_APART = ("-D", "-U", "-I", "-isystem", "-include")  # their value may be the next word
_DROPPED = (
    "-O",
    "-W",
    "-w",
    "-g",
    "-f",
    "-std=",
    "-m",
    "--target=",
)  # code generation and messages of the core's compiler


@dataclass(frozen=True)
class Source:
    """C++ of one or more kernels. Either ``path`` or ``text`` is given; ``title`` is what messages call it."""

    names: tuple[str, ...]
    title: str
    arch: Arch
    path: Path | None = None
    text: str | None = None
    options: tuple[str, ...] = ()

    @classmethod
    def of(cls, decl: KernelDecl, arch: Arch) -> Source:
        """The source of a declared kernel; DesignError if its file does not exist."""
        options = (*kept(decl.compile_flags, decl.name), *(f"-I{d}" for d in decl.include_dirs))
        name = decl.source_name or decl.name
        if decl.source_file is None:
            if decl.source_string is None:
                raise UnsupportedError(f"kernel {decl.name!r} comes without C++ source")
            return cls((name,), f"{name}.cc", arch, text=decl.source_string, options=options)
        path = Path(decl.source_file)
        if not path.is_file():
            raise DesignError(f"kernel {decl.name!r}: there is no source file {path}")
        return cls((name,), path.name, arch, path=path.resolve(), options=options)

    def code(self) -> str:
        """The C++ text."""
        if self.text is not None:
            return self.text
        assert self.path is not None
        return self.path.read_text()


_ASIDE = re.compile(r'//[^\n]*|/\*.*?\*/|^[ \t]*#(?:[^\n\\]|\\.)*|extern\s+"C"', re.DOTALL | re.MULTILINE)
"""Comments, directives and linkage: what may stand before a function and is not of its type."""


def address(code: str, name: str) -> str:
    """C++ for a kernel's address. Where a template has the kernel's name too, the function is told apart by its type."""
    plain = _ASIDE.sub(" ", code)
    heads = [
        (before, match.end()) for match in re.finditer(rf"\b{name}\s*\(", plain) if (before := _before(plain, match))
    ]
    functions = [(before, end) for before, end in heads if "template" not in before]
    if not functions or len(functions) == len(heads):
        return f"&::{name}"
    before, end = functions[0]
    parameters = plain[end : plain.index(")", end)]
    return f"static_cast<{before} (*)({parameters})>(&::{name})"


def _before(code: str, name: re.Match[str]) -> str | None:
    """What a declaration has in front of the function's name; None where the name is used in an expression."""
    words = " ".join(re.split(r"[;{}]", code[: name.start()])[-1].split())
    return words if words and not re.search(r"[=(,]|\breturn\b|::$", re.sub(r"template\s*<[^>]*>", "", words)) else None


def kept(flags: tuple[str, ...], kernel: str) -> tuple[str, ...]:
    """The options that matter on the host: macros and include paths. UnsupportedError for one we do not know."""
    out: list[str] = []
    words = iter(flags)
    for word in words:
        if word in _APART:
            out += [word, next(words, "")]
        elif word.startswith(_KEPT):
            out.append(word)
        elif not word.startswith(_DROPPED):
            raise UnsupportedError(
                f"kernel {kernel!r}: the compile flag {word!r} has no meaning for the host's compiler that we know; macros "
                "(-D, -U) and include paths (-I) are passed on, options of code generation and warnings are left out"
            )
    return tuple(out)
