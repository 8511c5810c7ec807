"""Finds in the browser what makes a page hard to read: contrast, names, keyboard, console, width, length of lines."""

from __future__ import annotations

import base64
import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FONTS = {"CheckSans": "DejaVuSans.ttf", "CheckMono": "DejaVuSansMono.ttf"}
"""Fonts that matplotlib brings."""
SCRIPT = (Path(__file__).parent / "page_checks.js").read_text("utf-8")
TAB = "\ue004"
NARROW, WIDE = 400, 1400
LETTERS = 100
"""The most characters of a line of prose."""


def page_faults(browser: Any, page: Path | str) -> list[str]:
    """The faults of a page; none is an empty list.

    Args:
      browser: an open ``Browser``.
      page: a file, or an address.
    """
    browser.complaints()
    found: list[str] = []
    for theme in ("light", "dark"):
        browser.emulate(prefers_color_scheme=theme)
        _size(browser, WIDE)
        browser.driver.get(page.resolve().as_uri() if isinstance(page, Path) else page)
        browser.wait("return document.readyState === 'complete'")
        browser.run(SCRIPT)
        browser.run(f"pageChecks.fonts({_fonts()})")
        browser.wait("return [...document.fonts].every((each) => each.status === 'loaded')")
        found += [f"{theme}: {fault}" for fault in browser.run("return pageChecks.contrast()")]
    found += browser.run("return pageChecks.names()") + browser.run(f"return pageChecks.lines({LETTERS})")
    found += _keyboard(browser)
    _size(browser, NARROW)
    found += browser.run("return pageChecks.wide()")
    browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.emulate(prefers_color_scheme="light")
    return [*dict.fromkeys(found), *(f"console: {message}" for message in browser.complaints())]


@functools.cache
def _fonts() -> str:
    """The fonts as JSON, each in base64."""
    import matplotlib
    folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    return json.dumps({name: base64.b64encode((folder / file).read_bytes()).decode() for name, file in FONTS.items()})


def _keyboard(browser: Any) -> Iterator[str]:
    """The controls that Tab does not reach."""
    from selenium.webdriver import ActionChains
    count = browser.run("return pageChecks.keyboard.begin()")
    ActionChains(browser.driver).send_keys(TAB * (count + 3)).perform()
    yield from browser.run("return pageChecks.keyboard.end()")


def _size(browser: Any, width: int) -> None:
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                   {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False})
