"""Headless Chromium for tests and measurements; never downloads a browser."""

from __future__ import annotations

import base64
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FLAGS = ("--headless", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--no-proxy-server",
         "--window-size=1366,768")
_PATIENCE_S = 30


def missing() -> str:
    """Why there is no browser to test with; empty when there is one."""
    if not (_program("chromium", "chromium-browser", "google-chrome") and _program("chromedriver")):
        return "chromium and chromedriver are not installed: apt-get install chromium chromium-driver"
    try:
        import selenium  # noqa: F401
    except ImportError:
        return "selenium is not installed: pip install '.[test]'"
    return ""


def _program(*names: str) -> str | None:
    return next((path for name in names if (path := shutil.which(name))), None)


class Browser:
    """A browser with one page."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, page: Path | str) -> None:
        """Opens a file or address and waits until everything stands."""
        self.driver.get(page.resolve().as_uri() if isinstance(page, Path) else page)
        self.wait("return document.documentElement.dataset.ready === 'true'")

    def run(self, script: str, *values: object) -> Any:
        """What a script returns."""
        return self.driver.execute_script(script, *values)

    def wait(self, script: str) -> None:
        """Waits until a script returns something true."""
        end = time.monotonic() + _PATIENCE_S
        while not self.run(script):
            if time.monotonic() > end:
                raise AssertionError(f"still not true: {script}; the console says {self.complaints()}")
            time.sleep(0.02)

    def text(self, selector: str) -> str:
        """The text of the first element, as it is shown."""
        return self.run("return document.querySelector(arguments[0])?.innerText ?? ''", selector)

    def all(self, selector: str) -> list[str]:
        """The texts of all elements."""
        return self.run("return [...document.querySelectorAll(arguments[0])].map((each) => each.innerText)", selector)

    def click(self, selector: str) -> None:
        """Clicks the way a mouse does, so an element that is covered fails."""
        from selenium.webdriver.common.by import By
        element = self.driver.find_element(By.CSS_SELECTOR, selector)
        self.run("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element)
        element.click()

    def press(self, *keys: str) -> None:
        """Presses keys, one after the other, where the focus is."""
        from selenium.webdriver import ActionChains
        for key in keys:
            ActionChains(self.driver).send_keys(key).perform()

    def emulate(self, **features: str) -> None:
        """Sets media features, such as ``prefers_color_scheme="dark"``."""
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [
            {"name": name.replace("_", "-"), "value": value} for name, value in features.items()]})

    def pdf(self) -> bytes:
        """The page on A4 paper."""
        made = self.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True, "paperWidth": 8.27,
                                                               "paperHeight": 11.69})
        return base64.b64decode(made["data"])

    def complaints(self) -> list[str]:
        """Everything on the console since it was last asked."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Every address the page loaded besides itself."""
        return self.run("return performance.getEntriesByType('resource').map((each) => each.name)")


@contextmanager
def open_browser() -> Iterator[Browser]:
    """A fresh browser, ended in any case."""
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
    options = Options()
    options.binary_location = _program("chromium", "chromium-browser", "google-chrome") or ""
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        for flag in (*FLAGS, f"--user-data-dir={folder}", *(["--no-sandbox"] if root else [])):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        driver = webdriver.Chrome(options=options, service=Service(_program("chromedriver") or ""))
        try:
            yield Browser(driver)
        finally:
            driver.quit()
