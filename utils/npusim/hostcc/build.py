"""A source becomes a program that serves calls of its kernels (worker.cc), cached by content.

The unit that is compiled includes the source between loops_begin.hpp and loops_end.hpp and ends with the table of its
kernels. The cache lies in ``$XDG_CACHE_HOME/npusim/hostcc`` (``~/.cache`` by default). An entry's key covers the
source's text and path, its options, the device, every header of ours, worker.cc and the compiler's version; the files
that it includes are listed with their digests in the entry and compared when it is used. Entries are written aside
and renamed, so that several processes may share the cache. What was not used for a month is removed when something
new is compiled.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from npusim.errors import DesignError, UnsupportedError
from npusim.hostcc.compiler import INCLUDE, WORKER, Arch, Compiler, need
from npusim.hostcc.messages import explain
from npusim.hostcc.signature import Function
from npusim.hostcc.source import Source, address

UNUSED = 30 * 24 * 3600.0
"""Seconds after which an unused entry goes."""


@dataclass(frozen=True)
class Program:
    """An executable that serves the kernels ``functions``, in that order; ``uses_cascade`` if any of its code does."""

    path: Path
    title: str
    functions: tuple[Function, ...]
    uses_cascade: bool

    def index(self, name: str) -> int:
        return [f.name for f in self.functions].index(name)


def cache_directory() -> Path:
    """Where compiled kernels are kept; made if need be."""
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "npusim" / "hostcc"
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError:
        root = Path(tempfile.gettempdir()) / f"npusim-hostcc-{os.getuid()}"
        root.mkdir(mode=0o700, exist_ok=True)
    return root


def build(source: Source) -> Program:
    """Compile a source, or take it from the cache. DesignError with the compiler's message if it is wrong."""
    compiler = need(f"kernel {', '.join(source.names)!r}")
    directory = cache_directory()
    key = _key(source, compiler)
    manifest = directory / f"{key}.json"
    return _cached(manifest, source) or _compile(source, compiler, manifest)


def _digest(*parts: bytes | str) -> str:
    whole = hashlib.sha256()
    for part in parts:
        raw = part.encode() if isinstance(part, str) else part
        whole.update(len(raw).to_bytes(8, "little") + raw)
    return whole.hexdigest()[:32]


def _headers() -> tuple[tuple[Path, float], ...]:
    files = [WORKER, *(p for p in INCLUDE.rglob("*") if p.is_file())]
    return tuple(sorted((p, p.stat().st_mtime) for p in files))


@lru_cache(maxsize=4)
def _digest_of(files: tuple[tuple[Path, float], ...]) -> str:
    return _digest(*(part for path, _ in files for part in (path.name, path.read_bytes())))


def _key(source: Source, compiler: Compiler) -> str:
    options = "\0".join([*compiler.options(source.arch), *source.options])
    names = "\0".join(source.names)
    here = str(source.path or "")
    return _digest(source.code(), here, names, options, compiler.path, compiler.version, _digest_of(_headers()))


def _cached(manifest: Path, source: Source) -> Program | None:
    try:
        entry: dict[str, Any] = json.loads(manifest.read_text())
        current = all(_digest(Path(p).read_bytes()) == d for p, d in entry["includes"].items())
    except (OSError, ValueError, KeyError):
        return None
    path = manifest.with_name(entry["program"])
    if not current or not path.exists():
        return None
    for used in (manifest, path):
        os.utime(used)
    return Program(path, source.title, tuple(map(Function.parse, entry["functions"])), entry["cascade"])


def _prune(directory: Path) -> None:
    """Remove what was not used for UNUSED seconds."""
    oldest = time.time() - UNUSED
    for path in directory.iterdir():
        with contextlib.suppress(OSError):
            if path.is_file() and path.stat().st_mtime < oldest:
                path.unlink()


