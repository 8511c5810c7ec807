"""Reads measured times of kernels: name and seconds, as TOML, JSON or CSV."""

import csv
import io
import math
import tomllib
from typing import Any

from hlorewrite.errors import InputError
from hlorewrite.util.read import long_fields, read_json

MOST_SECONDS = 1e12
"""The most seconds of one kernel or transfer, so sums stay finite."""
_FORM = "write NAME = SECONDS as TOML, a JSON object, or CSV lines NAME,SECONDS"


def read_kernel_times(content: bytes, name: str) -> dict[str, float]:
    """Measured seconds by kernel.

    Args:
      content: the file; TOML (names with points in quotes or not), a JSON object, or CSV of two columns.
      name: the name of the file; ``.json``, ``.csv`` or anything else for TOML.

    Returns:
      Seconds by name.

    Raises:
      InputError: the file is damaged, or a time is not a number of seconds.

    Example:
      >>> read_kernel_times(b"fusion.1,2e-6\\ngemm_fusion_dot_4,1e-3\\n", "times.csv")
      {'fusion.1': 2e-06, 'gemm_fusion_dot_4': 0.001}
    """
    try:
        text = content.decode()
        if name.endswith(".json"):
            found = read_json(text)
        elif name.endswith(".csv"):
            found = _csv(text, name)
        else:
            found = _flat(tomllib.loads(text), "")
    except (UnicodeDecodeError, ValueError) as error:
        raise InputError(f"cannot be read ({str(error).splitlines()[0]})", location=name, hint=_FORM) from None
    if not isinstance(found, dict):
        raise InputError("is not an object that maps names to seconds", location=name, hint=_FORM)
    return {str(key): _seconds(key, value, name) for key, value in found.items()}


def _flat(table: dict[str, Any], before: str) -> dict[str, Any]:
    """Flattens nested tables to dotted names: TOML reads ``fusion.1`` as the key ``1`` of a table ``fusion``."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        flat |= _flat(value, f"{before}{key}.") if isinstance(value, dict) else {before + key: value}
    return flat


def _csv(text: str, name: str) -> dict[str, Any]:
    with long_fields():
        rows = [row for row in csv.reader(io.StringIO(text)) if row and not row[0].startswith("#")]
    wrong = next((number for number, row in enumerate(rows, 1) if len(row) != 2), 0)
    if wrong:
        raise InputError("does not have two columns", location=f"{name}:{wrong}", hint=_FORM)
    if rows and not _is_number(rows[0][1]):  # headings
        rows = rows[1:]
    return {row[0].strip(): row[1] for row in rows}


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _seconds(key: object, value: Any, name: str) -> float:
    number = float(str(value)) if not isinstance(value, bool) and isinstance(value, int | float | str) \
        and _is_number(str(value)) else math.nan
    if not 0 <= number <= MOST_SECONDS:
        raise InputError(f'the time of "{key}" is {str(value)[:60]}', location=name,
                         hint="times are seconds, 0 or more")
    return number
