"""Configuration of the golden-file tests; run them with ``pytest tests/test_lit.py`` or ``lit tests/lit``."""
# ruff: noqa: F821 (lit defines config and lit_config)

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))  # this checkout

from hlorewrite.testing.lit_config import configure

configure(config, lit_config, __file__, name="hlorewrite")
