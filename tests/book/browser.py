"""A headless Chromium, driven through Selenium: load a page at a size and colour scheme, and report what went wrong."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--force-color-profile=srgb",
    # Whatever a page might ask of another host fails at once, and shows.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
#: Settled means loaded, formulas typeset, fonts there, and colours at the end of their transition.
SETTLED = """
const done = arguments[arguments.length - 1];
const math = () => window.MathJax && MathJax.startup && MathJax.startup.promise;
Promise.resolve(math()).then(() => document.fonts.ready).then(() => {
    for (const animation of document.getAnimations()) if (animation instanceof CSSTransition) animation.finish();
}).then(() => done(true), error => done(String(error)));
"""


@dataclass
class Traffic:
    """What a page asked for and what the console said."""

    requested: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    console: list[str] = field(default_factory=list)

    def external(self, site: str) -> list[str]:
        """Requests that left ``site``; data that a page carries in itself leaves nothing."""
        inside = urlsplit(site).netloc
        urls = [urlsplit(url) for url in self.requested]
        return [url.geturl() for url in urls if url.scheme not in ("data", "blob") and url.netloc != inside]


class Browser:
    """One browser window; every load starts with a new size and colour scheme, and clean logs."""

    def __init__(self, chromium: str, driver: str, profile: Path) -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = chromium
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(executable_path=driver))
        self.driver.set_script_timeout(60)

    def close(self) -> None:
        """End the browser."""
        self.driver.quit()

    def load(self, url: str, width: int = 1280, height: int = 900, scheme: str = "light") -> Traffic:
        """Open ``url``, wait until it has settled, and return the traffic."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        self.traffic()  # whatever an earlier page left
        self.driver.get(url)
        settled = self.driver.execute_async_script(SETTLED)
        assert settled is True, f"{url} did not settle: {settled}"
        return self.traffic()

    def run(self, script: str, *arguments: Any) -> Any:
        """The value of a JavaScript function body."""
        return self.driver.execute_script(script, *arguments)

    def traffic(self) -> Traffic:
        """What was logged since the last call."""
        traffic = Traffic()
        for entry in self.driver.get_log("performance"):
            _record(traffic, json.loads(entry["message"])["message"])
        traffic.console = [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] != "INFO"]
        return traffic


def _record(traffic: Traffic, message: dict[str, Any]) -> None:
    """Sort one event of the DevTools protocol into the traffic."""
    parameters = message["params"]
    if message["method"] == "Network.requestWillBeSent":
        traffic.requested.append(parameters["request"]["url"])
    elif message["method"] == "Network.responseReceived" and parameters["response"]["status"] >= 400:
        traffic.failed.append(f"{parameters['response']['status']} {parameters['response']['url']}")
    elif message["method"] == "Network.loadingFailed" and not parameters.get("canceled"):
        traffic.failed.append(f"{parameters['errorText']} (request {parameters['requestId']})")
