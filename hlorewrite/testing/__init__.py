"""Tools for testing passes and rules in another repository: a pytest plug-in, a configuration for lit, golden files.

In ``conftest.py``::

    pytest_plugins = "hlorewrite.testing"

Each ``.mlir`` and ``.test`` file with ``RUN:`` lines below the tests is then a test, and tests can ask for the fixture
``rewrite``. In ``lit.cfg.py``::

    from hlorewrite.testing.lit_config import configure
    configure(config, lit_config, __file__)

The extra ``testing`` brings pytest, lit and filecheck.
"""

import sys

from hlorewrite.util.optional_dependencies import install

try:
    from hlorewrite.testing.plugin import pytest_collect_file as pytest_collect_file
    from hlorewrite.testing.plugin import rewrite as rewrite
except ModuleNotFoundError as error:
    if error.name != "pytest":
        raise
    _STOP = f"hlorewrite.testing needs pytest, lit and filecheck: {install('testing')}"
    if sys.argv[0] == "-m":  # python -m hlorewrite.testing.update_checks
        print(_STOP, file=sys.stderr)
        raise SystemExit(2) from None
    raise ModuleNotFoundError(_STOP, name="pytest") from None
