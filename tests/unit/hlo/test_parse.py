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
    try:
        module = parse_hlo(TEXT[:cut])
    except InputError:
        assert "ENTRY %main (a: f32[4]) -> f32[4] {" not in TEXT[:cut]
    else:
        assert module.entry == "main"
