"""Build the site: run every notebook, write ``_build/html``, and check that it is complete.

Jupyter Book does the work; this module guards against four ways in which it goes wrong quietly:

* A notebook that fails leaves a page and exit code 0. Warnings are errors here (``-W``), and after a failed build the
  next one starts afresh, since Sphinx repeats no warning about a page that it does not read again.
* The execution cache knows a notebook's cells only. What they run lies in ``utils/`` and ``designs/``, so the cache and
  Sphinx's own pickles are thrown away when anything there, the lock file or the configuration changes.
* MathJax comes from another server. It is copied into the site from a pinned package, and checked.
* A page of the table of contents that was not written is an error.

The notebook that a page offers for download is the student version, without the solutions.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import yaml

from npulab.handout import HTML, write_student

BUILD = "_build"
KEY_FILE = f"{BUILD}/.content-key"
#: What a notebook's results depend on besides its own cells, relative to the repository's root.
INPUTS = ("utils", "designs", "requirements.lock", "_config.yml")
#: Thrown away when the content key changes: executed notebooks, and the pages as Sphinx has parsed them.
CACHES = (f"{BUILD}/.jupyter_cache", f"{BUILD}/.doctrees")

#: MathJax 3.2.2 as published on npm (its `es5` folder), carried unchanged by this package on PyPI.
MATHJAX_PACKAGE = "sphinx-mathjax-offline"
MATHJAX_PREFIX = "sphinx-mathjax-offline/static/mathjax/"
MATHJAX_TARGET = f"{BUILD}/vendor/mathjax"
#: All of TeX's extensions in one file, its fonts, and what the accessibility menu loads on demand.
MATHJAX_FILES = (
    "tex-chtml-full.js",
    "output/chtml/fonts/woff-v2/",
    "a11y/",
    "sre/mathmaps/base.json",
    "sre/mathmaps/en.json",
)
MATHJAX_SHA256 = "2d9a5bcf6ff117b200f8621808af350d05c519f19aee6fc0851cff1829b66168"


class BookError(RuntimeError):
    """The site is not complete, or cannot be built."""


def input_files(root: Path) -> Iterator[Path]:
    """The files under ``root`` that the content key covers, sorted; no caches, build products or hidden files."""
    for name in INPUTS:
        top = root / name
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            parts = path.relative_to(root).parts
            generated = any(p.startswith(".") or p == "__pycache__" or p.endswith(".egg-info") for p in parts)
            if path.is_file() and not generated:
                yield path


def content_key(root: Path) -> str:
    """A digest of the files outside the notebooks that the notebooks' results depend on."""
    digest = hashlib.sha256()
    for path in input_files(root):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{path.relative_to(root).as_posix()} {content}\n".encode())
    return digest.hexdigest()


def build_key(root: Path) -> str:
    """The content key, and the Python, backend and device that the notebooks run on."""
    environment = [os.environ.get(name, "") for name in ("NPULAB_BACKEND", "NPULAB_DEVICE")]
    return " ".join([content_key(root), platform.python_version(), *environment])


def drop_stale_caches(root: Path, key: str) -> bool:
    """Throw the caches away unless the last build succeeded with this ``key``; True if they were."""
    stamp = root / KEY_FILE
    if stamp.is_file() and stamp.read_text() == key:
        return False
    for cache in CACHES:
        shutil.rmtree(root / cache, ignore_errors=True)
    stamp.unlink(missing_ok=True)
    return True


def mathjax_digest(folder: Path) -> str:
    """A digest of names and contents of all files in ``folder``."""
    digest = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{path.relative_to(folder).as_posix()} {content}\n".encode())
    return digest.hexdigest()


def vendor_mathjax(target: Path) -> None:
    """Copy the needed part of MathJax (about 2 MB) into ``target``.

    Raises:
        BookError: if the package is not installed, or holds something else than MathJax 3.2.2.
    """
    try:
        files = metadata.files(MATHJAX_PACKAGE) or []
    except metadata.PackageNotFoundError:
        raise BookError(f"the package {MATHJAX_PACKAGE}, which carries MathJax, is not installed; run `make .venv`") from None
    shutil.rmtree(target, ignore_errors=True)
    for file in files:
        name = file.as_posix().removeprefix(MATHJAX_PREFIX)
        if name != file.as_posix() and name.startswith(MATHJAX_FILES):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file.locate(), target / name)
    if not target.is_dir() or mathjax_digest(target) != MATHJAX_SHA256:
        raise BookError(f"{MATHJAX_PACKAGE} does not hold the files of MathJax 3.2.2 that this site was tested with")


