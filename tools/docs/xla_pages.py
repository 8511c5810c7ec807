"""The table of XLA's situations of all-reduce code motion, made from the headers of ``tests/oracle/xla_situations``."""

from __future__ import annotations

import re
from pathlib import Path

from markup import table

FOLDER = Path(__file__).resolve().parent.parent.parent / "tests" / "oracle" / "xla_situations"
HEAD = ("", "situation", "XLA's test", "XLA:GPU 0.10.2", "comm-shift", "why")


def xla_page() -> str:
    """The page of XLA's 52 situations."""
    return "\n".join([
        "# XLA's situations, one by one", "", "Made from the headers of the modules in `tests/oracle/xla_situations`. "
        "[The page about them](../xla-situations.md) explains the columns.", "",
        table(HEAD, (row_of(path) for path in files() if path.stem[:2].isdigit()))])


def files() -> list[Path]:
    """Every module, in the order of its number or letter."""
    return sorted(FOLDER.rglob("*.mlir"), key=lambda path: path.name)


def row_of(path: Path) -> tuple[str, ...]:
    """The row of a module: number, name, what XLA's test expects, what XLA does, what comm-shift does, and why."""
    said = {key: value.rstrip(".") for key, value in re.findall(r"^// (\w+): (.*)$", path.read_text(), re.MULTILINE)}
    here, _, why = said["HERE"].partition("; ")
    number = path.stem.split("_")[0]
    shown = number.lstrip("0") if number.isdigit() else number.upper()
    return shown, path.stem[len(number) + 1:].replace("_", " "), said["XLA"], said["MEASURED"], here, why
