"""The chapters as pytest parameters, the built site over HTTP, and a headless Chromium to look at it."""

from __future__ import annotations

import functools
import http.server
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from npulab import book
from tests.book.browser import Browser
from tests.book.freshness import ROOT, give_up, why_not_fresh


@pytest.fixture(scope="session")
def html() -> Path:
    """The folder of the built site."""
    if reason := why_not_fresh():
        give_up(reason)
    return ROOT / book.HTML


class _Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files and keeps its access log to itself."""

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="session")
def site(html: Path) -> Iterator[str]:
    """The site's address on the loopback interface, without the slash at its end."""
    handler = functools.partial(_Quiet, directory=str(html))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One headless Chromium for all tests."""
    programs = {"chromium": shutil.which("chromium"), "chromedriver": shutil.which("chromedriver")}
    if missing := [name for name, path in programs.items() if path is None]:
        give_up(f"{' and '.join(missing)} not installed (on Debian: apt install chromium chromium-driver)")
    started = Browser(str(programs["chromium"]), str(programs["chromedriver"]), tmp_path_factory.mktemp("chromium"))
    yield started
    started.close()
