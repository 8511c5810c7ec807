"""A configuration of lit for golden files of passes and rules, for the ``lit.cfg.py`` of any repository."""

import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

from hlorewrite.testing.golden import SUFFIXES, root_of
from hlorewrite.util.optional_dependencies import install

ENVIRONMENT = {"TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONDONTWRITEBYTECODE": "1", "FILECHECK_OPTS": "--enable-var-scope",
               "COLUMNS": "100"}
"""The environment of every command of a RUN line, so that its output is the same everywhere."""


def configure(config: Any, lit_config: Any, file: str, *, name: str = "") -> None:
    """Configures lit: ``%hlorewrite``, ``%filecheck``, ``%python`` and ``%root`` in RUN lines of golden files.

    ``--param output=FOLDER`` is where lit writes, ``build/lit`` of the repository by default. ``--param
    programs=FOLDER`` has the programs to run instead of those of this environment.

    Args:
      config: what lit gives to its configuration file.
      lit_config: the same.
      file: the configuration file, ``__file__``.
      name: the name of the tests; that of the repository's folder by default.
    """
    from lit.formats import ShTest

    folder = os.path.dirname(os.path.abspath(file))
    root = str(root_of(file))
    programs, binaries = lit_config.params.get("programs"), os.path.dirname(sys.executable)
    if not programs and importlib.util.find_spec("filecheck") is None:
        lit_config.fatal(f"golden files need filecheck: {install('testing')}")
    package = str(Path(__file__).resolve().parents[2])
    config.name = name or os.path.basename(root)
    config.test_format = ShTest(execute_external=False)
    config.suffixes = list(SUFFIXES)
    config.excludes = ["Inputs", "Output"]
    config.test_source_root = folder
    config.test_exec_root = lit_config.params.get("output") or os.path.join(root, "build", "lit")
    config.substitutions += [
        ("%hlorewrite", os.path.join(programs, "hlorewrite") if programs else f"{sys.executable} -m hlorewrite"),
        ("%python", os.path.join(programs, "python") if programs else sys.executable),
        ("%filecheck", os.path.join(programs or binaries, "filecheck")),
        ("%root", root)]
    config.environment.update({**ENVIRONMENT, "PYTHONPATH": os.pathsep.join(dict.fromkeys((root, package))),
                               "HOME": os.environ.get("HOME", "/")})
