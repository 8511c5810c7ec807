"""A reproducer: the input and the pipeline that failed on it, in one file ``mlir-opt`` understands too.

MLIR keeps the pipeline in the file itself, as the external resource ``mlir_reproducer``. jaxlib parses such a file but
does not give access to the resource, so it is written and read as text here.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from hlorewrite.errors import InputError, UsageError
from hlorewrite.passmanager.base import Pass

_BLOCK = re.compile(r"\n?\{-#\s*external_resources:\s*\{\s*mlir_reproducer:\s*\{(?P<body>.*?)\}\s*\}\s*#-\}\n?",
                    re.DOTALL)
_PIPELINE = re.compile(r'pipeline:\s*"((?:[^"\\]|\\.)*)"')
_OPTIONS = re.compile(r"^// hlorewrite-options:(.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Reproducer:
    """The contents of a reproducer file.

    Attributes:
      module: the text of the module.
      pipeline: the passes that were run.
      options: what else the passes were given, as command-line words (``--ignore-cost``).
    """

    module: str
    pipeline: str
    options: tuple[str, ...] = ()

    def text(self) -> str:
        """The content of the file.

        Example:
          >>> read_reproducer(Reproducer("module {}\\n", "cse", ("--ignore-cost",)).text(), "r.mlir").options
          ('--ignore-cost',)
        """
        escaped = self.pipeline.replace("\\", "\\\\").replace('"', '\\"')
        options = f"// hlorewrite-options: {' '.join(self.options)}\n" if self.options else ""
        return (f"// Reproducer: run `hlorewrite opt --run-reproducer` on this file.\n{options}"
                f"{self.module.rstrip()}\n\n{{-#\n  external_resources: {{\n    mlir_reproducer: {{\n"
                f'      pipeline: "builtin.module({escaped})",\n      disable_threading: false,\n'
                f"      verify_each: true\n    }}\n  }}\n#-}}\n")


def read_reproducer(text: str, name: str) -> Reproducer:
    """Finds the pipeline in a reproducer file.

    Args:
      text: the content of the file.
      name: its name, for messages.

    Returns:
      The module's text and the pipeline.

    Raises:
      InputError: the file contains no reproducer.
    """
    block = _BLOCK.search(text)
    pipeline = _PIPELINE.search(block.group("body")) if block else None
    if not block or not pipeline:
        raise InputError("the file contains no mlir_reproducer", location=name,
                         hint="name the passes with --pass instead of --run-reproducer")
    options = _OPTIONS.search(text)
    # The block is blanked, not cut: positions in messages stay those of the file.
    blank = re.sub(r"[^\n]", " ", block.group(0))
    words = tuple(options.group(1).split()) if options else ()
    unknown = [w for w in words if not re.fullmatch(r"--ignore-cost|--topology=\S+", w)]
    if unknown:
        raise UsageError(f'{name}: unknown reproducer option "{unknown[0]}"', hint="known: --ignore-cost, --topology=")
    return Reproducer(text[:block.start()] + blank + text[block.end():],
                      re.sub(r"\\(.)", r"\1", pipeline.group(1)), words)


def check_paths(passes: Sequence[Pass], topology: str, name: str) -> None:
    """Refuses a reproducer that names files outside its folder; shipped rules and topologies are given by name.

    Args:
      passes: its pipeline.
      topology: its option ``--topology``.
      name: the reproducer; ``-`` has no folder, so all files are outside.

    Raises:
      UsageError: names the first file outside.
    """
    named = [file for step in passes for file in getattr(step, "files", ())]
    named += [getattr(step, "topology", "").rpartition(":")[0] or getattr(step, "topology", "") for step in passes]
    named.append(topology.rpartition(":")[0] or topology)
    folder = os.path.realpath(os.path.dirname(name)) if name != "-" else None
    for path in named:
        if os.path.basename(path) == path and not os.path.lexists(path):
            continue
        if folder is None or os.path.commonpath([folder, os.path.realpath(path)]) != folder:
            raise UsageError(f"the reproducer {name} reads {path!r}, which is outside its folder",
                             hint="copy that file next to the reproducer, or run its passes with --pass-pipeline")
