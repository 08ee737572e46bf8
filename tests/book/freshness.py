"""Whether there is a built site to test, and whether its absence matters."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from npulab import book

ROOT = Path(__file__).resolve().parents[2]
#: Where this is set (as in CI), a missing browser or a stale site is a failure, not a reason to skip.
REQUIRED = bool(os.environ.get("NPULAB_REQUIRE_SITE"))


def give_up(reason: str) -> None:
    """Skip the site's tests with a reason, or fail where they are required."""
    if REQUIRED:
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def why_not_fresh() -> str | None:
    """Why the site in _build/html cannot be tested, or None."""
    stamp = ROOT / book.KEY_FILE
    if not stamp.is_file():
        return "no finished site in _build/html; make book builds it and runs these tests"
    sources = [ROOT / "_toc.yml", *(path for page in book.toc_pages(ROOT) for path in ROOT.glob(f"{page}.*"))]
    newer = any(path.stat().st_mtime > stamp.stat().st_mtime for path in sources)
    if newer or stamp.read_text().split()[0] != book.content_key(ROOT):
        return "the site in _build/html is older than its sources; make book builds it and runs these tests"
    return None
