"""The modules in a folder of a suite: MLIR files, split where they are divided, bytecode, HLO files, HLO in tests."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hlorewrite.cli.opt.job import split_text
from hlorewrite.cost.report.collectives import looks_like_hlo

_RAW_STRING = re.compile(r'R"(\w*)\((.*?)\)\1"', re.DOTALL)
_HOLE = re.compile(r"\$\{?\w+|\{\{?\w*\}\}?%")
_MLIR, _BINARY, _TEXT, _TESTS = (".mlir",), (".bc",), (".hlo", ".txt"), ("_test.cc", "_test.cpp")
_MOST_BYTES = 2 << 20


@dataclass(frozen=True)
class SuiteModule:
    """One module of a suite.

    Attributes:
      name: the file below its folder, and where in it.
      data: its bytes.
      form: ``mlir`` or ``hlo``.
      wants_error: whether the file is there to be refused, or says itself that it contains errors.
    """

    name: str
    data: bytes
    form: str
    wants_error: bool = False


def modules_of(folder: Path) -> Iterator[SuiteModule]:
    """The modules below a folder, by name.

    Args:
      folder: a checkout of a suite, or a part of one.

    Yields:
      Each module; files larger than two megabytes are left out.
    """
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size <= _MOST_BYTES):
        name = str(path.relative_to(folder.parent))
        if path.name.endswith(_BINARY):
            yield SuiteModule(name, path.read_bytes(), "mlir")
        elif path.name.endswith(_MLIR):
            text = path.read_text(errors="replace")
            for line, part in split_text(text):
                if part.strip():
                    yield SuiteModule(f"{name}:{line}", part.encode(), "mlir", "expected-error" in part)
        elif path.name.endswith(_TEXT):
            for line, part in split_text(path.read_text(errors="replace")):
                if looks_like_hlo(part.encode()):
                    yield SuiteModule(f"{name}:{line}", part.encode(), "hlo")
        elif path.name.endswith(_TESTS):
            yield from _in_tests(name, path.read_text(errors="replace"))


def _in_tests(name: str, text: str) -> Iterator[SuiteModule]:
    """HLO modules in the raw strings of a C++ test; those with places to be filled in are left out."""
    for found in _RAW_STRING.finditer(text):
        data = found[2].encode()
        if looks_like_hlo(data) and not _HOLE.search(found[2]) and "CHECK" not in found[2]:
            yield SuiteModule(f"{name}:{text.count(chr(10), 0, found.start()) + 1}", data, "hlo")
