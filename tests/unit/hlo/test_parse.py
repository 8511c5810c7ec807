"""Reading HLO text that is cut short."""

from __future__ import annotations

import pytest

from hlorewrite.errors import InputError
from hlorewrite.hlo.parse import parse_hlo

TEXT = """HloModule m

%inner (p: f32[4]) -> f32[4] {
  %p = f32[4]{0} parameter(0)
  ROOT %q = f32[4]{0} negate(%p)
}

ENTRY %main (a: f32[4]) -> f32[4] {
  %a = f32[4]{0} parameter(0)
  ROOT %r = (f32[4]{0}, s32[]) fusion(%a), kind=kLoop, calls=%inner
}
"""


@pytest.mark.parametrize("cut", range(len(TEXT) + 1))
def test_text_that_is_cut_anywhere(cut: int) -> None:
    whole = cut >= len(TEXT) - 1
    try:
        module = parse_hlo(TEXT[:cut])
    except InputError:
        assert not whole
    else:
        assert whole and module.entry == "main"


@pytest.mark.parametrize("line", [
    "  all-reduce(%a)", "  %s f32[4] add(%a, %a)", "  %s = f32[4]{0} add(%a, %a", "  channel_id=1, to_apply=%inner",
    "  %a = f32[4]{0} negate(%a)", "  ROOT %s = f32[4]{0} negate(%a)", "  %s = f32[4]{0} call(%a), to_apply=%absent"])
def test_a_line_that_cannot_be_read_is_an_error(line: str) -> None:
    parse_hlo(TEXT)
    with pytest.raises(InputError):
        parse_hlo(TEXT.replace("  ROOT %r", f"{line}\n  ROOT %r"))


def test_two_computations_of_one_name_and_two_entries_are_errors() -> None:
    inner, entry = TEXT.split("\n\n")[1:]
    for text in (f"HloModule m\n\n{inner}\n\n{inner}\n\n{entry}", f"{TEXT}\n{entry.replace('%main', '%other')}"):
        with pytest.raises(InputError, match=r"repeats a name|second entry"):
            parse_hlo(text)


def test_a_million_devices_are_the_most() -> None:
    text = TEXT.replace("HloModule m", "HloModule m, num_partitions=2000000")
    with pytest.raises(InputError, match="2000000 devices"):
        parse_hlo(text)