def _compile(source: Source, compiler: Compiler, manifest: Path) -> Program:
    _prune(manifest.parent)
    with tempfile.TemporaryDirectory(dir=manifest.parent, prefix="build-") as made:
        room = Path(made)
        program = room / "program"
        includes = _compile_unit(source, compiler, room)
        _link(compiler, [room / "unit.o", _worker_object(compiler, source.arch, manifest.parent)], program)
        asked = subprocess.run([str(program)], capture_output=True, text=True, check=False)
        if asked.returncode:
            raise UnsupportedError(
                f"kernel {', '.join(source.names)!r}: the compiled program does not start: {asked.stderr}"
            )
        entry = {
            "program": f"{_digest(program.read_bytes())}.program",
            "functions": asked.stdout.splitlines(),
            "cascade": b"npusim_cascade_" in program.read_bytes(),
            "includes": {str(p): _digest(p.read_bytes()) for p in includes},
        }
        os.replace(program, manifest.with_name(str(entry["program"])))
        beside = room / "manifest"
        beside.write_text(json.dumps(entry))
        os.replace(beside, manifest)
    found = _cached(manifest, source)
    if found is None:
        raise UnsupportedError(f"the cache of compiled kernels, {manifest.parent}, does not keep what is written to it")
    return found


def _unit(source: Source, room: Path) -> str:
    """The text of the unit: the source with its loops counted, then the table of its kernels."""
    if source.path is not None:
        body = f'#include "{source.path}"'
    else:
        (room / source.title).write_text(source.code())
        body = f'#include "{source.title}"'
    code = source.code()
    rows = ", ".join(f'npusim_host::Described<{address(code, n)}>::make("{n}")' for n in source.names)
    return "\n".join(
        [
            '#include "npusim_host/signature.hpp"',
            '#include "npusim_host/loops_begin.hpp"',
            body,
            '#include "npusim_host/loops_end.hpp"',
            f"extern const npusim_host::Kernel npusim_kernels[] = {{{rows}}};",
            f"extern const unsigned npusim_kernel_count = {len(source.names)};",
            "",
        ]
    )


def _compile_unit(source: Source, compiler: Compiler, room: Path) -> list[Path]:
    """Compile the unit to unit.o; gives the kernel's own include files."""
    unit = room / "unit.cc"
    unit.write_text(_unit(source, room))
    dependencies = room / "unit.d"
    options = [*compiler.options(source.arch), *source.options, "-MMD", "-MF", str(dependencies)]
    done = compiler.run([*options, "-c", str(unit), "-o", str(room / "unit.o")])
    if done.returncode:
        raise explain(source, done.stderr)
    words = dependencies.read_text().replace("\\\n", " ").split(":", 1)[1]
    files = [Path(w.replace("\\ ", " ")) for w in re.findall(r"(?:\\ |\S)+", words)]
    return [f.resolve() for f in files if room not in f.parents and INCLUDE not in f.parents]


def _worker_object(compiler: Compiler, arch: Arch, directory: Path) -> Path:
    """worker.cc compiled, shared by all programs."""
    options = compiler.options(arch)
    path = directory / f"{_digest(compiler.path, compiler.version, *options, _digest_of(_headers()))}.worker.o"
    if not path.exists():
        made = directory / f"{path.name}.{os.getpid()}"
        done = compiler.run([*options, "-c", str(WORKER), "-o", str(made)])
        if done.returncode:
            raise UnsupportedError(
                f"the host's compiler {compiler.path} cannot compile npusim's worker.cc (g++ 11 or clang++ 14 at least are "
                f"needed):\n{done.stderr[:2000]}"
            )
        os.replace(made, path)
    return path


def _link(compiler: Compiler, objects: list[Path], program: Path) -> None:
    """Link; an undefined name is the source's: it declares a function or table that no one defines."""
    libraries = ["-ldl"] if os.uname().sysname == "Linux" else []
    done = compiler.run(["-pie", "-rdynamic", *map(str, objects), "-o", str(program), *libraries])
    if done.returncode:
        undefined = re.findall(r"undefined reference to [`']([^'`]+)'|undefined symbol: (\w+)", done.stderr)
        names = sorted({a or b for a, b in undefined})
        what = f"nothing defines {', '.join(names)}" if names else done.stderr[-2000:]
        raise DesignError(f"the kernel's program cannot be linked: {what}")


def clear() -> None:
    """Empty the cache."""
    shutil.rmtree(cache_directory(), ignore_errors=True)