def _entries(node: dict[str, Any]) -> Iterator[str]:
    if "file" in node:
        yield str(node["file"])
    for group in ("parts", "chapters", "sections"):
        for child in node.get(group, []):
            yield from _entries(child)


def toc_pages(root: Path) -> list[str]:
    """The documents of ``_toc.yml``, in order, relative to ``root`` and without suffix."""
    toc = yaml.safe_load((root / "_toc.yml").read_text())
    return [str(toc["root"]), *_entries(toc)]


def missing_pages(root: Path) -> list[str]:
    """The pages of the table of contents that the built site lacks."""
    return [page for page in toc_pages(root) if not (root / HTML / f"{page}.html").is_file()]


def chapters(root: Path) -> list[Path]:
    """The notebooks of the table of contents, in order."""
    return [path for page in toc_pages(root) if (path := root / f"{page}.ipynb").is_file()]


def offer_student_versions(root: Path) -> None:
    """Replace each notebook that the site offers for download by its student version.

    Raises:
        BookError: if there can be none of a notebook.
    """
    for notebook in chapters(root):
        download = root / HTML / "_sources" / notebook.relative_to(root)
        if download.is_file():
            page = (root / HTML / notebook.relative_to(root)).with_suffix(".html")
            try:
                write_student(notebook, download, page if page.is_file() else None)
            except ValueError as error:
                raise BookError(f"no student version of {notebook.name}: {error}") from None


def run_jupyter_book(root: Path) -> None:
    """Run ``jupyter-book build`` on ``root``, warnings being errors.

    Raises:
        BookError: if it fails.
    """
    # Without its own traceback, which buries the notebook's.
    program = "import sys; sys.tracebacklimit = 0; from jupyter_book.cli.main import main; main()"
    command = [sys.executable, "-c", program, "build", str(root), "--path-output", str(root)]
    # --all: pages that did not change link to ids in those that did (citations, terms), so every page is written anew.
    command += ["-W", "-n", "--keep-going", "--quiet", "--all"]
    # Notebooks start their kernel by name: let that be this Python's own, not a user's.
    if _relayed(command, root, os.environ | {"JUPYTER_PREFER_ENV_PATH": "1", "PYDEVD_DISABLE_FILE_VALIDATION": "1"}):
        raise BookError("jupyter-book failed; the warnings above are errors here")


def _relayed(command: list[str], folder: Path, environment: dict[str, str]) -> int:
    """Run a command that says what is wrong on its standard error, and pass that on; returns its exit code.

    Ctrl-C comes to this process only. It ends the other one, and nobody hears what that, or a notebook's kernel, says of it.
    """
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,  # only says where the site is
        stderr=subprocess.PIPE,
        process_group=0,
    ) as process:
        try:
            for line in process.stderr or ():
                print(line.decode(errors="replace"), end="", file=sys.stderr, flush=True)
        except KeyboardInterrupt:
            process.kill()
            raise
    return process.returncode


def build(root: Path) -> None:
    """Build and check the site of the repository at ``root``.

    Raises:
        BookError: if a notebook fails, anything warns, or a page is missing.
    """
    key = build_key(root)
    if drop_stale_caches(root, key):
        print("No finished build of this content to start from: running every notebook ...", flush=True)
    else:
        print("utils/, designs/ and the configuration are unchanged: running edited notebooks only ...", flush=True)
    vendor_mathjax(root / MATHJAX_TARGET)
    (root / KEY_FILE).unlink(missing_ok=True)  # written again below, if all goes well
    run_jupyter_book(root)
    if missing := missing_pages(root):
        raise BookError(f"pages of _toc.yml that were not built: {', '.join(missing)}")
    offer_student_versions(root)
    (root / KEY_FILE).write_text(key)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command line of ``npulab book``."""
    parser.add_argument("root", type=Path, nargs="?", default=Path(), help="the repository (default: here)")


def run(arguments: argparse.Namespace) -> int:
    """``npulab book``: build the site and say where it is; returns the exit code."""
    root = arguments.root.resolve()
    try:
        build(root)
    except BookError as error:
        print(f"npulab book: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nnpulab book: interrupted, so the site is not complete; `make book` builds it", file=sys.stderr)
        return 130
    print(f"{len(toc_pages(root))} pages built. The site: {root / HTML / 'index.html'} (make serve shows it)")
    return 0
