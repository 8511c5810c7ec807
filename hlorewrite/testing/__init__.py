"""Tools for testing passes and rules in another repository: a pytest plug-in, a configuration for lit, golden files.

In ``conftest.py``::

    pytest_plugins = "hlorewrite.testing"

Each ``.mlir`` and ``.test`` file with ``RUN:`` lines below the tests is then a test, and tests can ask for the fixture
``rewrite``. In ``lit.cfg.py``::

    from hlorewrite.testing.lit_config import configure
    configure(config, lit_config, __file__)
"""

from hlorewrite.testing.plugin import pytest_collect_file as pytest_collect_file
from hlorewrite.testing.plugin import rewrite as rewrite
