"""What all tests share: the package on the path, random-test profiles, the switch for slow cases."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

collect_ignore_glob = ["*_worker.py", "lit/*"]  # programs that tests start, not tests

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:  # a bare checkout that was never installed
    sys.path.insert(0, str(ROOT))

settings.register_profile("default", max_examples=50, deadline=None, derandomize=True,
                          suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("nightly", max_examples=2000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds ``--run-slow``."""
    parser.addoption("--run-slow", action="store_true", help="also run tests marked slow")


def pytest_configure(config: pytest.Config) -> None:
    """Declares the markers."""
    config.addinivalue_line("markers", "slow: takes minutes; runs with --run-slow")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves slow tests out unless they were asked for."""
    if config.getoption("--run-slow"):
        return
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.skip(reason="slow; use --run-slow"))
