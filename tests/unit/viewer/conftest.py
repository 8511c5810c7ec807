"""Puts this folder on the path, for what its tests share; one browser for all of them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Headless Chromium; skips where there is none."""
    from browser import missing, open_browser
    if why := missing():
        pytest.skip(why)
    with open_browser() as opened:
        yield opened
