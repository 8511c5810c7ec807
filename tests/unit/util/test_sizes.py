"""Sizes and times as people write them."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlorewrite.errors import UsageError
from hlorewrite.passmanager.options import Size, from_text
from hlorewrite.util.sizes import exact_bytes, format_bytes, format_seconds, parse_bytes, parse_seconds, told_apart
from hlorewrite.util.tables import units_in_headings


@pytest.mark.parametrize(("text", "size"), [
    ("4096", 4096), ("12B", 12), ("64k", 64_000), ("64K", 64_000), ("64kB", 64_000), ("64KiB", 65_536),
    ("64M", 64 * 10**6), ("64MB", 64 * 10**6), ("64MiB", 64 << 20), ("2G", 2 * 10**9), ("2GB", 2 * 10**9),
    ("2GiB", 2 << 30), ("1T", 10**12), ("1TB", 10**12), ("1TiB", 1 << 40), ("64 MB", 64 * 10**6), ("1e3", 1000),
    ("1.001GB", 1_001_000_000), ("0", 0), ("1.5KiB", 1536), ("9007199254740993", 2**53 + 1)])
def test_every_spelling_is_the_same_size_everywhere(text: str, size: int) -> None:
    """For options of the command line and for those of passes."""
    assert parse_bytes(text) == size == from_text(text, Size, "limit")


@pytest.mark.parametrize("text", ["", "GB", "8XB", "64Mi", "-1", "1.5", "1.0001KiB", "1e999", "9e18T", "nan", "inf",
                                  "1,5k"])
def test_what_is_not_a_size(text: str) -> None:
    """One line, also where the number is too large."""
    with pytest.raises(UsageError):
        parse_bytes(text)
    with pytest.raises(UsageError, match="is not a number of bytes such as 8GiB"):
        from_text(text, Size, "limit")


@pytest.mark.parametrize("size", [0, 1, 1023, 1024, 1025, 3 << 20, 5 << 40, 1 << 50, 10**12])
def test_exact_text_is_read_back(size: int) -> None:
    """So that a printed pipeline is the same pipeline."""
    assert parse_bytes(exact_bytes(size)) == size


@pytest.mark.parametrize(("size", "two", "one"), [
    (12, "12 B", "12 B"), (1023, "1023 B", "1023 B"), (1024, "1.00 KiB", "1.0 KiB"), (1536.0, "1.50 KiB", "1.5 KiB"),
    (-(3 << 20), "-3.00 MiB", "-3.0 MiB"), (5000 << 40, "5000.00 TiB", "5000.0 TiB")])
def test_printed_sizes(size: float, two: str, one: str) -> None:
    """The largest unit is TiB."""
    assert (format_bytes(size), format_bytes(size, 1)) == (two, one)


def magnitudes(least: float, most: float) -> list[float]:
    """Numbers of all sizes, rising; most of them just below and above powers, where units and digits change."""
    borders = [base**power for base in (10.0, 2.0) for power in range(-45, 61)]
    numbers = {border * (1 + sign * off) for border in borders for sign in (1, -1)
               for off in (0.0, 1e-9, 1e-6, 2.6e-4, 4.9e-4, 5.1e-4, 1e-3, 4e-3, 6e-3, 0.02, 0.3)}
    return sorted(number for number in numbers if least <= number <= most)


@pytest.mark.parametrize("decimals", [0, 1, 2, 4])
def test_a_printed_size_is_the_size_rounded_and_grows_with_it(decimals: int) -> None:
    read = []
    for size in magnitudes(0.0, 2.0**60):
        number, unit = format_bytes(size, decimals).split()
        scale = exact_bytes_of(unit)
        assert 0.999 < float(number) < 1024 or (unit in ("B", "TiB") and float(number) >= 0), (size, number, unit)
        assert not (unit == "B" and float(number) >= 1024)
        read.append(float(number) * scale)
        step = scale * 10.0**-(0 if unit == "B" else decimals)
        assert abs(read[-1] - size) <= 0.5001 * step, (size, number, unit)
        assert format_bytes(-size, decimals) == (f"-{number} {unit}" if read[-1] else f"{number} {unit}")
    assert read == sorted(read)


def exact_bytes_of(unit: str) -> int:
    """Bytes of a unit."""
    return parse_bytes(f"1{unit}")


@pytest.mark.parametrize("digits", [3, 4, 6])
def test_a_printed_time_is_the_time_rounded_and_grows_with_it(digits: int) -> None:
    read = []
    for time in magnitudes(1e-12, 1e12):
        text = format_seconds(time, digits)
        number, unit = text.split()
        assert 1 <= float(number) < 1000 or unit in ("s", "us"), (time, text)
        assert "e+" not in number and (unit != "us" or float(number) < 1000), (time, text)
        assert unit != "s" or float(number) >= 1
        read.append(parse_seconds(text))
        assert read[-1] == pytest.approx(time, rel=0.5001 * 10.0**(1 - digits)), (time, text)
        assert format_seconds(-time, digits) == f"-{text}"
    assert all(before <= after * (1 + 1e-12) for before, after in pairwise(read))


def test_numbers_at_the_edge() -> None:
    assert (format_seconds(0.99974), format_seconds(0.9996e-3), format_seconds(999.7)) == ("1 s", "1 ms", "1000 s")
    assert (format_seconds(0), format_seconds(-0.0), format_seconds(math.nan), format_seconds(math.inf)) == (
        "0", "0", "nan", "inf s")
    assert (format_bytes(1023.7), format_bytes((1 << 30) - 1), format_bytes(-0.2)) == ("1.00 KiB", "1.00 GiB", "0 B")
    assert (format_bytes(math.nan), format_bytes(math.inf)) == ("nan B", "inf TiB")


@given(st.integers(0, 2**62), st.integers(0, 2**62))
def test_different_sizes_are_told_apart(one: int, other: int) -> None:
    first, second = told_apart(one, other, format_bytes, 1)
    assert (first == second) == (one == other)


def test_cells_in_the_unit_of_a_column() -> None:
    cells = [["before", "after"], ["1000 us", "-2500 ms"], ["-3 s", "999.7 ms"]]
    assert units_in_headings(cells) == [["before s", "after s"], ["0.001", "-2.5"], ["-3", "1.000"]]
