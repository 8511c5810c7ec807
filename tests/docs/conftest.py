"""What starts the programs of pages: once for all of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from run_page import page_server
from warm_process import WarmServer


@pytest.fixture(scope="session")
def server() -> Iterator[WarmServer]:
    """Starts the programs of pages."""
    with page_server() as found:
        yield found
