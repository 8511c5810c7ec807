"""One browser for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Headless Chromium; skips where there is none."""
    from browser import missing, open_browser
    if why := missing():
        pytest.skip(why)
    with open_browser() as opened:
        yield opened
