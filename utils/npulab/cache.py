"""Compiled designs, each in a folder that is named by what went into it, and that is complete or not there."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from npulab import hardware

TOOLS = ("mlir_aie", "llvm-aie")
_PARTIAL = ".partial-"


def cache_home() -> Path:
    """Where compiled designs are kept: ``NPULAB_CACHE``, else a folder in the user's cache."""
    return Path(os.environ.get("NPULAB_CACHE") or Path.home() / ".cache" / "npulab")


def clear_cache() -> int:
    """Remove every compiled design, and what interrupted compilations left; returns how many designs there were."""
    folders = [p for p in cache_home().glob("*") if p.is_dir()] if cache_home().exists() else []
    for folder in folders:
        shutil.rmtree(folder)
    return sum(not folder.name.startswith(_PARTIAL) for folder in folders)


def content_key(mlir: str, sources: Sequence[bytes] | None, tools: Sequence[str] = TOOLS) -> str | None:
    """The name of what is made from a module, sources, and the installed versions of ``tools`` (names of distributions); None
    if the sources are not known, so that nothing may be reused."""
    if sources is None:
        return None
    digest = hashlib.sha256(mlir.encode())
    for name in tools:
        digest.update(f"{name}={hardware.version(name)}".encode())
    for source in sources:
        digest.update(hashlib.sha256(source).digest())
    return digest.hexdigest()[:24]


@contextmanager
def building(folder: Path) -> Iterator[Path]:
    """A place to make what shall lie in ``folder``, which gets that name when the block ends, and is removed after an error.

    A process that is killed leaves only a place of another name, which is never looked into.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    place = Path(tempfile.mkdtemp(prefix=_PARTIAL, dir=folder.parent))
    try:
        yield place
        try:
            place.rename(folder)
        except OSError:
            if not folder.exists():  # else another process has made the same meanwhile
                raise
    finally:
        shutil.rmtree(place, ignore_errors=True)
