"""Configuration of the golden-file tests; run them with ``pytest tests/test_lit.py`` or ``lit tests/lit``."""
# ruff: noqa: F821 (lit defines config and lit_config)

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
config.test_exec_root = lit_config.params.get("output") or os.path.join(ROOT, "build", "lit")
programs = lit_config.params.get("programs")  # a folder of a WarmServer
config.substitutions += [
    ("%hlorewrite", os.path.join(programs, "hlorewrite") if programs else f"{sys.executable} -m hlorewrite"),
    ("%python", os.path.join(programs, "python") if programs else sys.executable),
    ("%filecheck", os.path.join(programs or BIN, "filecheck")),
    ("%root", ROOT),
]
config.environment.update({
    "PYTHONPATH": ROOT,
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "PYTHONDONTWRITEBYTECODE": "1",
    "FILECHECK_OPTS": "--enable-var-scope",
    "HOME": os.environ.get("HOME", "/"),
    "COLUMNS": "100",
})
