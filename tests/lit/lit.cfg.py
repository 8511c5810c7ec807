"""Configuration of the golden-file tests; run them with ``pytest tests/test_lit.py`` or ``lit tests/lit``."""
# ruff: noqa: F821 (lit defines config)

import os
import sys

import lit.formats

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.path.dirname(sys.executable)

config.name = "hlorewrite"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "Output"]
config.test_source_root = os.path.dirname(os.path.abspath(__file__))
config.test_exec_root = os.path.join(ROOT, "build", "lit")
config.substitutions += [
    ("%hlorewrite", f"{sys.executable} -m hlorewrite"),
    ("%python", sys.executable),
    ("%filecheck", os.path.join(BIN, "filecheck")),
    ("%root", ROOT),
]
config.environment.update({
    "PYTHONPATH": ROOT,
    "PYTHONDONTWRITEBYTECODE": "1",
    "FILECHECK_OPTS": "--enable-var-scope",
    "HOME": os.environ.get("HOME", "/"),
    "COLUMNS": "100",
})
