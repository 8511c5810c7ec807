"""Sizes and times as people write them."""

from __future__ import annotations

import pytest

from hlorewrite.errors import UsageError
from hlorewrite.passmanager.options import Size, from_text
from hlorewrite.util.sizes import exact_bytes, format_bytes, parse_bytes


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
